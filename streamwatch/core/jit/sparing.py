"""Replacements of functions that numba calls again and again while it compiles.

Two thirds of the time that compiling takes are numba's own Python. `sparing` replaces a few of its functions
by ones with the same results while a function of streamwatch is compiled. A test compares each with the one
it replaces, for the versions of numba that are `KNOWN`. Imported when a kernel is built, never before.
"""

# pyright: reportPrivateUsage=false, reportPrivateImportUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# (numba and llvmlite are untyped)
# ruff: noqa: SLF001  (what is replaced is numba's own)
from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary

import numba
from numba.core import errors, event, ir, typed_passes, types, untyped_passes
from numba.core.base import BaseContext
from numba.core.targetconfig import ConfigStack, TargetConfig
from numba.core.types.functions import BaseFunction

KNOWN: Final = ("0.68",)
"""Versions of numba whose functions were compared with those that replace them."""
IS_KNOWN: Final = numba.__version__.rpartition(".")[0] in KNOWN

LEFT_OUT: Final = frozenset(
    {
        untyped_passes.InlineClosureLikes,
        untyped_passes.MakeFunctionToJitFunction,
        typed_passes.InlineOverloads,
    }
)
"""Passes for closures, comprehensions, and functions that numba inlines before their types are known.

Compiled functions here have none of these; numba refuses to compile one that has, without the passes.
"""

INHERITED: Final = ("nrt", "fastmath", "error_model", "forceinline")
"""Options of a caller that numba passes on to those of its own functions that it compiles for the call."""

_LOCKS: Final = frozenset({"numba:compiler_lock", "numba:llvm_lock"})
_WITHOUT_VARIABLES: Final = frozenset(
    {str, int, float, bool, type(None), ir.Loc, ir.Const, ir.Global, ir.FreeVar, ir.Arg}
)

_text_of_record = types.Record.__repr__
_call_type = BaseFunction.get_call_type
_variables_of_value = ir.Inst._rec_list_vars

_abi_size = BaseContext.get_abi_sizeof
_start_event, _end_event = event.start_event, event.end_event

_texts: dict[Any, str] = {}
_calls: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()
_defaults: dict[type, dict[str, Any]] = {}
_sizes: dict[Any, int] = {}


def text_of_record(record: Any) -> str:
    """Return the text of a record type, which each pass asks for."""
    text = _texts.get(record)
    if text is None:
        text = _texts[record] = _text_of_record(record)
    return text


def call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """Return the signature of a call of one of numba's functions, by types of arguments and caller's options.

    Numba tries each form of the function, with and without literals, and again whenever a type in the caller
    is found. That a call has no signature is not remembered.
    """
    options = ConfigStack.top_or_none()
    chosen = None if options is None else tuple(str(getattr(options, name)) for name in INHERITED)
    key = context, tuple(args), tuple(kws.items()), chosen
    known = _calls.setdefault(function, {})
    found = known.get(key)
    if found is None:
        found = known[key] = _call_type(function, context, args, kws)
    return found


def _add_variables(value: Any, found: list[Any]) -> None:
    kind = type(value)
    if kind is ir.Var:
        found.append(value)
    elif kind in _WITHOUT_VARIABLES:
        return
    elif kind is ir.Expr:
        for each in value._kws.values():
            _add_variables(each, found)
    elif kind is tuple or kind is list:
        for each in value:
            _add_variables(each, found)
    elif kind is dict:
        for each in value.values():
            _add_variables(each, found)
    else:
        found += _variables_of_value(value, value)


def variables_of_statement(statement: Any) -> list[Any]:
    """Variables that a statement of numba's intermediate code names, in order."""
    found: list[Any] = []
    for each in statement.__dict__.values():
        _add_variables(each, found)
    return found


def variables_of_expression(expression: Any) -> list[Any]:
    """Variables that an expression names, in order."""
    found: list[Any] = []
    for each in expression._kws.values():
        _add_variables(each, found)
    return found


def values_of_options(options: Any) -> dict[str, Any]:
    """Return all options of the compiler, with the default of those not chosen."""
    kind = type(options)
    if kind not in _defaults:
        _defaults[kind] = {name: option.default for name, option in kind.options.items()}
    return _defaults[kind] | options._values


def abi_size(context: Any, kind: Any) -> int:
    """Return the bytes that an LLVM type takes; LLVM has to parse the type to find out."""
    key = context.target_data, str(kind)
    size = _sizes.get(key)
    if size is None:
        size = _sizes[key] = _abi_size(context, kind)
    return size


def start_event(kind: str, data: Any = None) -> None:
    """Report to numba's listeners anything but locks, which it takes hundreds of thousands of times."""
    if kind not in _LOCKS:
        _start_event(kind, data)


def end_event(kind: str, data: Any = None, exc_details: Any = None) -> None:
    """Report the end of what `start_event` reported."""
    if kind not in _LOCKS:
        _end_event(kind, data, exc_details)


def uncoloured(_scheme: Any, text: str, color: object = None, style: object = None) -> str:  # noqa: ARG001
    """Return the text of an error without colours: most errors are dropped, as another form fits."""
    return text


_REPLACED: Final[list[tuple[Any, str, Any]]] = [
    (types.Record, "__repr__", text_of_record),
    (BaseFunction, "get_call_type", call_type),
    (ir.Stmt, "list_vars", variables_of_statement),
    (ir.Expr, "list_vars", variables_of_expression),
    (TargetConfig, "values", values_of_options),
    (BaseContext, "get_abi_sizeof", abi_size),
    (event, "start_event", start_event),
    (event, "end_event", end_event),
]
if _coloured := getattr(errors, "HighlightColorScheme", None):  # absent where nothing colours
    _REPLACED.append((_coloured, "_markup", uncoloured))


@contextmanager
def sparing() -> Generator[None]:
    """Replace numba's functions by those above while something is compiled, which numba does one at a time.

    Nothing is replaced for other users of numba in the process, nor in versions that are not `KNOWN`.
    """
    if not IS_KNOWN:
        yield
        return
    before = [(owner, name, vars(owner)[name]) for owner, name, _ in _REPLACED]
    for owner, name, function in _REPLACED:
        setattr(owner, name, function)
    try:
        yield
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)
