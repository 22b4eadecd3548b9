"""Numba's side of the decorators: compiled functions, and names of record types that hold across processes.

Imported when a kernel is built, never before.
"""

# pyright: reportPrivateImportUsage=false, reportUnknownParameterType=false, reportMissingParameterType=false
# (numba and llvmlite are untyped)
from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, cast

import numba
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.extending import intrinsic as _untyped_intrinsic
from numba.core.imputils import lower_constant
from numba.core.registry import cpu_target
from numba.extending import models, register_model

from streamwatch.core.jit.cache import KernelCache, cache_directory
from streamwatch.core.jit.sparing import IS_KNOWN, LEFT_OUT, sparing


def _mangled_by_layout(record: types.Record) -> tuple[str, tuple[str, ...]]:
    """Name a record type by its fields in the symbols of compiled functions.

    Numba numbers record types as a process meets them. Functions compiled for different layouts in different
    processes then share symbols, and once both come from the cache, one layout's code reads the other's
    records.
    """
    return "Record", (hashlib.blake2b(record.name.encode(), digest_size=8).hexdigest(),)


types.Record.mangling_args = property(_mangled_by_layout)  # type: ignore[method-assign]

intrinsic = cast("Callable[[Callable[..., Any]], Callable[..., Any]]", _untyped_intrinsic)


class _WithoutEnvironment:
    """Code generator that numba asks, once code is emitted, to store the module's globals."""

    def set_env(self, _name: str, _environment: object) -> None:
        """Store nothing: there is no code that could read it."""


class _LinkedLibrary(JITCodeLibrary):
    """Code of a function that only compiled functions call: it is linked into its callers, and not emitted.

    Numba optimizes and emits every function by itself before it links it, so that a call seven deep is
    optimized seven times; here only the entry is optimized, with all that it calls.
    """

    def _optimize_final_module(self) -> None:
        """Do nothing: the code is optimized in the entry."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002  (numba passes it by name)
        """Return 0: there is no code of the function outside its callers."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Return a generator that does not store the function's environment."""
        return _WithoutEnvironment()


COLLECTED_EVERY: Final = 20_000
"""Number of objects made between two collections of garbage while a function is being compiled."""


@contextmanager
def _collecting_seldom() -> Generator[None]:
    """Collect garbage less often: a compiler makes many objects, and most of them stay."""
    before = gc.get_threshold()
    if before[0]:  # 0: garbage is not collected
        gc.set_threshold(max(before[0], COLLECTED_EVERY), 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _SparingCompiler(Compiler):
    """Numba's compiler without some of its passes, and with fewer collections of garbage."""

    def define_pipelines(self) -> Any:
        """Return numba's passes without those in `LEFT_OUT`."""
        pipelines: Any = super().define_pipelines()
        for each in pipelines if IS_KNOWN else ():
            each.passes = [one for one in each.passes if one[0] not in LEFT_OUT]
        return pipelines

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function, and those that it calls."""
        with _collecting_seldom(), sparing(func.__module__):
            return super().compile_extra(func)


class _LinkingCompiler(_SparingCompiler):
    """Numba's compiler, whose result is a `_LinkedLibrary`."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *others: Any) -> None:
        if library is None:
            library = _LinkedLibrary(targetctx.codegen(), "linked")
        super().__init__(typingctx, targetctx, library, *others)


def dispatcher(function: Callable[..., Any], *, kept: bool, inlined: bool, unlocked: bool = False) -> Any:
    """Numba's form of a function; `kept` ones are looked up in the cache, if there is one.

    Only those get a wrapper that Python can call; none gets one for C. References to arrays are not counted:
    Python holds its arguments for as long as a call takes, and compiled functions neither make arrays (numba
    refuses to compile one that does) nor return them (`KernelCache` refuses to store one).
    """
    njit: Any = numba.njit  # its overloads know of fewer options than it takes
    compiled: Any = njit(
        error_model="numpy",
        forceinline=inlined,
        nogil=unlocked,
        no_cpython_wrapper=not kept,
        no_cfunc_wrapper=True,
        _nrt=False,
        pipeline_class=_SparingCompiler if kept else _LinkingCompiler,
    )(function)
    by_values = compiled.get_call_template

    def by_types(arguments: Any, keywords: Any) -> Any:
        """Compile a call for the types of its arguments, whatever literals are written there."""
        keywords = {name: types.unliteral(each) for name, each in keywords.items()}
        return by_values(tuple(map(types.unliteral, arguments)), keywords)

    compiled.get_call_template = by_types
    if kept:  # what numba's `cache=True` does
        compiled._cache = KernelCache(function, cache_directory())  # noqa: SLF001
    return compiled


def type_of(function: Callable[..., Any]) -> Any:
    """Type of an intrinsic, as numba finds it where compiled functions name it."""
    context: Any = cpu_target.typing_context
    context.refresh()
    return context.resolve_value_type(function)


class _Choice(types.Callable):
    """Type of `jit.WhereFilled`: calls of one of two dispatchers, by the type of the first argument."""

    def __init__(self, field: str, function: Any, otherwise: Any) -> None:
        self._field = field
        self._function = types.Dispatcher(function)
        self._otherwise = types.Dispatcher(otherwise)
        super().__init__(f"where_filled({field}, {id(function)}, {id(otherwise)})")

    def _of(self, arguments: Any) -> Any:
        filled = arguments[0].fields[self._field].type.shape[0] > 0
        return self._function if filled else self._otherwise

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Return the signature of the call, which is compiled now."""
        return self._of(args).get_call_type(context, args, kws)

    def get_call_signatures(self) -> Any:
        """Return no signatures: none is known before the call."""
        return (), True

    def get_impl_key(self, sig: Any) -> Any:
        """Key of the compiled form for the call."""
        return self._of(sig.args).get_impl_key(sig)


register_model(_Choice)(models.OpaqueModel)


@lower_constant(_Choice)
def _no_value(context: Any, _builder: Any, _type: Any, _value: Any) -> Any:
    """Return a dummy value, as running code needs none."""
    return context.get_dummy_value()


def choice(field: str, function: Any, otherwise: Any) -> Any:
    """Type of a `jit.WhereFilled`."""
    return _Choice(field, function.dispatcher, otherwise.dispatcher)
