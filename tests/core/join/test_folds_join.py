"""Folds in the join: each waits for the label of its id, compared with a naive join at every prefix."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings

from streamwatch.core.join.caveats import Caveats
from streamwatch.core.pipeline.pipeline import decoded
from streamwatch.core.records.events import (
    Invalid,
    Label,
    NullRecord,
    PairedAnswer,
    Prediction,
    WrongFold,
    fold_name,
    fold_of,
    model_of,
    shown_name,
)
from streamwatch.core.specs import ComparisonSpec, JoinSpec
from tests.core.join.join_stream import (
    DAY,
    RecordingEstimatorSet,
    Stream,
    alive,
    label,
    label_for_all,
    null,
    predict,
    tick,
)
from tests.core.join.streams import answers
from tests.core.join.test_join_model import cases, counted
from tests.tiers import by_tier, examples, seeds

FOLDS = JoinSpec(folds=True)


def fold(number, key="a", predicted_class="x", at=0, model="m", **own):
    return predict(key, predicted_class, at, fold_name(model, number), **own)


def summary(outcomes):
    return [(model_of(o.model), fold_of(o.model), o.true_class, o.predicted_class) for o in outcomes]


class NaiveFolds:
    """Every prediction and every label so far; an outcome is the first of each for (id, model, fold)."""

    def __init__(self):
        self.predictions, self.labels = {}, []
        self.count = Counter()

    def label_of(self, key, model):
        found = [c for k, m, c in self.labels if k == key and m in (None, model)]
        return found[0] if found else None

    def take(self, event):
        before = {k: self.label_of(k[0], k[1]) for k in self.predictions}
        if isinstance(event, Prediction):
            name = (event.id, model_of(event.model), fold_of(event.model))
            if name in self.predictions:
                same = self.predictions[name] == event.predicted_class
                self.count["duplicate" if same else "conflict"] += 1
                return []
            self.predictions[name] = event.predicted_class
            true_class = self.label_of(name[0], name[1])
            found = [] if true_class is None else [(name[1], name[2], true_class, event.predicted_class)]
        else:
            self.labels.append((event.id, event.model, event.true_class))
            found = [
                (k[1], k[2], event.true_class, predicted)
                for k, predicted in self.predictions.items()
                if k[0] == event.id and before[k] is None and event.model in (None, k[1])
            ]
        self.count["outcomes"] += len(found)
        return found


def a_script(chance, length):
    """Folds of two models, a model without, labels of both forms, in any order, some twice."""
    events = []
    for _ in range(length):
        key, model = str(chance.randrange(6)), chance.choice("mmno")
        name = fold_name(model, chance.randrange(3)) if model != "n" else model
        value = chance.choice("xy")
        if chance.random() < 0.6:
            events.append(predict(key, value, 0, name))
        else:
            events.append(Label(key, value, 0, chance.choice([None, model])))
    return events


@pytest.mark.parametrize("seed", seeds(0, by_tier(fast=40, default=150, everything=2_000)))
def test_the_folds_of_an_id_each_meet_its_first_label_at_every_prefix(seed):
    stream, naive = Stream(FOLDS), NaiveFolds()
    for event in a_script(Random(seed), 60):
        assert summary(stream.feed(event)) == naive.take(event)
        counters = stream.counters
        assert counters.predictions_resolved == naive.count["outcomes"]
        assert counters.predictions_duplicate == naive.count["duplicate"]
        assert counters.predictions_conflict == naive.count["conflict"]
        assert counters.predictions_accepted == len(naive.predictions)


@settings(max_examples=examples(1), deadline=None)
@given(cases())
def test_the_rules_for_folds_are_those_for_models_where_there_are_none(case):
    spec, events = case
    plain, folds = Stream(spec), Stream(replace(spec, folds=True))
    copied = [type(e)(**{f: getattr(e, f) for f in e.__struct_fields__}) for e in events]
    step = 7
    for start in range(0, len(events), step):
        assert plain.feed(*events[start : start + step]) == folds.feed(*copied[start : start + step])
    assert counted(plain) == counted(folds)
    assert alive(plain) == alive(folds)


@pytest.mark.parametrize("named", ["m", None])
def test_folds_that_predict_after_the_label_meet_it_for_the_whole_horizon(named):
    stream = Stream(replace(FOLDS, horizon_ms=10 * DAY, early_horizon_ms=DAY))
    stream.feed(fold(0), Label("a", "x", 10, named))
    assert summary(stream.feed(fold(1, at=5 * DAY))) == [("m", 1, "x", "x")]
    assert summary(stream.feed(fold(2, at=9 * DAY, predicted_class="y"))) == [("m", 2, "x", "y")]
    assert stream.value("labels_joined_total") == 1
    stream.until(11 * DAY)
    assert stream.feed(fold(3, at=11 * DAY)) == []


def test_an_early_label_of_a_model_waits_for_its_first_fold_and_is_then_kept_for_the_others():
    stream = Stream(replace(FOLDS, horizon_ms=10 * DAY, early_horizon_ms=DAY))
    stream.feed(label(at=0, model="m", timestamp_ms=5))
    assert stream.value("labels_waiting") == 1
    (first,) = stream.feed(fold(4, at=1_000, timestamp_ms=2))
    assert (first.event_ms, first.delay_ms) == (5, 3)
    assert stream.value("labels_waiting") == 0
    (second,) = stream.feed(fold(0, at=5 * DAY, timestamp_ms=2))
    assert (second.event_ms, second.delay_ms) == (5, 3)
    assert stream.value("labels_joined_total") == 1
    stream.feed(label(at=5 * DAY, model="m"), label(at=5 * DAY, model="m", true_class="y"))
    assert stream.value("labels_duplicate_total") == 1
    assert stream.value("labels_corrected_total") == 1


def test_a_label_of_one_model_is_not_for_the_folds_of_another():
    stream = Stream(FOLDS)
    stream.feed(fold(0), fold(0, model="n"))
    assert summary(stream.feed(label(model="n"))) == [("n", 0, "x", "x")]
    assert stream.value("pending_predictions", "m") == 1
    assert summary(stream.feed(label_for_all(true_class="y"))) == [("m", 0, "y", "x")]


def test_a_model_is_counted_with_all_its_folds():
    stream = Stream(FOLDS)
    stream.feed(fold(0), fold(1), fold(2, at=7), predict("b", at=3, model="n"))
    assert stream.value("pending_predictions", "m") == 3
    assert stream.value("model_predictions_total", "m") == 3
    assert stream.value("last_prediction_timestamp_seconds", "m") == 0.007
    stream.feed(label())
    assert stream.value("model_predictions_joined_total", "m") == 3
    named = [f for f in stream.pipeline.join_families() if f.labels == ("model",)]
    assert {labels for f in named for labels, _ in f.samples} == {("m",), ("n",)}


def test_a_null_record_of_a_model_withdraws_every_fold():
    stream = Stream(FOLDS)
    stream.feed(fold(0), fold(1), fold(0, model="n"), null(model="m"))
    assert stream.value("predictions_withdrawn_total") == 2
    assert stream.feed(NullRecord("predictions", "a", None, 0, withdraws=True)) == []
    assert stream.value("predictions_withdrawn_total") == 3


def test_predictions_of_wrong_folds_are_counted_and_nothing_else():
    stream = Stream(FOLDS)
    stream.feed(WrongFold(0), fold(1), WrongFold(5))
    assert stream.value("predictions_wrong_fold_total") == 2
    assert stream.value("predictions_accepted_total") == 1
    assert stream.pipeline.clock_ms == 5


def test_a_full_join_evicts_the_fold_that_would_expire_first():
    stream = Stream(replace(FOLDS, max_pending=2))
    stream.feed(fold(0, at=0), fold(1, at=1), fold(2, at=2))
    assert stream.value("predictions_evicted_total") == 1
    assert [o.model for o in stream.feed(label(at=3))] == [fold_name("m", 1), fold_name("m", 2)]


def test_silent_mistakes_are_reported_of_the_model_once():
    stream = Stream(replace(FOLDS, early_horizon_ms=1_000))
    for i in range(120):
        stream.feed(fold(0, str(i), "1", i), fold(1, str(i), "1", i), label_for_all(str(i), "fraud", i))
    stream.feed(fold(0, "never", model="n", at=200), fold(1, "never", model="n", at=200), tick(5_000))
    found = stream.pipeline.mismatches()
    assert [each.model for each in found] == ["m", "n"]
    assert found[0].disjoint == (["1"], ["fraud"])
    assert found[1].predictions == 2


@pytest.mark.parametrize("seed", seeds(0, 20))
def test_a_fold_that_tests_some_ids_has_the_previous_label_of_its_models_stream(seed):
    """The label of the previous distinct id that any fold of the model resolved, whoever tests it."""
    chance = Random(seed)
    spec = replace(FOLDS, folds_share_stream=True)
    stream = Stream(spec)
    resolved = []
    for i in range(120):
        key, model = str(i // 3), chance.choice("mn")
        name = fold_name(model, chance.randrange(4))
        event = predict(key, "x", i, name) if chance.random() < 0.6 else Label(key, chance.choice("xyz"), i)
        stream.feed(event)
        for outcome in stream.monitors.folded[len(resolved) :]:
            mine = [(k, y) for m, k, y in resolved if m == model_of(outcome.model)]
            at = event.id
            while mine and mine[-1][0] == at:
                mine.pop()
            assert outcome.label_at_prediction == (mine[-1][1] if mine else None)
            resolved.append((model_of(outcome.model), at, outcome.true_class))
        if chance.random() < 0.1:
            saved = stream.pipeline.snapshot()
            following = stream.again()
            assert following.pipeline.snapshot() == saved
            stream = following


def test_the_stream_of_a_model_is_forgotten_with_its_last_fold():
    stream = Stream(replace(FOLDS, folds_share_stream=True, horizon_ms=1_000, dedup_horizon_ms=1_000))
    stream.feed(fold(0), fold(1, at=1_500), label_for_all(at=1_600))
    assert list(decoded(stream.pipeline.snapshot()).join.fold_streams) == ["m"]
    stream.until(2_100)
    assert stream.monitors.retired == []
    stream.until(9_000)
    assert list(decoded(stream.pipeline.snapshot()).join.fold_streams) == []


def test_names_of_folds_are_read_back():
    names = [fold_name("m", number) for number in (10, 2, 0)]
    assert [fold_of(name) for name in names] == [10, 2, 0]
    assert {model_of(name) for name in names} == {"m"}
    assert shown_name(names[0]) == "m (fold 10)"
    assert (fold_of("m"), model_of("m"), shown_name("m")) == (None, "m", "m")
    assert isinstance(RecordingEstimatorSet().models(), list)


def test_models_that_predict_in_folds_are_not_paired_and_others_beside_them_are():
    stream = Stream(replace(FOLDS, comparisons=(ComparisonSpec("old", ("*",)), ComparisonSpec("m", ("*",)))))
    for name in (fold_name("m", 0), fold_name("m", 1), fold_name("old", 0), fold_name("n", 1), "old", "new"):
        stream.feed(predict("1", "x", 0, name))
    found = {outcome.model: answers(outcome) for outcome in stream.feed(label_for_all("1", "x", 1))}
    assert {name: pairs for name, pairs in found.items() if pairs} == {"new": (PairedAnswer("old", "x"),)}
    assert len(found) == 6
    stream.until(30 * DAY)
    assert (stream.value("pairs_made_total"), stream.value("pairs_expired_total")) == (1, 0)


def test_invalid_records_of_a_model_are_counted_until_its_last_fold_retires_whatever_room_there_is():
    stream = Stream(replace(FOLDS, horizon_ms=1_000, dedup_horizon_ms=1_000, max_models=2))
    stream.feed(fold(0), fold(1, at=1_500), label_for_all(at=1_600))
    stream.feed(*(Invalid("t", 0, 0, "no_id", stream.pipeline.clock_ms, model) for model in "xyzmm"))
    counted = {model: stream.value("model_records_invalid_total", model) for model in "xyzm"}
    assert counted == {"x": 1, "y": 1, "z": None, "m": 2}
    stream.until(2_100)
    assert stream.value("model_records_invalid_total", "m") == 2
    stream.until(9_000)
    assert stream.value("model_records_invalid_total", "m") is None


def test_the_caveat_on_a_model_is_that_of_its_first_fold():
    stream = Stream(replace(FOLDS, horizon_ms=DAY))
    stream.feed(fold(1, at=5), fold(0, at=9))
    expected = Caveats(5 + DAY, None, predictions=2, waiting=2, watched_ms=4)
    assert stream.pipeline.caveats() == {"m": expected}
