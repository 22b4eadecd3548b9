"""Numba's side of intrinsics on arrays and words: what LLVM is told to do.

Imported when a kernel that names one is built, never before.
"""

# pyright: reportPrivateImportUsage=false, reportUnknownParameterType=false, reportMissingParameterType=false
# (numba and llvmlite are untyped)
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from streamwatch.core.jit.dispatcher import intrinsic


@intrinsic
def without_refcount(typing_context: Any, array: Any) -> Any:
    """`jit.without_refcount`: copies the array's structure with the owner left out."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        copy = context.make_array(signature.return_type)(context, builder, arguments[0])
        copy.meminfo = cgutils.get_null_value(copy.meminfo.type)
        copy.parent = cgutils.get_null_value(copy.parent.type)
        return copy._getvalue()  # noqa: SLF001  (numba's own name for it)

    return array(array), generate


@intrinsic
def prefetch(typing_context: Any, array: Any, offset: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.prefetch`: LLVM's prefetch, for writing, kept near."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte_pointer = ir.IntType(8).as_pointer()
        start = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        line = builder.gep(builder.bitcast(start, byte_pointer), [arguments[1]])
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte_pointer, word, word, word])
        hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(hint, [line, word(1), word(3), word(1)])  # for writing, keep near, data
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic
def class_bits(typing_context: Any, entry: Any) -> Any:
    """`jit.class_bits`: a constant of the entry's type."""
    del typing_context
    kind = entry.dtype if isinstance(entry, types.Array) else entry
    bits = 11 if kind.bitwidth == 32 else 27

    def generate(context: Any, _builder: Any, signature: Any, _arguments: Any) -> Any:
        return context.get_constant(signature.return_type, bits)

    return types.int64(entry), generate


def _address(context: Any, builder: Any, array_type: Any, arguments: Any, kind: Any) -> Any:
    """Give a pointer to `kind` at the byte offset arguments[1] of the uint8 array arguments[0]."""
    start = context.make_array(array_type)(context, builder, arguments[0]).data
    return builder.bitcast(builder.gep(start, [arguments[1]]), kind.as_pointer())


@intrinsic
def word_at(typing_context: Any, data: Any, at: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.word_at`: an unaligned load."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.load(_address(context, builder, signature.args[0], arguments, ir.IntType(64)))
        word.align = 1
        return word

    return types.uint64(data, types.int64), generate


def _mask(typing_context: Any, data: Any, stops: Callable[[Any, Any, Callable[[int], Any]], Any]) -> Any:
    """Build an intrinsic that compares 32 bytes at once and gives one bit for each."""
    del typing_context
    vector = ir.VectorType(ir.IntType(8), 32)

    def all_of(byte: int) -> Any:
        return ir.Constant(vector, [ir.Constant(ir.IntType(8), byte)] * 32)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = builder.load(_address(context, builder, signature.args[0], arguments, vector))
        loaded.align = 1
        bits = builder.bitcast(stops(builder, loaded, all_of), ir.IntType(32))
        return builder.zext(bits, ir.IntType(64))

    return types.uint64(data, types.int64), generate


@intrinsic
def text_stops(typing_context: Any, data: Any, at: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.text_stops`: a signed comparison finds bytes below the space and from 128 on at once."""

    def stops(builder: Any, loaded: Any, all_of: Callable[[int], Any]) -> Any:
        found = builder.icmp_signed("<", loaded, all_of(0x20))
        for byte in (0x22, 0x5C, 0x7F):
            found = builder.or_(found, builder.icmp_unsigned("==", loaded, all_of(byte)))
        return found

    return _mask(typing_context, data, stops)


@intrinsic
def digit_stops(typing_context: Any, data: Any, at: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.digit_stops`: what is 10 or more, less the digit 0."""

    def stops(builder: Any, loaded: Any, all_of: Callable[[int], Any]) -> Any:
        return builder.icmp_unsigned(">=", builder.sub(loaded, all_of(0x30)), all_of(10))

    return _mask(typing_context, data, stops)


@intrinsic
def trailing_zeros(typing_context: Any, bits: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.trailing_zeros`: one instruction."""
    del typing_context

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def count_bits(typing_context: Any, bits: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.count_bits`: one instruction."""
    del typing_context

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


@intrinsic
def high_product(typing_context: Any, left: Any, right: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.high_product`: a multiplication of 128 bits."""
    del typing_context

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def swapped(typing_context: Any, word: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.swapped`: one instruction."""
    del typing_context

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.uint64(types.uint64), generate
