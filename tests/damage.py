"""States of which numbers were changed at chance, or that were cut short."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np

from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.packed import reading

INTEGERS = (-1, 2, 7, 18, 41, 64, 300, 1 << 16, 2**31 - 1, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63))
FLOATS = (np.nan, np.inf, -1.0, 5.0, 1e9, 1e300)
CUT = 0.1
"""Share of the damaged bytes that are cut short."""
NESTED = 0.5
"""Share of decodable bytes of which the decoded values are damaged."""


def damaged_tree(tree: Any, chance: np.random.Generator) -> Any:
    """The tree of a decoded state with one of its numbers, or its bytes, damaged."""
    paths = list(_leaves(tree, ()))
    return _with(tree, paths[chance.integers(len(paths))], lambda leaf: _other(leaf, chance))


def encoded(body: bytes, chance: np.random.Generator) -> bytes:
    """The encoded state with one of its numbers, or its bytes, damaged."""
    return msgspec.msgpack.encode(damaged_tree(msgspec.msgpack.decode(body), chance))


def gone_on(restore: Callable[[], object], go_on: Callable[[], object]) -> bool:
    """Restore a damaged state: whether it was accepted, and then observed further without an error."""
    try:
        with reading("a damaged state"):
            restore()
    except PackedError:
        return False
    with np.errstate(all="ignore"):  # a sum that is none may overflow
        go_on()
    return True


def _leaves(tree: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Paths to the numbers and bytes of a tree."""
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from _leaves(value, (*path, key))
    elif isinstance(tree, int | float | bytes) and not isinstance(tree, bool):
        yield path


def _with(tree: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(tree)
    copy = tree.copy()
    copy[path[0]] = _with(tree[path[0]], path[1:], change)
    return copy


def _other(leaf: Any, chance: np.random.Generator) -> Any:
    if isinstance(leaf, bytes):
        tree = _decoded(leaf)
        if tree and chance.random() < NESTED:
            return msgspec.msgpack.encode(damaged_tree(tree, chance))
        return damaged_bytes(leaf, chance)
    return int(chance.choice(INTEGERS)) if isinstance(leaf, int) else float(chance.choice(FLOATS))


def _decoded(body: bytes) -> Any:
    """The tree that bytes encode; None if they encode none, or nothing that holds others."""
    try:
        tree = msgspec.msgpack.decode(body)
    except (msgspec.DecodeError, ValueError):
        return None
    return tree if isinstance(tree, dict | list) and next(_leaves(tree, ()), None) else None


def damaged_bytes(body: bytes, chance: np.random.Generator) -> bytes:
    """Bytes with one of their aligned numbers replaced, or cut short."""
    if len(body) < 8 or chance.random() < CUT:
        return body[: int(chance.integers(len(body) + 1))]
    size = int(chance.choice((4, 8)))
    at = int(chance.integers(len(body) // 4)) * 4
    if chance.random() < 0.1:
        number = np.float64(chance.choice(FLOATS)).tobytes()
    else:
        number = (int(chance.choice(INTEGERS)) % 2 ** (8 * size)).to_bytes(size, "little")
    return (body[:at] + number + body[at + len(number) :])[: len(body)]
