"""Compiled pass over plain batches of format v2."""

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
from streamwatch.core.records.fetched import APPENDED, HEADERS, KEY, VALUE
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

# CRC-32C by the processor's instruction, for functions compiled by `core.jit`.


# (numba and llvmlite are untyped)


intrinsic = cast("Callable[[Callable[..., Any]], Callable[..., Any]]", _untyped_intrinsic)


@cache
def has_instruction() -> bool:
    """Tell whether code is compiled for a processor with the CRC-32C instruction."""
    triple, _, features = cast("Any", cpu_target).target_context.codegen().magic_tuple()
    return str(triple).startswith("x86_64") and "+sse4.2" in str(features).split(",")


@intrinsic
def crc_of_word(typing_context: Any, crc: Any, word: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """Update a checksum with 8 bytes: uint64, uint64 → uint64."""
    del typing_context
    return types.uint64(types.uint64, types.uint64), _instruction("llvm.x86.sse42.crc32.64.64", 64)


@intrinsic
def crc_of_byte(typing_context: Any, crc: Any, byte: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """Update a checksum with one byte: uint64, uint64 (below 256) → uint64."""
    del typing_context
    return types.uint64(types.uint64, types.uint64), _instruction("llvm.x86.sse42.crc32.64.8", 8)


def _instruction(name: str, bits: int) -> Callable[..., Any]:
    """Make the code that calls an LLVM intrinsic of a 64-bit checksum and `bits` bits of data."""

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
    """Read eight bytes as a signed big-endian number."""
    return np.int64(swapped(word_at(data, at)))


@hot
def int_at(data: Any, at: Any) -> Any:
    """Read four bytes as a signed big-endian number; four more bytes must follow."""
    return np.int64(np.int32(swapped(word_at(data, at)) >> np.uint64(32)))


@hot
def checksum_of(data: Any, at: Any, end: Any) -> Any:
    """Return the CRC-32C of bytes."""
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
    """Write a row for each record of the batches from `at` on, as `scan` does, up to one that is not plain.

    A plain batch is complete, of format v2, intact by its checksum and its records, without a gap before it,
    not compressed, not in a transaction, and has room for all of its rows.

    Parameters
    ----------
    data
        A broker's answer: uint8, read-only.
    at
        Position of the first batch.
    room
        Rows to write at most.
    least
        Expected offset of the first batch.
    most
        High watermark; -1 if unknown.
    largest
        Bytes of a batch's records at most.
    rows
        int64, shape (≥ room, COLUMNS); overwritten. Positions are relative to the given `at`.

    Returns
    -------
    tuple[int, int, int]
        Rows written; position of the next batch; its expected offset.
    """
    start = at
    found = 0
    while data.shape[0] - at >= _HEAD_BYTES:
        length = int_at(data, at + _LENGTH)
        end = at + LOG_OVERHEAD + length
        if length < _HEAD_BYTES - LOG_OVERHEAD or end > data.shape[0] or data[at + _MAGIC] != 2:
            break
        attributes = data[at + _ATTRIBUTES + 1]  # the first byte is unused
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
    """Read four bytes as an unsigned big-endian number; four more bytes must precede them."""
    return swapped(word_at(data, at - 4)) & _ALL_ONES
