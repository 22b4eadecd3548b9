"""Compiled pass over plain batches of format v2; imports numba, by way of `checksum`."""

# pyright: reportMissingParameterType=false, reportPrivateImportUsage=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.extending import intrinsic as _untyped_intrinsic
from numba.core.registry import cpu_target

from streamwatch.core.jit import entry, hot, inner, swapped, word_at
from streamwatch.core.records import APPENDED, HEADERS, KEY, VALUE
from streamwatch.edge.sources.kafka.batches.frames import (
    APPEND_TIME,
    CHECKED_FROM,
    CODEC,
    CONTROL,
    HEAD,
    LOG_OVERHEAD,
    TRANSACTIONAL,
)
from streamwatch.edge.sources.kafka.batches.scan import scan

# CRC-32C by the processor's own instruction, for functions compiled by `core.jit`.


# (numba and llvmlite are untyped)


intrinsic = cast("Callable[[Callable[..., Any]], Callable[..., Any]]", _untyped_intrinsic)


@cache
def has_instruction() -> bool:
    """Return whether code is compiled for a processor that has the instruction."""
    triple, _, features = cast("Any", cpu_target).target_context.codegen().magic_tuple()
    return str(triple).startswith("x86_64") and "+sse4.2" in str(features).split(",")


@intrinsic
def crc_of_word(typing_context: Any, crc: Any, word: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """Take 8 bytes into a checksum: uint64, uint64 → uint64."""
    del typing_context
    return types.uint64(types.uint64, types.uint64), _instruction("llvm.x86.sse42.crc32.64.64", 64)


@intrinsic
def crc_of_byte(typing_context: Any, crc: Any, byte: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """Take one byte into a checksum: uint64, uint64 (below 256) → uint64."""
    del typing_context
    return types.uint64(types.uint64, types.uint64), _instruction("llvm.x86.sse42.crc32.64.8", 8)


def _instruction(name: str, bits: int) -> Callable[..., Any]:
    """Call an intrinsic of LLVM that takes a checksum of 64 bits and so many bits of data."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(64)
        kind = ir.FunctionType(wide, [wide, ir.IntType(bits)])
        module: Any = builder.module
        function = module.globals.get(name) or ir.Function(module, kind, name)
        crc, data = arguments
        return builder.call(function, [crc, builder.trunc(data, ir.IntType(bits)) if bits < 64 else data])

    return generate


_HEAD_BYTES = HEAD.size
_UNUSUAL = CODEC | CONTROL | TRANSACTIONAL
_LENGTH, _MAGIC, _CRC, _ATTRIBUTES, _LAST_DELTA, _FIRST_MS, _NEWEST_MS, _COUNT = 8, 16, 17, 21, 23, 27, 35, 57
_ALL_ONES = np.uint64(0xFFFFFFFF)
_scan: Any = inner(scan)


@hot
def long_at(data: Any, at: Any) -> Any:
    """Eight bytes as a signed number, the highest first."""
    return np.int64(swapped(word_at(data, at)))


@hot
def int_at(data: Any, at: Any) -> Any:
    """Four bytes as a signed number, the highest first; eight can be read."""
    return np.int64(np.int32(swapped(word_at(data, at)) >> np.uint64(32)))


@hot
def checksum_of(data: Any, at: Any, end: Any) -> Any:
    """CRC-32C of some bytes."""
    crc = _ALL_ONES
    while end - at >= 8:
        crc = crc_of_word(crc, word_at(data, at))
        at += 8
    while at < end:
        crc = crc_of_byte(crc, np.uint64(data[at]))
        at += 1
    return (crc ^ _ALL_ONES) & _ALL_ONES


@entry
def whole_batches(data: Any, at: Any, room: Any, least: Any, most: Any, largest: Any, rows: Any) -> Any:
    """Write a row for each record of the batches from `at` on, as `scan` does, while these are plain.

    They are whole, of format v2, sound by their checksum and their records, follow each other without a gap,
    are not compressed, of no transaction, and all of their records have a row.

    Parameters
    ----------
    data
        What a broker answered: uint8, read-only.
    at
        Where a batch begins.
    room
        Rows to write at most.
    least
        Offset that it begins with.
    most
        High watermark; -1 if it is not known.
    largest
        Bytes of records in a batch, at most.
    rows
        int64, shape (≥ room, COLUMNS); written to. Positions count from the `at` that was given.

    Returns
    -------
    tuple[int, int, int]
        Rows found; where the next batch begins; the offset that it should begin with.
    """
    start = at
    found = 0
    while data.shape[0] - at >= _HEAD_BYTES:
        length = int_at(data, at + _LENGTH)
        end = at + LOG_OVERHEAD + length
        if length < _HEAD_BYTES - LOG_OVERHEAD or end > data.shape[0] or data[at + _MAGIC] != 2:
            break
        attributes = data[at + _ATTRIBUTES + 1]  # the other byte is not in use
        base, last_delta = long_at(data, at), int_at(data, at + _LAST_DELTA)
        count = np.int64(np.int32(_word_before(data, at + _COUNT)))
        after = base + last_delta + 1
        if attributes & _UNUSUAL or base != least or last_delta < 0 or after > most >= 0:
            break
        if count < 0 or count > room - found or end - at - _HEAD_BYTES > largest:
            break
        if checksum_of(data, at + CHECKED_FROM, end) != _word_before(data, at + _CRC):
            break
        append_ms = max(long_at(data, at + _NEWEST_MS), 0) if attributes & APPEND_TIME else -1
        first_ms = long_at(data, at + _FIRST_MS)
        here = rows[found:]
        seen, stop, _, broken = _scan(
            data[:end], at + _HEAD_BYTES, count, base, last_delta, -1, first_ms, append_ms, here
        )
        if broken or seen != count or stop != end:
            break
        for row in range(count):
            here[row, APPENDED] = append_ms >= 0
            here[row, KEY] -= start
            here[row, VALUE] -= start
            here[row, HEADERS] -= start
        found += count
        at, least = end, after
    return found, at, least


@hot
def _word_before(data: Any, at: Any) -> Any:
    """Four bytes as an unsigned number, the highest first; the four before them can be read."""
    return swapped(word_at(data, at - 4)) & _ALL_ONES
