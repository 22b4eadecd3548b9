"""What replaces functions of numba's says what they say."""

from __future__ import annotations

import inspect
import operator
import re
import subprocess
import sys
from itertools import product
from typing import Any

import numba
import numpy as np
import pytest
from llvmlite import binding
from llvmlite import ir as llvm
from numba.core import cgutils, compiler, cpu, errors, event, funcdesc, ir, types
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import DefaultPassBuilder, Flags
from numba.core.lowering import Lower
from numba.core.postproc import PostProcessor
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack

from streamwatch.core.estimators.forgetting.adwin import check
from streamwatch.core.estimators.kernel.fold import fold
from streamwatch.core.estimators.registers.cohorts.observe import observe
from streamwatch.core.jit import entry, sparing
from streamwatch.core.jit.dispatcher import _SparingCompiler

RECORD = np.dtype(
    [("a", np.int64), ("b", np.float32, (3,)), ("c", [("d", np.uint8), ("e", np.int16, (2, 2))])]
)


@pytest.fixture(autouse=True)
def _replaced():
    assert sparing.IS_KNOWN, "compare its functions with those of this version of numba, and add it to KNOWN"
    with sparing.sparing():
        yield


def test_numba_is_as_it_was_once_something_is_compiled() -> None:
    assert types.Record.__repr__ is sparing.text_of_record
    with sparing.sparing():  # for a function that is called
        assert types.Record.__repr__ is sparing.text_of_record
    assert types.Record.__repr__ is sparing.text_of_record
    code = (
        "from numba.core import types; original = types.Record.__repr__\n"
        "from streamwatch.core.jit import entry\n"
        "assert entry(lambda n: n + 1)(1) == 2\n"
        "assert types.Record.__repr__ is original\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_text_of_a_record_is_numbas_each_time() -> None:
    record: Any = numba.from_dtype(RECORD)
    other: Any = numba.from_dtype(np.dtype([("a", np.int32)]))
    for each in (record, other, record):
        assert repr(each) == sparing._text_of_record(each)
    assert repr(record) != repr(other)


def _context() -> Any:
    context: Any = cpu_target.typing_context
    context.refresh()
    return context


@pytest.mark.parametrize(
    ("function", "numbers"),
    [
        (operator.add, (2,)),
        (operator.truediv, (2,)),
        (operator.getitem, (2,)),
        (max, (1, 2)),
        (range, (1, 2)),
        (abs, (1,)),
        (len, (1,)),
        (np.sqrt, (1,)),
    ],
)
def test_calls_have_the_signatures_that_numba_finds(function: Any, numbers: tuple[int, ...]) -> None:
    context = _context()
    kind = context.resolve_value_type(function)
    arguments = [
        types.int64,
        types.uint32,
        types.float64,
        types.boolean,
        types.literal(3),
        types.Array(types.int32, 1, "C"),
        types.UniTuple(types.int64, 2),
    ]
    found = 0
    with ConfigStack().enter(Flags()):
        for number, _again in product(numbers, range(2)):
            for given in product(arguments, repeat=number):
                try:
                    expected: Any = sparing._call_type(kind, context, given, {})
                except errors.NumbaError:
                    with pytest.raises(errors.NumbaError):
                        kind.get_call_type(context, given, {})
                    continue
                found += 1
                signature = kind.get_call_type(context, given, {})
                assert signature == expected
                assert signature.return_type == expected.return_type
                assert kind.get_impl_key(signature)
    assert found > 1


def test_calls_under_other_options_are_resolved_anew() -> None:
    context, given = _context(), (types.int64, types.int64)
    kind = context.resolve_value_type(max)
    plain, inlined = Flags(), Flags()
    inlined.forceinline = True
    before = len(sparing._calls.get(kind, {}))
    for flags in (plain, inlined, plain):
        with ConfigStack().enter(flags):
            kind.get_call_type(context, given, {})
    assert len(sparing._calls[kind]) - before in (1, 2)  # another test may have asked under the plain ones
    keys = [key for key in sparing._calls[kind] if key[1] == given]
    assert len({key[-1] for key in keys}) == len(keys) >= 2


def test_all_options_that_callers_pass_on_are_distinguished() -> None:
    passed_on = re.findall(r'inherit_if_not_set\("(\w+)"', inspect.getsource(cpu))
    assert set(passed_on) == set(sparing.INHERITED)


@pytest.mark.parametrize("function", [fold, observe, check])
def test_statements_name_the_variables_that_numba_lists(function: Any) -> None:
    code: Any = compiler.run_frontend(function.py_func)
    seen = 0
    for block in code.blocks.values():
        for statement in block.body:
            assert statement.list_vars() == sparing._variables_of_value(statement, statement.__dict__)
            seen += len(statement.list_vars())
            if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr):
                value = statement.value
                assert value.list_vars() == sparing._variables_of_value(value, value._kws)
    assert seen > 20


def test_parts_of_statements_name_their_variables_in_order() -> None:
    place = ir.Loc("here", 1)
    first, second, third = (ir.Var(None, name, place) for name in "abc")
    call = ir.Expr.call(first, [second, second], (("key", third),), place, vararg=third)
    assert [each.name for each in call.list_vars()] == ["a", "b", "b", "c", "c"]
    assert [each.name for each in ir.Assign(call, third, place).list_vars()] == ["a", "b", "b", "c", "c", "c"]
    assert ir.Assign(ir.Const(1, place), third, place).list_vars() == [third]
    assert ir.Jump(3, place).list_vars() == []
    assert ir.Yield(second, place, 0).list_vars() == [second]
    assert ir.Assign(ir.Yield(second, place, 0), third, place).list_vars() == [second, third]


def _uncounted() -> Flags:
    flags = Flags()
    flags.nrt = False
    return flags


@pytest.mark.parametrize("function", [fold, observe, check])
def test_blocks_are_numbas_without_the_ends_of_variables(function: Any) -> None:
    own, numbas = (compiler.run_frontend(function.py_func) for _ in range(2))
    with ConfigStack().enter(_uncounted()):
        PostProcessor(own).run(True)
    sparing._post_process(PostProcessor(numbas), True)
    removed = sum(len(list(block.find_insts(ir.Del))) for block in numbas.blocks.values())
    assert removed
    PostProcessor(numbas).remove_dels()
    assert own.blocks.keys() == numbas.blocks.keys()
    for offset, block in own.blocks.items():
        assert [str(each) for each in block.body] == [str(each) for each in numbas.blocks[offset].body]
    assert own.variable_lifetime.livemap == numbas.variable_lifetime.livemap


def test_where_references_are_counted_variables_end() -> None:
    counted = Flags()
    counted.nrt = True
    code = compiler.run_frontend(check.py_func)
    with ConfigStack().enter(counted):
        PostProcessor(code).run(True)
    assert any(list(block.find_insts(ir.Del)) for block in code.blocks.values())


def _walk(numbers, limit, out):
    """Assign some variables once, where every use comes through, and others on several ways."""
    total = numbers[0]
    times = 2 * limit
    if limit > 1:
        extra = times + 1
        for k in range(limit):
            total += extra + k
    else:
        extra = -times
        total -= extra
    out[0], out[1] = total, times
    return extra + times


def test_variables_without_memory_are_those_assigned_once_before_every_use() -> None:
    seen: dict[str, Any] = {}

    def note(lower: Any) -> None:
        sparing._find_singly_assigned(lower)
        seen["numba"] = set(lower._singly_assigned_vars)
        sparing.find_singly_assigned(lower)
        seen["own"], seen["blocks"] = set(lower._singly_assigned_vars), lower.blocks

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sparing, "_REPLACED", [*sparing._REPLACED, (Lower, "_find_singly_assigned_variable", note)]
        )
        walked: Any = numba.njit(_nrt=False, pipeline_class=_SparingCompiler)(_walk)  # kept nowhere
        for limit in (0, 1, 2, 5):
            out, expected = np.zeros((2, 2), np.int64)
            assert walked(np.arange(3, 6), limit, out) == _walk(np.arange(3, 6), limit, expected)
            assert out.tolist() == expected.tolist()
    assert seen["own"] > seen["numba"]
    assert {"numbers", "out", "limit", "times"} <= seen["own"]
    assigned = [
        each.target.name
        for block in seen["blocks"].values()
        for each in block.body
        if isinstance(each, ir.Assign)
    ]
    assert {name for name in assigned if assigned.count(name) > 1}.isdisjoint(seen["own"])
    assert any(assigned.count(name) > 1 for name in assigned if name.startswith(("total", "extra")))


def _array_in_code() -> tuple[Any, Any, Any]:
    """Begin a function that is given an array: its structure, builder and module."""
    context: Any = cpu_target.target_context
    kind = types.Array(types.int64, 2, "C")
    module = llvm.Module()
    value = context.get_value_type(kind)
    function = llvm.Function(module, llvm.FunctionType(llvm.VoidType(), [value]), "f")
    builder = llvm.IRBuilder(function.append_basic_block("entry"))
    return context.make_array(kind)(context, builder, function.args[0]), builder, module


def test_members_of_an_array_are_taken_from_its_value_without_memory() -> None:
    array, builder, module = _array_in_code()
    sizes = cgutils.unpack_tuple(builder, array.shape)
    assert len(sizes) == 2
    assert array.data.type == llvm.IntType(64).as_pointer()
    assert array._getvalue() is builder.function.args[0]
    assert array[array._datamodel.get_field_position("itemsize")].type == llvm.IntType(64)
    assert "alloca" not in str(module)


def test_an_array_whose_address_is_needed_is_written_where_it_was_given() -> None:
    array, builder, module = _array_in_code()
    later = builder.append_basic_block("later")
    builder.branch(later)
    builder.position_at_end(later)
    array.nitems = llvm.Constant(llvm.IntType(64), 7)
    assert array.nitems is not None
    builder.ret_void()
    first, second = str(module).split("later:", 1)
    assert "store {" in first.split("entry:", 1)[1]
    assert "store {" not in second
    assert "store i64 7" in second
    assert "load i64" in second
    binding.parse_assembly(str(module)).verify()


def _index_code(fix: Any, kind: Any, *index: Any) -> str:
    """Return the code that makes an index of an array out of a number of a type."""
    word = llvm.IntType(64)
    function = llvm.Function(llvm.Module(), llvm.FunctionType(word, [word, word]), "f")
    builder = llvm.IRBuilder(function.append_basic_block())
    builder.ret(fix(cpu_target.target_context, builder, kind, *(*index, *function.args)[:2]))
    return str(function)


def test_the_kernel_counts_every_index_from_the_start_and_other_rooms_do_not() -> None:
    arrays, _, numbas = sparing._arrays()
    for module in ("streamwatch.core.join.entries", "streamwatch.core.estimators.registers.cohorts.life", ""):
        with sparing.sparing(module):
            assert arrays.fix_integer_index is numbas
    with sparing.sparing("streamwatch.core.estimators.kernel.fold"):
        found = arrays.fix_integer_index
    assert "select" in _index_code(numbas, types.int64)
    assert "select" not in _index_code(found, types.int64)
    last = llvm.Constant(llvm.IntType(64), -1)
    for index in ((types.uint64,), (types.int64, last)):
        assert _index_code(found, *index) == _index_code(numbas, *index)


def test_a_member_that_an_array_does_not_have_is_refused() -> None:
    array, _, _ = _array_in_code()
    with pytest.raises(KeyError):
        _ = array.rows
    with pytest.raises(AttributeError):
        _ = array._rows


def test_arguments_are_taken_apart_as_numba_does_each_time() -> None:
    context: Any = cpu_target.target_context
    array = types.Array(types.int64, 2, "C")
    for kinds in ((array, types.int32), (types.UniTuple(array, 2),), (array, types.int32), ()):
        expected = sparing._arg_packer(context, kinds)
        packer = context.get_arg_packer(kinds)
        assert packer.argument_types == expected.argument_types
        values = [llvm.Constant(context.get_value_type(kind), llvm.Undefined) for kind in kinds]
        texts = []
        for each in (packer, expected, packer):
            builder = llvm.IRBuilder(
                llvm.Function(llvm.Module(), llvm.FunctionType(llvm.VoidType(), []), "f").append_basic_block()
            )
            each.from_arguments(builder, each.as_arguments(builder, values))
            texts.append(str(builder.function))
        assert texts[0] == texts[1] == texts[2]


def test_symbols_name_long_types_by_a_hash_that_other_types_do_not_have() -> None:
    record: Any = numba.from_dtype(RECORD)
    arrays = [
        types.Tuple([types.Array(record, 1, "C"), types.Array(types.int8, number, "C")]) for number in (1, 2)
    ]
    short = types.int64, types.Array(types.float64, 1, "C")
    assert funcdesc.default_mangler("a.b", short) == f"_ZN1a1bE{sparing._name_of_arguments(short)}"
    names = [
        funcdesc.default_mangler("a.b", (*each, types.int64)) for each in ((arrays[0],), (arrays[1],), arrays)
    ]
    assert len({*names}) == 3
    assert names[0] == funcdesc.default_mangler("a.b", (arrays[0], types.int64))
    assert max(map(len, names)) < 90 < len(sparing._name_of_arguments((arrays[0],)))


def test_a_function_is_declared_once_in_a_module_and_as_numba_does() -> None:
    context: Any = cpu_target.target_context
    kinds = {"restype": types.int64, "argtypes": (types.int64, types.float64)}
    described = [
        funcdesc.ExternalFunctionDescriptor(name=name, **kinds) for name in ("first", "second", "first")
    ]
    own, numbas = llvm.Module(), llvm.Module()
    functions = [context.declare_function(own, each) for each in described]
    for each in described:
        sparing._declare_function(context, numbas, each)
    assert functions[0] is functions[2] is not functions[1]
    renamed = re.compile(r'\.1"')  # numba names the arguments again
    assert str(own) == renamed.sub('"', str(numbas))


def _given_words(count: int) -> llvm.IRBuilder:
    """Begin a function that is given `count` words and returns one."""
    word = llvm.IntType(64)
    function = llvm.Function(llvm.Module(), llvm.FunctionType(word, [word] * count), "f")
    return llvm.IRBuilder(function.append_basic_block("entry"))


def test_a_member_is_what_was_put_there_last() -> None:
    builder = _given_words(4)
    a, b, c, d = builder.function.args
    word = llvm.IntType(64)
    pair = llvm.LiteralStructType([word, word])
    whole = llvm.Constant(llvm.LiteralStructType([word, pair]), llvm.Undefined)
    inner = builder.insert_value(builder.insert_value(llvm.Constant(pair, llvm.Undefined), a, 0), b, 1)
    with_inner = builder.insert_value(builder.insert_value(whole, c, 0), inner, 1)
    changed = builder.insert_value(with_inner, d, [1, 0])
    for aggregate, path, expected in (
        (inner, 0, a),
        (inner, [1], b),
        (with_inner, 0, c),
        (with_inner, 1, inner),
        (with_inner, (1, 1), b),
        (changed, [1, 0], d),
        (changed, [1, 1], b),
        (changed, 0, c),
    ):
        assert builder.extract_value(aggregate, path) is expected
    made = builder.extract_value(changed, 1)  # of two parts
    assert made.type == pair
    assert made not in (inner, changed)
    missing = builder.extract_value(builder.insert_value(whole, inner, 1), 0)
    assert (missing.opname, missing.operands) == ("extractvalue", [whole])


def test_only_what_nobody_reads_is_dropped_and_the_code_stays_valid() -> None:
    builder = _given_words(2)
    a, b = builder.function.args
    word = llvm.IntType(64)
    pair = llvm.Constant(llvm.LiteralStructType([word, word]), llvm.Undefined)
    read, unread = builder.insert_value(pair, a, 0), builder.insert_value(pair, b, 0)
    of_unread = builder.insert_value(unread, a, 1)
    sparing._extract_value(builder, of_unread, 1)
    taken = sparing._extract_value(builder, read, 0)
    after = builder.append_basic_block("after")
    builder.cbranch(builder.icmp_signed("<", a, b), after, after)
    entry_block = builder.basic_block
    builder.position_at_end(after)
    phi = builder.phi(pair.type)
    phi.add_incoming(read, entry_block)
    phi.add_incoming(read, entry_block)
    builder.ret(builder.add(taken, sparing._extract_value(builder, phi, 0)))
    binding.parse_assembly(str(builder.module)).verify()
    sparing.drop_unread(builder.function)
    binding.parse_assembly(str(builder.module)).verify()
    left = [each for block in builder.function.blocks for each in block.instructions]
    assert read in left
    assert taken in left
    assert unread not in left
    assert of_unread not in left
    assert len([each for each in left if each.opname == "extractvalue"]) == 2


def test_functions_of_a_module_are_optimized_as_numba_does() -> None:
    body = "%a = alloca i64\n store i64 %n, i64* %a\n %r = load i64, i64* %a\n ret i64 %r\n"
    text = "define i64 @{0}(i64 %n) {{\n" + body + "}}\n"
    codegen: Any = cpu_target.target_context.codegen()
    results = []
    for optimize in (CPUCodeLibrary._optimize_functions, sparing._optimize_functions):
        module = binding.parse_assembly("declare i64 @other(i64)\n" + text.format("f") + text.format("g"))
        optimize(codegen.create_library("library"), module)
        results.append(str(module))
    assert results[0] == results[1]
    assert "alloca" not in results[0]


def test_options_are_those_chosen_and_the_others_defaults() -> None:
    flags = Flags()
    flags.nrt = True
    flags.error_model = "numpy"
    assert flags.values() == {name: getattr(flags, name) for name in flags.options}
    assert flags == flags.copy() != Flags()


def test_sizes_of_types_are_llvms() -> None:
    context: Any = cpu_target.target_context
    word, byte, double = llvm.IntType(64), llvm.IntType(8), llvm.DoubleType()
    kinds = [word, byte, double, llvm.LiteralStructType([byte, word]), llvm.LiteralStructType([byte, byte])]
    sizes = [8, 1, 8, 16, 2]
    assert [context.get_abi_sizeof(each) for each in kinds * 2] == sizes * 2


def test_listeners_hear_of_compiling() -> None:
    @numba.njit  # which keeps nothing, so that it is compiled at each run
    def compiled_now(n):
        return n + 1

    with event.install_recorder("numba:compile") as heard, event.install_recorder("numba:llvm_lock") as locks:
        compiled_now(3)
    assert [each.status for _, each in heard.buffer] == [event.EventStatus.START, event.EventStatus.END]
    assert not locks.buffer


def test_only_passes_that_numba_has_are_left_out() -> None:
    class State:
        flags = Flags()
        func_ir = None

    numbas = [one for one, _ in DefaultPassBuilder.define_nopython_pipeline(State).passes]
    left = Compiled().passes()
    assert set(numbas) >= sparing.LEFT_OUT
    assert left == [one for one in numbas if one not in sparing.LEFT_OUT]


class Compiled:
    """A compiler that lists its passes."""

    def passes(self) -> list[Any]:
        context: Any = cpu_target.typing_context
        made = _SparingCompiler(context, cpu_target.target_context, None, (), None, Flags(), {})
        (pipeline,) = made.define_pipelines()
        return [one for one, _ in pipeline.passes]


def test_errors_are_not_coloured() -> None:
    assert str(errors.TypingError("plain words")) == "plain words"


def test_a_comprehension_is_refused() -> None:
    @entry
    def make(n):
        return len([2 * k for k in range(n)])

    with pytest.raises(errors.NumbaError):
        make(3)
