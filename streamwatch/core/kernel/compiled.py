"""How the kernel is compiled: one decorator for entry points, one for inner functions, and the prefetch hint.

Numba stamps a cached function with its own file only, so a change in an inner function's file would go
unnoticed. The cache directory therefore carries a hash of all kernel sources.
"""

# pyright: reportPrivateImportUsage=false, reportUnknownParameterType=false, reportMissingParameterType=false
# (numba and llvmlite are untyped)
from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic as _untyped_intrinsic

from streamwatch.core.kernel.cache import KernelCache

Function = TypeVar("Function", bound=Callable[..., Any])


def _sources_hash() -> str:
    """One hash over every source file of the kernel and the versions that decide what it compiles to."""
    digest = hashlib.blake2b(f"numba {numba.__version__} numpy {np.__version__}".encode(), digest_size=8)
    folder = Path(__file__).parent
    for source in sorted(folder.rglob("*.py")):
        digest.update(source.relative_to(folder).as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _cache_directory() -> str | None:
    """Where compiled functions are kept between runs, or None where there is no such place.

    `NUMBA_CACHE_DIR`, else `XDG_CACHE_HOME`/streamwatch, else ~/.cache/streamwatch; below it one directory
    per state of the kernel's sources. A directory that is there and cannot be written to, as in an image, is
    read and not added to.
    """
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    base = os.environ.get("NUMBA_CACHE_DIR") or f"{home}/streamwatch"
    try:
        directory = Path(base).expanduser() / f"kernel-{_sources_hash()}"
    except RuntimeError:  # this user has no home
        return None
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        return str(directory) if os.access(directory, os.R_OK | os.X_OK) else None
    return str(directory)


def _mangled_by_layout(record: types.Record) -> tuple[str, tuple[str, ...]]:
    """Name a record type by its fields in the symbols of compiled functions.

    Numba numbers record types as a process meets them. Functions compiled for different layouts in different
    processes then share symbols, and once both come from the cache, one layout's code reads the other's
    records.
    """
    return "Record", (hashlib.blake2b(record.name.encode(), digest_size=8).hexdigest(),)


types.Record.mangling_args = property(_mangled_by_layout)  # type: ignore[method-assign]

intrinsic = cast("Callable[[Callable[..., Any]], Callable[..., Any]]", _untyped_intrinsic)

CACHE_DIRECTORY = _cache_directory()
"""Where compiled functions are kept between runs; None when there is no such place (every start compiles)."""


def entry(function: Function) -> Function:
    """Compile a function called from Python, kept in the cache."""
    if CACHE_DIRECTORY is None:
        return cast("Function", numba.njit(error_model="numpy")(function))
    settings: Any = numba.config
    configured = settings.CACHE_DIR
    settings.CACHE_DIR = CACHE_DIRECTORY  # read when the function is decorated, only then
    try:
        compiled: Any = numba.njit(error_model="numpy")(function)
        compiled._cache = KernelCache(function)  # noqa: SLF001  (what numba's `cache=True` does)
        return cast("Function", compiled)
    finally:
        settings.CACHE_DIR = configured


def inner(function: Function) -> Function:
    """Compile a function called from compiled functions, on rare paths; it lives in its callers' cache."""
    return cast("Function", numba.njit(error_model="numpy")(function))


def hot(function: Function) -> Function:
    """Compile a function called for every outcome: always inlined, which saves 30 ns an outcome."""
    return cast("Function", numba.njit(error_model="numpy", forceinline=True)(function))


@intrinsic
def borrowed(typing_context: Any, array: Any) -> Any:
    """The same array without reference counting, for a callee whose caller holds it.

    Counting is atomic, and was a third of the time per outcome.
    """
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        copy = context.make_array(signature.return_type)(context, builder, arguments[0])
        copy.meminfo = cgutils.get_null_value(copy.meminfo.type)
        copy.parent = cgutils.get_null_value(copy.parent.type)
        return copy._getvalue()  # noqa: SLF001  (numba's own name for it)

    return array(array), generate


@intrinsic
def prefetch(typing_context: Any, array: Any, offset: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """Ask the processor to bring in the cache line `offset` bytes after the start of `array`; a hint only."""
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
    """Bits of a class in a ring entry, or in the entries of rings: 12 of 32, 28 of 64."""
    del typing_context
    kind = entry.dtype if isinstance(entry, types.Array) else entry
    bits = 12 if kind.bitwidth == 32 else 28

    def generate(context: Any, _builder: Any, signature: Any, _arguments: Any) -> Any:
        return context.get_constant(signature.return_type, bits)

    return types.int64(entry), generate
