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
from llvmlite import ir as llvm
from numba.core import compiler, cpu, errors, event, ir, types
from numba.core.compiler import DefaultPassBuilder, Flags
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
