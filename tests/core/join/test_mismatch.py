"""Silent mistakes: reported when they are sure, no longer once they are over, the same however cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.join.caveats import REMEMBERED, ClassAgreement, Mismatch, are_scores, details_with
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import JoinSpec
from tests.core.join.join_stream import DAY, Stream, label, null, predict, tick

HOUR = 3_600_000


def outcomes(pairs, model="m"):
    return [Outcome(model, true_class, predicted_class, 0, 0) for predicted_class, true_class in pairs]


def looked_at(pairs, max_models=10):
    agreement = ClassAgreement(max_models)
    agreement.observe(outcomes(pairs))
    return agreement


def samples(stream, name):
    (family,) = [f for f in stream.pipeline.join_families() if f.name == name]
    return dict(family.samples)


def test_classes_are_disjoint_after_a_hundred_outcomes_and_not_before():
    pairs = [("1", "fraud"), ("0", "legit")] * 50
    assert looked_at(pairs[:-1]).disjoint() == {}
    found = looked_at(pairs).disjoint()["m"]
    assert (found.predicted_class, found.true) == (["1", "0"], ["fraud", "legit"])


def test_one_common_class_is_enough_though_no_outcome_was_right():
    assert looked_at([("a", "b")] * 99 + [("b", "c")] * 200).disjoint() == {}


def test_a_model_that_is_wrong_with_the_right_words_is_only_a_bad_model():
    assert looked_at([("a", "b"), ("b", "a")] * 100).disjoint() == {}


def test_scores_instead_of_classes_are_found_however_many_there_are():
    agreement = looked_at([(f"0.{n}", "fraud" if n % 2 else "legit") for n in range(5_000)])
    assert list(agreement.disjoint()) == ["m"]
    assert len(agreement.disjoint()["m"].predicted_class) == REMEMBERED


def test_it_is_over_as_soon_as_a_class_is_seen_on_both_sides():
    agreement = looked_at([("Fraud", "fraud")] * 150)
    assert agreement.disjoint()
    agreement.observe(outcomes([("fraud", "fraud")]))
    assert not agreement.disjoint()
    agreement.observe(outcomes([("Fraud", "fraud")] * 500))
    assert not agreement.disjoint()


def test_a_model_that_retired_and_comes_back_is_looked_at_anew():
    agreement = looked_at([("a", "a")])
    agreement.forget("m")
    agreement.observe(outcomes([("A", "a")] * 100))
    assert list(agreement.disjoint()) == ["m"]


def test_of_more_models_than_are_evaluated_nothing_is_remembered():
    agreement = ClassAgreement(2)
    for model in "abc":
        agreement.observe(outcomes([("x", "y")] * 100, model))
    assert list(agreement.disjoint()) == ["a", "b"]


@given(
    st.lists(st.tuples(st.sampled_from("mn"), st.sampled_from("ab"), st.sampled_from("bcd")), max_size=300),
    st.lists(st.integers(0, 300)),
)
def test_cuts_and_restores_change_nothing_and_the_sets_say_the_truth(rows, cuts):
    stream = [
        Outcome(model, true_class, predicted_class, 0, 0) for model, predicted_class, true_class in rows
    ]
    whole, parts = ClassAgreement(10), ClassAgreement(10)
    whole.observe(stream)
    bounds = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    for start, stop in pairwise(bounds):
        parts.observe(stream[start:stop])
        restored = ClassAgreement(10)
        restored.restore(parts.state())
        parts = restored
    assert parts.state() == whole.state()
    for model in "mn":
        predicted_class = {o.predicted_class for o in stream if o.model == model}
        true = {o.true_class for o in stream if o.model == model}
        count = sum(o.model == model for o in stream)
        assert (model in whole.disjoint()) == (count >= 100 and not predicted_class & true)


def test_a_model_that_met_no_label_by_the_early_horizon_is_reported():
    stream = Stream(JoinSpec(early_horizon_ms=HOUR, horizon_ms=DAY))
    stream.feed(predict("1"), predict("2", at=1_000), label("id-1", at=2_000), tick(HOUR - 1))
    assert samples(stream, "nothing_joins") == {}
    stream.feed(tick(HOUR))
    assert samples(stream, "nothing_joins") == {("m",): 1}
    (found,) = stream.pipeline.mismatches()
    assert (found.model, found.predictions, found.disjoint) == ("m", 2, None)
    stream.feed(label("1", at=HOUR + 1))
    assert stream.pipeline.mismatches() == []


def test_predictions_and_those_that_joined_are_counted_by_model_whatever_becomes_of_them():
    stream = Stream(JoinSpec(horizon_ms=HOUR, max_pending=5))
    stream.feed(*(predict(f"{n}", at=n) for n in range(6)))  # one is evicted
    stream.feed(label("2", at=10), null("3", at=11), predict("9", model="n", at=12), predict("2", at=13))
    stream.feed(tick(2 * HOUR))  # the rest expires
    assert samples(stream, "model_predictions_total") == {("m",): 6, ("n",): 1}
    assert samples(stream, "model_predictions_joined_total") == {("m",): 1, ("n",): 0}


def test_what_is_known_of_a_mismatch_survives_a_restore():
    spec = JoinSpec(early_horizon_ms=HOUR, horizon_ms=DAY)
    stream = Stream(spec)
    stream.feed(*(predict(f"{n}", predicted_class="1", at=n) for n in range(150)))
    stream.feed(*(label(f"{n}", true_class="fraud", at=200 + n) for n in range(120)))
    stream.feed(predict("x", model="n", at=400), tick(2 * HOUR))
    other = stream.again().pipeline
    assert other.mismatches() == stream.pipeline.mismatches()
    assert other.snapshot() == stream.pipeline.snapshot()
    assert details_with({"m": {"classes": ["1", "fraud"]}}, other.mismatches()) == {
        "m": {
            "classes": ["1", "fraud"],
            "classes_disjoint": {"predicted_class": ["1"], "true": ["fraud"]},
        },
        "n": {"nothing_joins": {"predictions": 1}},
    }


@pytest.mark.parametrize("assume", [None, "legit"])
def test_an_assumed_class_counts_as_a_true_one(assume):
    stream = Stream(JoinSpec(horizon_ms=HOUR, assume=assume))
    stream.feed(*(predict(f"{n}", predicted_class="ok", at=n) for n in range(120)), tick(2 * HOUR))
    assert bool(samples(stream, "classes_disjoint")) == (assume is not None)


def test_scores_instead_of_classes_are_reported_though_some_of_them_are_the_name_of_a_label():
    scores = [(f"0.{n:03}", "1") for n in range(1, 25)] + [("1", "1"), ("0", "0")]
    agreement = looked_at(scores + [("0.5", "0")] * 200)
    assert agreement.scores()["m"].predicted_class[:2] == ["0.001", "0.002"]
    assert agreement.disjoint() == {}


def test_classes_that_are_numbers_are_no_scores():
    doses = ["0.5", "1", "1.5", "2.5"]
    assert looked_at([(dose, dose) for dose in doses] * 100).scores() == {}
    whole = [(str(n), str(n + 1)) for n in range(500)]
    assert looked_at(whole).scores() == {}
    agreement = looked_at([(dose, dose) for dose in doses] * 100)
    assert agreement.is_settled("m")


def test_scores_are_part_of_what_the_api_reports_of_a_model():
    found = [Mismatch("m", scores=["0.93", "0.1"])]
    assert details_with({}, found) == {"m": {"scores_as_classes": {"predicted_class": ["0.93", "0.1"]}}}


@pytest.mark.parametrize(
    ("fractions", "whole", "expected"),
    [(19, 0, False), (20, 0, True), (20, 3, False), (27, 3, True), (26, 3, False)],
)
def test_scores_are_twenty_fractions_that_are_nine_tenths_of_the_classes(fractions, whole, expected):
    assert are_scores([f"0.{n}1" for n in range(fractions)] + [f"{n}" for n in range(whole)]) is expected


def test_a_model_with_a_fraction_among_its_classes_is_settled_by_its_hundredth_outcome():
    agreement = looked_at([("0.5", "0.5")] * 99)
    assert not agreement.is_settled("m")
    agreement.observe(outcomes([("0.5", "0.5")]))
    assert agreement.is_settled("m")


def test_no_headline_is_shown_of_a_model_without_verdicts():
    shown = {"headline": {"verdict": -1}, "classes": ["a"]}
    details = dict.fromkeys(("disjoint", "unfair", "scores", "plain"), shown)
    found = [Mismatch("disjoint", disjoint=(["1"], ["a"])), Mismatch("scores", scores=["0.1"])]
    without = dict(details_with(details, found, {"unfair"}))
    assert {name: "headline" in without[name] for name in details} == {
        "disjoint": False,
        "unfair": False,
        "scores": True,
        "plain": True,
    }
    assert without["unfair"] == {"classes": ["a"]}
    assert without["plain"] == shown
