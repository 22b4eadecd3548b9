"""Table from names, as records write them, to their numbers in the vocabulary, for compiled code."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, hot
from streamwatch.core.records.fetched import PADDING
from streamwatch.edge.decoders.scanner.text import first_word, same

MAX_TOKEN_BYTES: Final = 130
"""Bytes of a token at most: a name and its quotes."""
MAX_TOKENS: Final = 65_536
"""Tokens of a table at most; then it is emptied and filled anew."""
_FIRST: Final = 64
_WORD: Final = 8

_FACTOR = np.uint64(0x9E3779B185EBCA87)
_SHIFT = np.uint64(29)
_EMPTY: Final = -1


class TokenTable(NamedTuple):
    """Hash table with open addressing; its four columns have the same power of two as length."""

    number: NDArray[np.int64]
    """By slot, like the next three (hash, first byte in `text`, bytes): number of the name; -1: empty."""
    hash: NDArray[np.uint64]
    start: NDArray[np.int64]
    size: NDArray[np.int64]
    text: NDArray[np.uint8]
    """Bytes of the names, each from its `start` on."""


@entry
def token_hash(data: Any, at: int, size: int) -> Any:
    """Hash the bytes of a token."""
    word = np.uint64(size) * _FACTOR
    while size > 0:
        word = (word ^ first_word(data, at, size)) * _FACTOR
        word ^= word >> _SHIFT
        at += _WORD
        size -= _WORD
    return word


@hot
def number_of(data: Any, at: int, size: int, table: TokenTable) -> int:
    """Return the number of a token; -1 if it is not in the table."""
    if size > MAX_TOKEN_BYTES:
        return _EMPTY
    word = token_hash(data, at, size)
    last = len(table.number) - 1
    slot = np.int64(word & np.uint64(last))
    while table.number[slot] >= 0:
        if (
            table.hash[slot] == word
            and table.size[slot] == size
            and same(data, at, table.text, table.start[slot], size)
        ):
            break
        slot = (slot + 1) & last
    return table.number[slot]


class Tokens:
    """Tokens of one field met so far, and their table."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._used = 0
        self.table = _table({}, _FIRST)

    def learn(self, token: bytes, number: int) -> None:
        """Add a token, unless it is known or longer than `MAX_TOKEN_BYTES`."""
        if len(token) > MAX_TOKEN_BYTES or token in self._numbers:
            return
        if len(self._numbers) >= MAX_TOKENS:
            self._numbers.clear()
            self._used = 0
            self.table = _table({}, _FIRST)
        self._numbers[token] = number
        if 2 * len(self._numbers) > len(self.table.number):
            self.table = _table(self._numbers, 4 * len(self._numbers))
        else:
            _put(self.table, token, number, self._used)
        self._used += len(token)


def _table(numbers: dict[bytes, int], slots: int) -> TokenTable:
    """Build the table of these tokens with a number of slots."""
    slots = 1 << (slots - 1).bit_length()
    table = TokenTable(
        np.full(slots, _EMPTY),
        np.zeros(slots, np.uint64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots * MAX_TOKEN_BYTES // 2 + PADDING + MAX_TOKEN_BYTES, np.uint8),
    )
    start = 0
    for token, number in numbers.items():
        _put(table, token, number, start)
        start += len(token)
    return table


def _put(table: TokenTable, token: bytes, number: int, start: int) -> None:
    written = np.frombuffer(token + bytes(PADDING), np.uint8)
    word = int(token_hash(written, 0, len(token)))
    last = len(table.number) - 1
    slot = word & last
    while table.number[slot] >= 0:
        slot = (slot + 1) & last
    table.text[start : start + len(token)] = written[: len(token)]
    table.hash[slot], table.start[slot], table.size[slot] = word, start, len(token)
    table.number[slot] = number
