"""Verdicts of whole models: every opponent's answers, the three utilities, and what a snapshot carries on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.estimators.kernel.snapshot import BALANCED_LABELS, MAJORITY_LABELS
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import UtilitySpec
from tests.core.estimators.kernel.streams import (
    follow,
    late_labels,
    one_row,
    scores_in,
    some_scores,
)
from tests.core.estimators.kernel.twin import TwinShadow
from tests.core.estimators.verdicts.plain_verdict import PlainVerdict
from tests.layouts import EVERYTHING
from tests.tiers import by_tier, few

NAMES = [f"class {k}" for k in range(40)]
COSTS = UtilitySpec(
    "dear",
    "costs",
    (("class 0", "class 1", 9.0), ("class 1", "class 0", 1.0), ("class 2", "class 2", -3.0)),
    other=0.5,
)
UTILITIES = (UtilitySpec("plain"), UtilitySpec("fair", "balanced"), COSTS)
SPEC = replace(EVERYTHING, utilities=UTILITIES, verdict_outcomes=1_000, confidence_delta=0.8)
"""Of the layout of `EVERYTHING`; claims come soon and open soon."""
ONE = np.array([0])


def table_of(utility):
    table = ModelTable(SPEC)
    row = table.add_model(utility)
    follow(table, SPEC, row)
    if utility.kind == "costs":
        table.name_classes(row, utility, NAMES)
    return table


def stream(n, classes, seed, phase=900):
    """Sticky labels, classes that appear over time; a model that errs with .05, later with .6, in turns."""
    rng = np.random.default_rng(seed)
    seen = 2 + (np.arange(n) * (classes - 1)) // n
    true_class = np.zeros(n, np.int32)
    for t in range(1, n):
        true_class[t] = true_class[t - 1] if rng.random() < 0.6 else rng.integers(0, seen[t])
    wrong = rng.random(n) < np.where((np.maximum(np.arange(n) - 2_600, 0) // phase) % 2 == 0, 0.05, 0.6)
    predicted_class = np.where(wrong, rng.integers(0, seen), true_class).astype(np.int32)
    return true_class, predicted_class, late_labels(true_class, seed), some_scores(true_class, seed)


def scores_of(scores, t):
    part = slice(scores.offsets[t], scores.offsets[t + 1])
    return dict(zip(scores.classes[part].tolist(), scores.values[part].tolist(), strict=True))


class PlainJudge:
    """Counts the whole past again at every outcome."""

    def __init__(self, utility, outcomes, delta):
        self.utility = utility
        self.verdicts = {name: PlainVerdict(outcomes, delta) for name in SPEC.opponents}
        self.shadow = TwinShadow(SPEC.shadow_max_classes)
        self.leader = None

    def counts(self, past, alpha):
        return np.bincount(past, alpha ** np.arange(len(past) - 1, -1, -1.0), minlength=41)

    def worth(self, past, y, answer):
        if self.utility.kind == "accuracy":
            return float(answer == y)
        if self.utility.kind == "balanced":
            if answer != y:
                return 0.0
            c = self.counts(past, 0.9999)
            among = [k for k in range(41) if c[k] >= 0.05 or k == y]
            share = {k: max((c[k] + 1) / (c[among].sum() + len(among)), 0.005) for k in among}
            return min(1.0, min(share.values()) / share[y])
        costs = {(true_class, answer): cost for true_class, answer, cost in COSTS.costs}
        cost = costs.get((f"class {y}", f"class {answer}"), 0.5)
        return (9.0 - cost) / (9.0 - -3.0)

    def take(self, true_class, predicted_class, known, scores, event_ms):
        """Judge the last outcome; whether the verdict on persistent changed."""
        past, y, y_hat = true_class[:-1], int(true_class[-1]), int(predicted_class[-1])
        self.shadow.flags(true_class, predicted_class, scores)
        answers = dict(self.shadow.answers)
        if len(past):
            answers["persistent"] = int(past[-1])
            answers["majority"] = self.leader
        if known >= 0:
            answers["persistent_at_prediction"] = known
        changed = False
        for name, answer in answers.items():
            lead = self.worth(past, y, y_hat) - self.worth(past, y, answer)
            changes = self.verdicts[name].take(lead, len(true_class), event_ms)
            changed |= name == "persistent" and changes
        labels = self.counts(true_class, 0.999)
        if self.leader is None or labels[y] > labels[self.leader]:
            self.leader = y
        return changed


@pytest.mark.parametrize("utility", few(UTILITIES, 1), ids=lambda u: u.kind)
@pytest.mark.parametrize(
    ("classes", "n"),
    [
        pytest.param(4, 5_500, id="4 classes", marks=pytest.mark.slow),
        pytest.param(20, 5_500, id="more than shadowed"),
    ],
)
def test_every_verdict_equals_the_definition_after_every_outcome(utility, classes, n) -> None:
    true_class, predicted_class, known, scores = stream(n, classes, seed=classes)
    event_ms = 1_000_000 + 7 * np.arange(n)
    table = table_of(utility)
    trace = table.trace(one_row(n), true_class, predicted_class, known, scores, event_ms)
    traced = table.verdicts_traced(trace)
    plain = PlainJudge(utility, SPEC.verdict_outcomes, SPEC.confidence_delta)
    alarms = {a.position: a for a in trace.alarms if a.detector >= len(SPEC.detectors)}
    assert table.layout.opponents == tuple(plain.verdicts)
    for t in range(n):
        args = (
            true_class[: t + 1],
            predicted_class[: t + 1],
            int(known[t]),
            scores_of(scores, t),
            int(event_ms[t]),
        )
        changed = plain.take(*args)
        assert changed == (t in alarms), t
        if changed:
            verdict, alarm = plain.verdicts["persistent"], alarms[t]
            assert (alarm.after, alarm.since, alarm.since_ms) == (verdict.verdict, *verdict.since)
            assert (alarm.ordinal, alarm.outcome) == (verdict.changes, t + 1)
        for j, verdict in enumerate(plain.verdicts.values()):
            if not verdict.leads:
                assert np.isnan(traced.verdict[j, t])
                continue
            assert traced.verdict[j, t] == verdict.verdict, (j, t)
            since, since_ms = verdict.since
            if since:
                assert (traced.since[j, t], traced.since_seconds[j, t]) == (since, since_ms / 1000)
            if t % 50 == 0:
                got = (traced.lead[j, t], traced.lower[j, t], traced.upper[j, t])
                np.testing.assert_allclose(got, verdict.interval(), rtol=1e-8, atol=1e-9)
                assert traced.dispersion[j, t] == pytest.approx(verdict.phi, rel=1e-8)
                for side, evidence in ((verdict.better, traced.better), (verdict.worse, traced.worse)):
                    expected = max(0.0, np.log(max(side.mean, 1.0)) / np.log(verdict.threshold))
                    assert evidence[j, t] == pytest.approx(expected, rel=1e-8, abs=1e-9)
    final = table.verdicts(ONE)
    for whole, last in zip(final, traced, strict=True):
        np.testing.assert_array_equal(whole[:, 0], last[:, -1])
    assert sum(verdict.changes for verdict in plain.verdicts.values()) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("utility", UTILITIES, ids=lambda u: u.kind)
@settings(max_examples=by_tier(fast=2, default=6, everything=6))
@given(seed=st.integers(0, 3), cuts=st.lists(st.integers(1, 3_999), max_size=5), stop=st.integers(1, 3_999))
def test_verdicts_do_not_depend_on_batches_or_on_stopping_and_resuming(utility, seed, cuts, stop) -> None:
    n = 4_000
    true_class, predicted_class, known, scores = stream(n, 5, seed)
    event_ms = np.arange(n)

    def feed(table, edges):
        alarms = []
        for start, end in zip([0, *edges], [*edges, n], strict=True):
            part = slice(start, end)
            batch = one_row(end - start), true_class[part], predicted_class[part], known[part]
            found = table.fold(*batch, scores_in(scores, part), event_ms[part])
            alarms += [alarm._replace(position=alarm.position + start) for alarm in found]
        return alarms

    whole, cut = table_of(utility), table_of(utility)
    expected = feed(whole, [])
    assert feed(cut, sorted({*cuts})) == expected
    assert cut.snapshot(0) == whole.snapshot(0)

    stopped, resumed = table_of(utility), table_of(utility)
    head, rest = slice(0, stop), slice(stop, n)
    stopped.fold(
        one_row(stop),
        true_class[head],
        predicted_class[head],
        known[head],
        scores_in(scores, head),
        event_ms[head],
    )
    resumed.restore(0, stopped.snapshot(0))
    assert resumed.snapshot(0) == stopped.snapshot(0)
    resumed.fold(
        one_row(n - stop),
        true_class[rest],
        predicted_class[rest],
        known[rest],
        scores_in(scores, rest),
        event_ms[rest],
    )
    assert resumed.snapshot(0) == whole.snapshot(0)


def test_a_verdict_by_another_utility_starts_anew_and_the_counts_of_the_majority_go_on() -> None:
    true_class, predicted_class, known, scores = stream(2_000, 4, seed=1)
    fair, plain = table_of(UTILITIES[1]), table_of(UTILITIES[0])
    fair.fold(one_row(2_000), true_class, predicted_class, known, scores)
    plain.restore(0, fair.snapshot(0))
    assert np.isnan(plain.verdicts(ONE).verdict).all()
    assert not np.isnan(fair.verdicts(ONE).verdict).any()
    balanced = {name for name in fair.snapshot(0) if name.startswith(("verdict/", BALANCED_LABELS))}
    shared = fair.snapshot(0).keys() - balanced
    assert MAJORITY_LABELS in shared
    for name in shared:
        assert plain.snapshot(0)[name] == fair.snapshot(0)[name]


@pytest.mark.parametrize(
    ("before", "between", "section"),
    [
        ((SPEC, UTILITIES[0]), (replace(SPEC, opponents=("persistent",)), UTILITIES[0]), MAJORITY_LABELS),
        ((SPEC, UTILITIES[1]), (SPEC, UTILITIES[0]), BALANCED_LABELS),
    ],
)
def test_labels_are_counted_anew_by_who_did_not_count_them_in_between(before, between, section) -> None:
    """Labels that came in between are not counted, so a count that goes on would not be of the last ones."""
    true_class, predicted_class, known, scores = stream(3_000, 4, seed=1)
    rows, sections = one_row(1_000), {}
    for (spec, utility), start in ((before, 0), (between, 1_000), (before, 2_000)):
        table = ModelTable(spec)
        follow(table, spec, table.add_model(utility))
        table.restore(0, sections)
        part = slice(start, start + 1_000)
        values = true_class[part], predicted_class[part], known[part], scores_in(scores, part)
        table.fold(rows, *values)
        sections = table.snapshot(0)
        assert (section in sections) == (start != 1_000)
    # the same labels, counted by a table that has seen no others
    alone = ModelTable(before[0])
    follow(alone, before[0], alone.add_model(before[1]))
    alone.fold(rows, *values)
    assert sections[section] == alone.snapshot(0)[section]


def test_sections_of_verdicts_have_words_for_every_utility() -> None:
    words = ModelTable(SPEC).sections().values()
    assert {"verdict persistent by accuracy", "verdict majority by balanced"} <= set(words)
    assert "verdict transition by costs" in words


def test_without_shadow_classifiers_three_opponents_are_left() -> None:
    table = ModelTable(replace(SPEC, shadow_max_classes=0))
    assert table.layout.opponents == ("persistent", "persistent_at_prediction", "majority")


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"opponents": ("chance",)}, "opponent must be one of persistent"),
        ({"opponents": ("majority", "majority")}, "opponents must be named once"),
        ({"confidence_delta": 1.0}, "confidence_delta must be in"),
        ({"verdict_outcomes": 0}, "verdict_outcomes must be at least 1"),
        ({"utilities": (UtilitySpec("*", "costs", (("a", "b", 1.0),)),)}, "got none for a: a"),
    ],
)
def test_what_cannot_be_judged_is_refused_by_name(change, wrong) -> None:
    with pytest.raises(ValueError, match=wrong):
        ModelTable(replace(SPEC, **change))
