"""Registers are given every prediction that is accepted, and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import msgspec
import pytest

from streamwatch.core import predictions as kinds
from streamwatch.core.predictions.kind import batch_of, score_of
from streamwatch.core.predictions.registers import PredictionRegisters, details_with_predictions
from streamwatch.core.records.events import Prediction, sampling_of
from streamwatch.core.records.outcome_objects import in_columns
from streamwatch.core.records.outcomes import OutcomeBatch
from streamwatch.core.records.scores import ScoreLists
from streamwatch.core.specs import JoinSpec
from tests.core.join.join_stream import DAY, Stream, label, predict, tick
from tests.core.join.naive_join import NaiveJoin
from tests.core.join.test_join_model import a_script, a_spec
from tests.core.predictions.listing_register import ListingSpec, listing_known
from tests.core.predictions.test_damaged_states import outcomes, predictions
from tests.tiers import by_tier

LISTED = JoinSpec(prediction_registers=(ListingSpec(),))


@pytest.fixture(autouse=True)
def _predictions_are_listed():
    with listing_known():
        yield


def listed(stream):
    """Predictions by model, as the register has them."""
    (register,) = stream.pipeline.predictions._registers
    return {name: model.predictions for name, model in register.models.items() if model.predictions}


def accepted(spec, events):
    """Predictions by model that a naive join accepts, of models that have not retired since."""
    naive, found, retired = NaiveJoin(spec), {}, 0
    for event in events:
        before = naive.count["accepted"]
        naive.feed(event)
        for _, model in naive.retired[retired:]:
            found.pop(model, None)
        retired = len(naive.retired)
        if naive.count["accepted"] > before:
            own = event.record_ms if event.timestamp_ms is None else event.timestamp_ms
            score = score_of(event.predicted_class, event.scores)
            known = None if math.isnan(score) else score
            sampling = sampling_of(event.label_probability, event.label_requested)
            listed_one = (event.record_ms, own, known, event.predicted_class, sampling)
            found.setdefault(event.model, []).append(listed_one)
    return found


def test_they_hear_what_a_naive_join_accepts_however_it_is_cut():
    seen = 0
    for seed in range(by_tier(fast=30, default=150, everything=3_000)):
        chance = Random(seed)
        spec = replace(a_spec(chance), prediction_registers=(ListingSpec(),))
        events = a_script(chance, 150)
        stream, at = Stream(spec), 0
        while at < len(events):
            stop = at + chance.choice([1, 7, 40, 150])
            stream.feed(*events[at:stop])
            at = stop
        assert listed(stream) == accepted(spec, events), seed
        seen += sum(map(len, listed(stream).values()))
    assert seen > 300


def test_duplicates_conflicts_and_models_over_a_limit_are_not_given():
    stream = Stream(replace(LISTED, max_models=1))
    stream.feed(predict("a"), predict("a"), predict("a", "y"), predict("b", model="n"), predict("c", "z"))
    assert [listed_one[3] for listed_one in listed(stream)["m"]] == ["x", "z"]
    assert list(listed(stream)) == ["m"]


def test_a_prediction_whose_label_was_there_first_is_given_with_its_score():
    stream = Stream(LISTED)
    stream.feed(label("a", at=5))
    stream.feed(predict("a", "x", at=9, timestamp_ms=3, scores={"x": 3.0, "y": 1.0}))
    assert listed(stream) == {"m": [(9, 3, 0.75, "x", 0)]}
    assert stream.pipeline.predictions.details() == {"m": {"listed": 1}}
    assert stream.value("listed", "m") == 1


def test_a_model_that_retires_is_forgotten_and_begins_anew():
    stream = Stream(replace(LISTED, horizon_ms=DAY))
    stream.feed(predict("a"), label("a"))
    stream.feed(tick(4 * DAY), predict("b", at=4 * DAY))
    assert listed(stream) == {"m": [(4 * DAY, 4 * DAY, None, "x", 0)]}


def test_a_snapshot_goes_on_and_other_sections_are_left_out():
    stream = Stream(LISTED)
    stream.feed(predict("a"), predict("b", "y", at=7))
    kept = stream.pipeline.predictions.snapshot()
    again = PredictionRegisters(LISTED.prediction_registers)
    again.restore({**kept, "another section": b"x"})
    assert again.snapshot() == kept
    assert PredictionRegisters(()).snapshot() == {}
    with pytest.raises(ValueError, match=r".+"):
        again.restore({"listing": b"\xc1"})


def test_models_that_a_register_knows_to_be_unrepresentative_are_known_to_the_pipeline():
    stream = Stream(LISTED)
    stream.feed(predict("a"), predict("b", model="unlike"))
    assert stream.pipeline.predictions.unrepresentative() == {"unlike"}
    assert Stream(JoinSpec()).pipeline.predictions.unrepresentative() == set()


def test_a_kind_asked_for_twice_is_refused():
    with pytest.raises(ValueError, match=r"different kinds, got \['listing', 'listing'\]"):
        PredictionRegisters((ListingSpec(), ListingSpec()))


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (None, None),
        ({}, None),
        ({"y": 1.0}, None),
        ({"x": 2.0, "y": 6.0}, 0.25),
        ({"x": 0.0, "y": 0.0}, None),
        ({"x": 1.5, "y": -0.5}, None),
        ({"x": math.nan, "y": 0.5}, None),
        ({"x": 0.5, "y": math.inf}, None),
    ],
)
def test_the_score_of_the_predicted_class_is_its_share_of_all(scores, expected):
    (record,) = batch_of([Prediction("a", "m", "x", 5, scores=scores)]).records
    found = float(record["score"])
    assert math.isnan(found) if expected is None else found == expected


def test_details_of_models_without_outcomes_are_added():
    found = details_with_predictions({"m": {"a": 1}}, {"m": {"b": 2}, "n": {"b": 3}})
    assert found == {"m": {"a": 1, "b": 2}, "n": {"b": 3}}


def renumbered(batch):
    """The same outcomes with other numbers of models and classes."""
    records, lists = batch.records.copy(), batch.scores
    for name in ("model", "true_class", "predicted_class", "label_at_prediction"):
        records[name] += records[name] >= 0
    scores = ScoreLists(lists.ends, lists.classes + 1, lists.values, lists.beside)
    return OutcomeBatch(records, ["nobody's", *batch.models], ["nobody's", *batch.classes], scores)


def test_outcomes_as_objects_and_in_columns_are_the_same_to_every_register():
    given = predictions(0, 400)
    labelled = [
        msgspec.structs.replace(each, label_at_prediction="abz"[at % 3], segments={"s": str(at)})
        for at, each in enumerate(outcomes(given))
    ]
    states = []
    for form in (labelled, in_columns(labelled), renumbered(in_columns(labelled))):
        registers = PredictionRegisters([kind.spec() for kind in kinds.KINDS])
        registers.observe_events(given)
        unlearned = registers.snapshot()
        registers.learn(form)
        states.append(registers.snapshot())
        assert all(state != unlearned[section] for section, state in states[-1].items())
    assert states[0] == states[1] == states[2]
