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

import hashlib
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final
from weakref import WeakKeyDictionary

import numba
from llvmlite.ir import Constant, IRBuilder
from llvmlite.ir.instructions import ExtractValue, InsertValue, PhiInstr
from numba.core import cgutils, errors, event, ir, itanium_mangler, typed_passes, types, untyped_passes
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.base import BaseContext
from numba.core.codegen import CPUCodeLibrary
from numba.core.lowering import Lower
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.targetconfig import ConfigStack, TargetConfig
from numba.core.transforms import canonicalize_cfg
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
_optimize_functions, _add_module = CPUCodeLibrary._optimize_functions, CPUCodeLibrary.add_ir_module
_extract_value = IRBuilder.extract_value
_declare_function, _arg_packer = BaseContext.declare_function, BaseContext.get_arg_packer
_start_event, _end_event = event.start_event, event.end_event
_post_process = PostProcessor.run
_name_of_arguments = itanium_mangler.mangle_args
_begin_structure, _attribute_of_structure = cgutils._StructProxy.__init__, cgutils._StructProxy.__getattr__
_member_of_structure, _value_of_structure = cgutils._StructProxy.__getitem__, cgutils._StructProxy._getvalue
_find_singly_assigned, _store_variable = Lower._find_singly_assigned_variable, Lower.storevar

_texts: dict[Any, str] = {}
_calls: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()
_array_classes: dict[Any, Any] = {}
_defaults: dict[type, dict[str, Any]] = {}
_packers: dict[Any, Any] = {}
_names: dict[Any, str] = {}
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


def declare_function(context: Any, module: Any, description: Any) -> Any:
    """Declare a function in a module where another one calls it, unless it is declared there."""
    known = module.globals.get(description.mangled_name)
    return _declare_function(context, module, description) if known is None else known


def arg_packer(context: Any, kinds: Any) -> Any:
    """Return what takes arguments of these types apart, all arrays of named tuples, for each call."""
    key = context.data_model_manager, tuple(kinds)
    packer = _packers.get(key)
    if packer is None:
        packer = _packers[key] = _arg_packer(context, kinds)
    return packer


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


def post_process(processor: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:  # noqa: FBT001, FBT002  (numba's)
    """Bring the blocks of a function into their canonical form, after a pass has changed them.

    Where variables begin and end to live is found out only for who asks. Statements that delete variables are
    left out where references are not counted: there is nothing to count down, and each would become a store
    of zeros for all that the variable holds.
    """
    code, options = processor.func_ir, ConfigStack.top_or_none()
    if options is None or options.nrt or code.is_generator:
        _post_process(processor, emit_dels, extend_lifetimes)
        return
    code.blocks = canonicalize_cfg(code.blocks)
    code.variable_lifetime = VariableLifetime(code.blocks)
    code.generator_info = None


def _assigned_in(block: Any) -> list[str]:
    return [statement.target.name for statement in block.body if type(statement) is ir.Assign]


def _read_by(value: Any) -> list[Any]:
    found: list[Any] = []
    _add_variables(value, found)
    return found


def find_singly_assigned(lower: Any) -> None:
    """Find the variables that need no memory: those assigned once, where every path to a use comes through.

    Numba finds those that are used in no other block. All others are written to memory and read from there at
    each use, whole tuples of arrays as well, until the optimizer takes them out again.
    """
    _find_singly_assigned(lower)
    if lower.func_ir.func_id.is_generator or lower.context.enable_nrt or lower._disable_sroa_like_opt:
        return
    blocks = lower.blocks
    assigned: dict[str, Any] = {}
    others: set[str] = set()
    for offset, block in blocks.items():
        for name in _assigned_in(block):
            if name in assigned:
                others.add(name)
            assigned[name] = offset
    dominators = compute_cfg_from_blocks(blocks).dominators()
    for offset, block in blocks.items():
        usable = {name for name, at in assigned.items() if at < offset and at in dominators[offset]}
        for statement in block.body:
            is_assignment = type(statement) is ir.Assign
            read = _read_by(statement.value) if is_assignment else statement.list_vars()
            others.update(variable.name for variable in read if variable.name not in usable)
            if is_assignment:
                usable.add(statement.target.name)
    lower._singly_assigned_vars |= assigned.keys() - others


def store_variable(lower: Any, value: Any, name: str, argidx: int | None = None) -> None:
    """Store the value of a variable; the one before is not read, as no references are counted."""
    memory = name not in lower._singly_assigned_vars
    if not memory or argidx is not None or lower.context.enable_nrt or lower._disable_sroa_like_opt:
        _store_variable(lower, value, name, argidx)
        return
    place = lower.getvar(name)
    if value.type != place.type.pointee:
        _store_variable(lower, value, name)  # it raises
    lower.builder.store(value, place)


def begin_structure(structure: Any, context: Any, builder: Any, value: Any = None, ref: Any = None) -> None:
    """Begin to generate code that uses a structure, such as an array.

    Numba writes its value to memory and reads the members that are used from there, until the optimizer takes
    the memory out again. Here they are taken from the value, which is written only if its address is needed.
    """
    if value is not None and ref is None and isinstance(structure, cgutils.ValueStructProxy):
        model = context.data_model_manager[structure._fe_type]
        kind = structure._get_be_type(model)
        if value.type == kind:
            vars(structure).update(
                _context=context, _builder=builder, _datamodel=model, _be_type=kind,
                _given=value, _given_in=builder.basic_block,
            )  # fmt: skip
            return
    _begin_structure(structure, context, builder, value, ref)


def attribute_of_structure(structure: Any, name: str) -> Any:
    """Return a member of a structure; what needs its memory asks for `_value` or `_outer_ref`."""
    if name not in ("_value", "_outer_ref") or "_given" not in vars(structure):
        return _attribute_of_structure(structure, name)
    builder, given = structure._builder, vars(structure).pop("_given")
    place = cgutils.alloca_once(builder, structure._be_type)
    if builder.basic_block is structure._given_in:
        builder.store(given, place)
    else:
        with builder.goto_block(structure._given_in):  # code further on is reached through its end
            builder.store(given, place)
    vars(structure).update(_value=place, _outer_ref=place)
    return place


def member_of_structure(structure: Any, index: int) -> Any:
    """Return a member of a structure by its index."""
    given = vars(structure).get("_given")
    if given is None:
        return _member_of_structure(structure, index)
    return structure._builder.extract_value(given, index)


def value_of_structure(structure: Any) -> Any:
    """Return the whole structure as a value."""
    given = vars(structure).get("_given")
    return _value_of_structure(structure) if given is None else given


@cache
def _arrays() -> tuple[Any, Any, Any]:
    """Numba's module on arrays, and two of its functions; loading it loads much that only compiling needs."""
    from numba.np import arrayobj  # noqa: PLC0415  (a start that finds all compiled does without it)

    return arrayobj, arrayobj.make_array, arrayobj.fix_integer_index


def make_array(kind: Any) -> Any:
    """Return the class of the structure of an array type, which numba makes anew for each use of an array."""
    made = _array_classes.get(kind)
    if made is None:
        made = _arrays()[1](kind)
        if type(kind) is types.Array and kind.ndim:
            made = type(made.__name__, (made,), {"shape": property(_shape_of(made))})
        _array_classes[kind] = made
    return made


def _shape_of(made: Any) -> Any:
    def shape(array: Any) -> Any:
        given = vars(array).get("_given")
        if given is None:
            return made.shape.fget(array)
        return array._builder.extract_value(given, array._datamodel.get_field_position("shape"))

    return shape


def extract_value(builder: Any, aggregate: Any, indices: Any, name: str = "") -> Any:
    """Take a member of a tuple or a structure; if it was put there by this function, it is at hand.

    A function begins by putting all members of its arguments, which may be more than a hundred, into tuples
    of arrays, and takes all out again for each function that it calls.
    """
    path = tuple(indices) if isinstance(indices, tuple | list) else (indices,)
    while type(aggregate) is InsertValue:
        place = tuple(aggregate.indices)
        shared = min(len(place), len(path))
        if place[:shared] != path[:shared]:
            aggregate = aggregate.aggregate
        elif len(place) > len(path):  # a part of the member was put there
            break
        else:
            aggregate, path = aggregate.value, path[shared:]
            if not path:
                return aggregate
    return _extract_value(builder, aggregate, path, name)


_AGGREGATING: Final = frozenset({InsertValue, ExtractValue})


def drop_unread(function: Any) -> None:
    """Drop instructions of an LLVM function that make tuples and structures, or take members, for nobody."""
    readers: Counter[int] = Counter()
    made: list[Any] = []
    for block in function.blocks:
        for each in block.instructions:
            kind = type(each)
            read = (value for value, _ in each.incomings) if kind is PhiInstr else each.operands
            readers.update(id(value) for value in read if type(value) in _AGGREGATING)
            if kind in _AGGREGATING:
                made.append(each)
    unread = [each for each in made if not readers[id(each)]]
    dropped: set[int] = set()
    while unread:
        each = unread.pop()
        dropped.add(id(each))
        for value in each.operands:
            if type(value) in _AGGREGATING:
                readers[id(value)] -= 1
                if not readers[id(value)]:
                    unread.append(value)
    if dropped:
        for block in function.blocks:
            block.instructions = [each for each in block.instructions if id(each) not in dropped]


def add_module(library: Any, module: Any) -> None:
    """Add the code of a function to a library: as text, which LLVM reads."""
    for function in module.functions:
        drop_unread(function)
    _add_module(library, module)


def optimize_functions(library: Any, module: Any) -> None:
    """Optimize each function of a module by itself; numba does it for those of other modules, too."""
    module.data_layout = library._codegen._data_layout
    manager, builder = library._codegen._function_pass_manager()
    for function in module.functions:
        if not function.is_declaration:
            manager.run(function, builder)


_ROOMS: Final = "comparisons dependence detectors forgetting kernel memory recovery verdicts"
FROM_START: Final = tuple(f"streamwatch.core.estimators.{room}" for room in _ROOMS.split())
"""Rooms and files whose compiled functions count every index from the start of an array.

Numba adds the array's length to an index below 0, and so tests each: a sixth of the kernel's time.
"""


def index_from_start(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
    """Return an index as it is, if it is not a number in the source, which may be negative."""
    if not kind.signed or isinstance(index, Constant):
        return _arrays()[2](context, builder, kind, index, size)
    return context.cast(builder, index, kind, types.intp)


LONG_NAME: Final = 48
"""Number of characters from which on the type of an argument is named by a hash in a symbol."""


def name_of_arguments(kinds: Any) -> str:
    """Name types of arguments in the symbol of a function; a hash stands for each long name.

    Named tuples of arrays of records have names of thousands of characters, which would stand at each call.
    A caller takes the symbol from what it calls, so functions that are compiled without this may call others.
    """
    named = ""
    for kind in kinds:
        if kind not in _names:
            text = _name_of_arguments((kind,))
            if len(text) > LONG_NAME:
                digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
                text = itanium_mangler.mangle_identifier(f"of_{digest}")
            _names[kind] = text
        named += _names[kind]
    return named


_REPLACED: Final[list[tuple[Any, str, Any]]] = [
    (types.Record, "__repr__", text_of_record),
    (BaseFunction, "get_call_type", call_type),
    (ir.Stmt, "list_vars", variables_of_statement),
    (ir.Expr, "list_vars", variables_of_expression),
    (TargetConfig, "values", values_of_options),
    (BaseContext, "get_abi_sizeof", abi_size),
    (BaseContext, "declare_function", declare_function),
    (BaseContext, "get_arg_packer", arg_packer),
    (event, "start_event", start_event),
    (event, "end_event", end_event),
    (itanium_mangler, "mangle_args", name_of_arguments),
    (PostProcessor, "run", post_process),
    (Lower, "_find_singly_assigned_variable", find_singly_assigned),
    (Lower, "storevar", store_variable),
    (cgutils._StructProxy, "__init__", begin_structure),
    (cgutils._StructProxy, "__getattr__", attribute_of_structure),
    (cgutils._StructProxy, "__getitem__", member_of_structure),
    (cgutils._StructProxy, "_getvalue", value_of_structure),
    (CPUCodeLibrary, "_optimize_functions", optimize_functions),
    (CPUCodeLibrary, "add_ir_module", add_module),
    (IRBuilder, "extract_value", extract_value),
]
if _coloured := getattr(errors, "HighlightColorScheme", None):  # absent where nothing colours
    _REPLACED.append((_coloured, "_markup", uncoloured))


@contextmanager
def sparing(module: str = "") -> Generator[None]:
    """Replace numba's functions by those above while a function of a module is compiled, one at a time.

    Nothing is replaced for other users of numba in the process, nor in versions that are not `KNOWN`.
    """
    if not IS_KNOWN:
        yield
        return
    arrays, _, fixed = _arrays()
    index = index_from_start if module.startswith(FROM_START) else fixed
    replaced = [*_REPLACED, (arrays, "make_array", make_array), (arrays, "fix_integer_index", index)]
    before = [(owner, name, vars(owner)[name]) for owner, name, _ in replaced]
    for owner, name, function in replaced:
        setattr(owner, name, function)
    try:
        yield
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)
