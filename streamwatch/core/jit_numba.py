"""Numba's side of `jit`: compiled functions, intrinsics, names of record types that hold across processes.

Imported when a kernel is built, never before.
"""

# pyright: reportPrivateImportUsage=false, reportUnknownParameterType=false, reportMissingParameterType=false
# (numba and llvmlite are untyped)
from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, cast

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic as _untyped_intrinsic
from numba.core.registry import cpu_target

from streamwatch.core.jit_cache import KernelCache, cache_directory


def _mangled_by_layout(record: types.Record) -> tuple[str, tuple[str, ...]]:
    """Name a record type by its fields in the symbols of compiled functions.

    Numba numbers record types as a process meets them. Functions compiled for different layouts in different
    processes then share symbols, and once both come from the cache, one layout's code reads the other's
    records.
    """
    return "Record", (hashlib.blake2b(record.name.encode(), digest_size=8).hexdigest(),)


types.Record.mangling_args = property(_mangled_by_layout)  # type: ignore[method-assign]

intrinsic = cast("Callable[[Callable[..., Any]], Callable[..., Any]]", _untyped_intrinsic)


def dispatcher(function: Callable[..., Any], *, kept: bool, inlined: bool) -> Any:
    """Numba's form of a function; `kept` ones are looked up in the cache, where there is a place for one."""
    compiled: Any = numba.njit(error_model="numpy", forceinline=inlined)(function)
    directory = cache_directory() if kept else None
    if directory is not None:
        compiled._cache = KernelCache(function, directory)  # noqa: SLF001  (what numba's `cache=True` does)
    return compiled


def type_of(function: Callable[..., Any]) -> Any:
    """Type of an intrinsic, as numba finds it where compiled functions name it."""
    context: Any = cpu_target.typing_context
    context.refresh()
    return context.resolve_value_type(function)


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
