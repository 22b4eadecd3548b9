"""The activity of models in a commit: columns that say what the objects say, and cost little."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from streamwatch.core.join.durable.columns import PackedError, pack_table, unpack_columns
from streamwatch.core.join.durable.totals import NAMES, NUMBERS, JoinModelsState, state_of_models
from streamwatch.core.join.models import JoinModels
from streamwatch.core.join.series import gauge_families
from streamwatch.core.pipeline.pipeline import decoded, encoded
from streamwatch.core.specs import JoinSpec
from tests.core.join.join_stream import Stream, label, predict
from tests.interpreter_calls import calls_of


def many(models: int) -> Stream:
    """A join of this many models, some of whose predictions have labels."""
    stream = Stream(JoinSpec(max_models=models))
    chosen = range(models)
    stream.feed(*(predict(f"id-{n}", model=f"m{n}", topic=f"t{n % 3}" if n % 4 else "") for n in chosen))
    stream.feed(*(label(f"id-{n}", f"c{n % 5}", model=f"m{n}") for n in chosen if n % 2))
    return stream


def state_of(stream: Stream) -> JoinModelsState:
    return decoded(stream.pipeline.snapshot()).join.join_models


def test_columns_say_what_the_objects_say():
    stream = many(40)
    before = state_of(stream).models()
    stream.feed(predict("more", model="m7", topic="t2"), label("id-8", "c9", model="m8"))
    written = state_of(stream)
    objects = stream.pipeline.join.holdings().models  # updated after `before`, of which two have changed
    assert written.models() == list(objects.values())
    assert [one.name for one, other in zip(before, written.models(), strict=True) if one != other] == [
        "m7",
        "m8",
    ]
    again = JoinModels(40, 1_000)
    again.restore(written.models(), written.looked)
    assert state_of_models(again) == written


def test_a_join_without_models_has_a_state():
    assert state_of(Stream()).models() == []
    assert state_of(Stream()) == state_of_models(JoinModels(1, 1_000))


def damaged(state: JoinModelsState, attribute: str, number: int) -> JoinModelsState:
    columns = unpack_columns(state.activity, len(NUMBERS + NAMES))
    table = np.stack([column.astype(np.int64) for column in columns])
    table[(NUMBERS + NAMES).index(attribute), 0] = number
    return msgspec.structs.replace(state, activity=pack_table(table))


@pytest.mark.parametrize("attribute", NAMES)
@pytest.mark.parametrize("number", [-2, 1_000])
def test_a_number_of_no_name_is_refused(attribute, number):
    with pytest.raises(PackedError, match=rf"expected numbers of \d names as {attribute}"):
        damaged(state_of(many(8)), attribute, number).models()


def test_other_models_than_those_of_the_columns_are_refused():
    state = state_of(many(8))
    with pytest.raises(PackedError, match="expected the activity of 7 models, got 8"):
        msgspec.structs.replace(state, names=state.names[:-1]).models()
    with pytest.raises(PackedError, match="expected each model of the join once"):
        msgspec.structs.replace(state, names=[*state.names[:-1], "m0"]).models()


def test_a_pipeline_refuses_a_damaged_state():
    stream = many(8)
    state = decoded(stream.pipeline.snapshot())
    join = msgspec.structs.replace(state.join.join_models, activity=b"")
    value = encoded(replaced(state, join))
    with pytest.raises(PackedError, match="the models of the join cannot be read"):
        Stream(JoinSpec(max_models=8)).pipeline.restore(value, ())


def replaced(state, models):
    return replace(state, join=replace(state.join, join_models=models))


def test_a_commit_calls_no_function_of_python_for_a_model_that_is_as_before():
    def calls(models: int) -> int:
        stream = many(models)
        stream.pipeline.snapshot()
        stream.feed(predict("more", model="m7"))
        return calls_of(stream.pipeline.snapshot)

    assert calls(400) <= calls(40) + 10


def test_series_of_models_have_their_names_and_values():
    stream = many(6)
    stream.feed(predict("more", model="m3"))
    names = {family.name: family for family in gauge_families(stream.pipeline.join)}
    assert [key for key, _ in names["pending_predictions"].samples] == [(f"m{n}",) for n in range(6)]
    assert stream.value("pending_predictions", "m3") == 1
    assert stream.value("last_prediction_timestamp_seconds", "m3") == stream.value(
        "last_prediction_timestamp_seconds", "m2"
    )
