"""Numba's side of intrinsics: the LLVM code of operations on words, arrays and vectors of eight doubles.

Imported when a kernel that names one is built, never before.
"""

# pyright: reportMissingParameterType=false, reportPrivateImportUsage=false, reportUnknownParameterType=false
from __future__ import annotations

import operator
from collections.abc import Callable
from math import factorial
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import models, register_model

from streamwatch.core.jit.dispatcher import intrinsic


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
    """`jit.class_bits`: a constant that depends on the width of the entry's type."""
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


@intrinsic
def copy_bytes(typing_context: Any, out: Any, at: Any, data: Any, start: Any, count: Any) -> Any:  # noqa: ARG001  (types are fixed)
    """`jit.copy_bytes`: a call of the C library's function, where a loop becomes pages of vector code."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to = _address(context, builder, signature.args[0], arguments[:2], _BYTE)
        source = _address(context, builder, signature.args[2], arguments[2:4], _BYTE)
        cgutils.raw_memcpy(builder, to, source, arguments[4], 1)
        return context.get_dummy_value()

    return types.void(out, types.int64, data, types.int64, types.int64), generate


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
    """`jit.digit_stops`: bytes that are 10 or more after the digit 0 is subtracted."""

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
def either(typing_context: Any, condition: Any, then: Any, otherwise: Any) -> Any:
    """`jit.either`: a choice that the compiler is told not to turn into a branch."""
    del typing_context
    if not (condition == types.boolean and then == otherwise and isinstance(then, types.Number)):
        got = f"{condition}, {then}, {otherwise}"
        raise TypeError(f"a choice needs a boolean and two numbers of one type, got {got}")

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        chosen = builder.select(*arguments)
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
        return chosen

    return then(condition, then, otherwise), generate


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


# Vectors: eight doubles that compiled functions hold in registers, and operations on them.
#
# Sums and products are rounded one by one (none is fused), so that results do not depend on the processor.


WIDTH = 8
_DOUBLE = ir.DoubleType()
_WORD = ir.IntType(64)
_BYTE = ir.IntType(8)
_BYTES = ir.VectorType(_BYTE, 64)
_LANES = ir.VectorType(_DOUBLE, WIDTH)
_WORDS = ir.VectorType(_WORD, WIDTH)


class _Lanes(types.Type):
    """Type of a vector of eight doubles."""

    def __init__(self) -> None:
        super().__init__("lanes")


LANES = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _LANES)


def _all(value: float) -> Any:
    return ir.Constant(_LANES, [ir.Constant(_DOUBLE, float(value))] * WIDTH)


def _all_words(value: int) -> Any:
    return ir.Constant(_WORDS, [ir.Constant(_WORD, value)] * WIDTH)


def _operator(function: Callable[..., Any], instruction: str) -> None:
    """Compile the operator `a ∘ b` of two vectors to one instruction on all eight lanes."""

    @infer_global(function)  # pyright: ignore[reportOptionalCall, reportUntypedClassDecorator]  (untyped)
    class _Typed(ConcreteTemplate):  # pyright: ignore[reportUnusedClass]
        cases = [signature(LANES, LANES, LANES)]  # noqa: RUF012  (as numba asks for it)

    @lower_builtin(function, LANES, LANES)
    def _lowered(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        return getattr(builder, instruction)(*arguments)


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")


def _row(context: Any, builder: Any, array_type: Any, array: Any, row: Any) -> Any:
    """Give a pointer to row `row` of an array of shape (n, 8)."""
    start = context.make_array(array_type)(context, builder, array).data
    first = builder.gep(start, [builder.mul(row, ir.Constant(_WORD, WIDTH))])
    return builder.bitcast(first, _LANES.as_pointer())


def _check_rows(array: Any) -> None:
    if not (isinstance(array, types.Array) and array.dtype == types.float64 and array.layout == "C"):
        raise TypeError(f"vectors must be contiguous rows of float64, got {array}")


@intrinsic
def lanes_of(typing_context: Any, array: Any, row: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.lanes_of`: an unaligned load."""
    del typing_context
    _check_rows(array)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = builder.load(_row(context, builder, signature.args[0], *arguments))
        loaded.align = 8
        return loaded

    return LANES(array, types.int64), generate


@intrinsic
def put_lanes(typing_context: Any, array: Any, row: Any, values: Any) -> Any:  # noqa: ARG001
    """`jit.put_lanes`: an unaligned store."""
    del typing_context
    _check_rows(array)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _row(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], address).align = 8
        return context.get_dummy_value()

    return types.void(array, types.int64, LANES), generate


@intrinsic
def lanes(typing_context: Any, value: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.lanes`: one instruction."""
    del typing_context

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        one = builder.insert_element(ir.Constant(_LANES, ir.Undefined), arguments[0], ir.Constant(_WORD, 0))
        words = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [ir.Constant(ir.IntType(32), 0)] * WIDTH)
        return builder.shuffle_vector(one, ir.Constant(_LANES, ir.Undefined), words)

    return LANES(types.float64), generate


@intrinsic
def larger(typing_context: Any, left: Any, right: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.larger`: one instruction."""
    del typing_context

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)

    return LANES(LANES, LANES), generate


@intrinsic
def where_at_most(typing_context: Any, left: Any, right: Any, then: Any, otherwise: Any) -> Any:  # noqa: ARG001
    """`jit.where_at_most`: a comparison and a choice by it."""
    del typing_context

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        left, right, then, otherwise = arguments
        return builder.select(builder.fcmp_ordered("<=", left, right), then, otherwise)

    return LANES(LANES, LANES, LANES, LANES), generate


@intrinsic
def bits_at_most(typing_context: Any, left: Any, right: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.bits_at_most`: a comparison, and its eight answers as bits."""
    del typing_context

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        found = builder.bitcast(builder.fcmp_ordered("<=", *arguments), ir.IntType(WIDTH))
        return builder.zext(found, _WORD)

    return types.int64(LANES, LANES), generate


@intrinsic
def lanes_where(typing_context: Any, bits: Any, values: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.lanes_where`: a choice by eight bits."""
    del typing_context

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        chosen = builder.trunc(arguments[0], ir.IntType(WIDTH))
        chosen = builder.bitcast(chosen, ir.VectorType(ir.IntType(1), WIDTH))
        return builder.select(chosen, arguments[1], _all(0.0))

    return LANES(types.int64, LANES), generate


@intrinsic
def bytes_with(typing_context: Any, array: Any, bit: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.bytes_with`: an unaligned load, and a comparison of 64 bytes."""
    del typing_context
    if not (isinstance(array, types.Array) and array.dtype == types.uint8 and array.layout == "C"):
        raise TypeError(f"bytes must be a contiguous array of uint8, got {array}")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, bit = arguments
        start = context.make_array(signature.args[0])(context, builder, array).data
        loaded = builder.load(builder.bitcast(start, _BYTES.as_pointer()))
        loaded.align = 1
        mask = builder.shl(ir.Constant(_BYTE, 1), builder.trunc(bit, _BYTE))
        one = builder.insert_element(ir.Constant(_BYTES, ir.Undefined), mask, ir.Constant(_WORD, 0))
        zeros = ir.Constant(
            ir.VectorType(ir.IntType(32), _BYTES.count), [ir.Constant(ir.IntType(32), 0)] * _BYTES.count
        )
        every = builder.shuffle_vector(one, ir.Constant(_BYTES, ir.Undefined), zeros)
        none = ir.Constant(_BYTES, [ir.Constant(_BYTE, 0)] * _BYTES.count)
        return builder.bitcast(builder.icmp_unsigned("!=", builder.and_(loaded, every), none), _WORD)

    return types.int64(array, types.int64), generate


@intrinsic
def lane(typing_context: Any, values: Any, index: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.lane`: one instruction."""
    del typing_context

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.extract_element(*arguments)

    return types.float64(LANES, types.int64), generate


@intrinsic
def sum_in_pairs(typing_context: Any, values: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.sum_in_pairs`: neighbours are added three times."""
    del typing_context

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        left, width = arguments[0], WIDTH
        while width > 1:
            width //= 2
            halves = [
                builder.shuffle_vector(
                    left,
                    left,
                    ir.Constant(
                        ir.VectorType(ir.IntType(32), width),
                        [ir.Constant(ir.IntType(32), 2 * k + first) for k in range(width)],
                    ),
                )
                for first in (0, 1)
            ]
            left = builder.fadd(*halves)
        return builder.extract_element(left, ir.Constant(_WORD, 0))

    return types.float64(LANES), generate


class _Row(types.Type):
    """Type of a vector of doubles, one for each row of a nested array; of one if it has none."""

    def __init__(self, length: int) -> None:
        self.length = length
        super().__init__(f"row({length})")


@register_model(_Row)
class _RowModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _doubles(kind.length))


def _doubles(length: int) -> Any:
    return ir.VectorType(_DOUBLE, max(length, 1))


@intrinsic
def ones_of(typing_context: Any, array: Any) -> Any:
    """`jit.ones_of`: a constant."""
    del typing_context
    if not (isinstance(array, types.NestedArray) and array.dtype == types.float64):
        raise TypeError(f"vectors of ones are made for nested arrays of float64, got {array}")
    length = array.shape[0]

    def generate(_context: Any, _builder: Any, _signature: Any, _arguments: Any) -> Any:
        kind = _doubles(length)
        return ir.Constant(kind, [ir.Constant(_DOUBLE, 1.0)] * kind.count)

    return _Row(length)(array), generate


@intrinsic
def with_entry(typing_context: Any, row: Any, index: Any, value: Any) -> Any:  # noqa: ARG001
    """`jit.with_entry`: one instruction."""
    del typing_context

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        row, index, value = arguments
        return builder.insert_element(row, value, index)

    return row(row, types.int64, types.float64), generate


@intrinsic
def add_to_row(
    typing_context: Any,
    array: Any,
    index: Any,  # noqa: ARG001
    start: Any,  # noqa: ARG001
    row: Any,
    factor: Any,  # noqa: ARG001
) -> Any:
    """`jit.add_to_row`: an unaligned load, a multiplication, an addition, and a store."""
    del typing_context
    if not (
        isinstance(array, types.Array)
        and array.dtype == types.float64
        and array.ndim == 2
        and array.layout == "C"
    ):
        raise TypeError(f"vectors are added to contiguous rows of float64, got {array}")

    length_of_row = row.length

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if length_of_row == 0:
            return context.get_dummy_value()
        array, index, start, row, factor = arguments
        made = context.make_array(signature.args[0])(context, builder, array)
        length = cgutils.unpack_tuple(builder, made.shape, 2)[1]
        first = builder.gep(made.data, [builder.add(builder.mul(index, length), start)])
        address = builder.bitcast(first, row.type.as_pointer())
        one = builder.insert_element(ir.Constant(row.type, ir.Undefined), factor, ir.Constant(_WORD, 0))
        zeros = ir.Constant(
            ir.VectorType(ir.IntType(32), row.type.count), [ir.Constant(ir.IntType(32), 0)] * row.type.count
        )
        factors = builder.shuffle_vector(one, ir.Constant(row.type, ir.Undefined), zeros)
        before = builder.load(address)
        before.align = 8
        builder.store(builder.fadd(before, builder.fmul(row, factors)), address).align = 8
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, row, types.float64), generate


def _polynomial(builder: Any, x: Any, coefficients: list[float]) -> Any:
    """Compute Σ_k c_k·x^k by Horner's rule; coefficients from the lowest power on."""
    value = _all(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = builder.fadd(builder.fmul(value, x), _all(c))
    return value


_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
_LOG_TERMS = [
    float.fromhex(digits)
    for digits in (
        "0x1.5555555555593p-1",
        "0x1.999999997fa04p-2",
        "0x1.2492494229359p-2",
        "0x1.c71c51d8e78afp-3",
        "0x1.7466496cb03dep-3",
        "0x1.39a09d078c69fp-3",
        "0x1.2f112df3e5244p-3",
    )
]
"""Coefficients of log((1 + s)/(1 − s)) = 2s + s³·(…), |s| < .1716 (FreeBSD's e_log.c, error below 2^-58)."""
_MAGIC = 1.5 * 2.0**52
"""Summand that rounds a small double to an integer, which is then in the lowest bits of the sum."""
_ROOT_HALF = 0x3FE6A09E667F3BCD


@intrinsic
def log_lanes(typing_context: Any, values: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.log_lanes`: x = 2^k·(1 + f) with 1 + f in [√½, √2), as FreeBSD's e_log.c has it."""
    del typing_context

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], _WORDS)
        exponent = builder.ashr(builder.sub(bits, _all_words(_ROOT_HALF)), _all_words(52))
        mantissa = builder.bitcast(builder.sub(bits, builder.shl(exponent, _all_words(52))), _LANES)
        counted = builder.add(exponent, builder.bitcast(_all(_MAGIC), _WORDS))
        k = builder.fsub(builder.bitcast(counted, _LANES), _all(_MAGIC))
        f = builder.fsub(mantissa, _all(1.0))
        half_square = builder.fmul(builder.fmul(_all(0.5), f), f)
        s = builder.fdiv(f, builder.fadd(_all(2.0), f))
        z = builder.fmul(s, s)
        rest = builder.fmul(z, _polynomial(builder, z, _LOG_TERMS))
        small = builder.fadd(
            builder.fmul(s, builder.fadd(half_square, rest)), builder.fmul(k, _all(_LN2_LOW))
        )
        near = builder.fsub(f, builder.fsub(half_square, small))
        return builder.fadd(builder.fmul(k, _all(_LN2_HIGH)), near)

    return LANES(LANES), generate


@intrinsic
def exp_lanes(typing_context: Any, values: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """`jit.exp_lanes`: x = n·ln 2 + r with |r| ≤ ln 2/2, and Taylor's series of r up to r^13."""
    del typing_context

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        x = arguments[0]
        counted = builder.fadd(builder.fmul(x, _all(1.4426950408889634)), _all(_MAGIC))
        n = builder.fsub(counted, _all(_MAGIC))
        r = builder.fsub(builder.fsub(x, builder.fmul(n, _all(_LN2_HIGH))), builder.fmul(n, _all(_LN2_LOW)))
        grown = _polynomial(builder, r, [1.0 / factorial(k) for k in range(14)])
        power = builder.shl(builder.bitcast(counted, _WORDS), _all_words(52))
        return builder.bitcast(builder.add(builder.bitcast(grown, _WORDS), power), _LANES)

    return LANES(LANES), generate
