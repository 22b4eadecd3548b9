"""Models weighted by the drifts of a reference: what a start finds is bitwise what the last commit left."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest

from streamwatch.core.pipeline.sections import StartOver
from streamwatch.core.specs import DriftWeightedSpec, JoinSpec
from tests.core.join.join_stream import label_for_all, predict
from tests.core.pipeline.test_checkpoint import Life
from tests.layouts import DEFAULT

BY_REFERENCE = DriftWeightedSpec(drift_signal="reference", reference="r")
SPEC = replace(DEFAULT, drift_weighted=(BY_REFERENCE,), max_models=3, max_classes=3)
JOIN = JoinSpec(horizon_ms=4_000, early_horizon_ms=2_000, dedup_horizon_ms=3_000, max_models=3)
SELDOM = [i % 20 == 0 for i in range(400)]
OFTEN = [i % 4 > 0 for i in range(200)]
SOMETIMES = [i % 3 == 0 for i in range(20)]


class Followed(Life):
    """Models f and r, of which r is the reference; its error rises with `OFTEN` after `SELDOM`."""

    def evaluate(self, model, wrong, *, commit=True):
        at = self.stream.pipeline.clock_ms + 1
        events = [
            (predict(f"{model}{i}", "b" if w else "a", i, model), label_for_all(f"{model}{i}", "a", i))
            for i, w in enumerate(wrong, at)
        ]
        self.feed(*chain.from_iterable(events))
        if commit:
            self.commit()

    def again(self, **changed):
        arguments = {"spec": self.spec, "join": self.join, "journal": self.journal} | changed
        return Followed(self.model_store, **arguments)

    def weighted(self):
        names = ("drift_weighted_accuracy_ratio", "drift_weighted_effective_sample_size")
        return [dict(each.samples)[("f",)] for each in self.monitors.families() if each.name in names]

    def in_snapshots(self, *models):
        """One outcome of each model later, after a start that finds no outcomes in the journal."""
        brief = self.again(journal=1)
        for model in models:
            brief.evaluate(model, [True])
        brief.commit()
        found = brief.again(journal=700)
        assert found.resumed.refolded == 0
        return found


def lived():
    """A reference r that drifts after the last 20 outcomes of f, which are in the journal."""
    life = Followed(spec=SPEC, join=JOIN)
    life.evaluate("f", SOMETIMES * 2)
    life.evaluate("r", [*SELDOM, *SELDOM])
    life = life.in_snapshots("f", "r")
    life.evaluate("r", [*SELDOM, *SELDOM[:100]])
    life.evaluate("f", SOMETIMES)
    life.evaluate("r", OFTEN)
    assert life.monitors.drifts_of_references() == {"r": (1,)}
    return life


def test_no_outcome_is_evaluated_again_with_a_drift_that_came_after_it():
    life = lived()
    life.evaluate("f", SOMETIMES)
    again = life.again()
    assert again.resumed.refolded > 0
    assert again.canonical() == life.canonical()


@pytest.mark.parametrize("restarts", [False, True])
def test_drifts_of_a_reference_that_comes_back_count_from_its_start(restarts):
    life = lived()
    life.until(life.stream.pipeline.clock_ms + 3_000)
    life.commit()
    life = life.in_snapshots("f", "f")
    while "r" in life.monitors.models():  # it becomes idle before f does
        life.until(life.stream.pipeline.clock_ms + 500)
    life.commit()
    assert life.monitors.models() == ["f"]
    if restarts:
        life = life.again()
    before = life.weighted()
    life.evaluate("r", [*SELDOM, *OFTEN])
    assert life.monitors.drifts_of_references() == {"r": (1,)}
    life.evaluate("f", [False] * 3)
    assert life.weighted()[1] < before[1] + 2, "its three outcomes weigh more than one each"
    assert life.again().canonical() == life.canonical()


def test_drifts_of_a_reference_whose_estimators_begin_anew_are_not_taken_twice():
    life = lived()
    life.evaluate("f", SOMETIMES)
    over = StartOver(parts=frozenset({"page_hinkley"}))
    other = life.again(over=over)
    assert other.resumed.restarted == ("page_hinkley",)
    for each in (life, other):
        each.evaluate("f", SOMETIMES, commit=False)
    assert other.weighted() == life.weighted()


def test_a_reference_that_cannot_be_taken_over_is_followed_from_its_new_start():
    life = lived()
    now = life.stream.pipeline.clock_ms
    life.feed(predict("c", "c", now, "r"), label_for_all("c", "c", now))  # its third class, of three
    life.evaluate("f", SOMETIMES)
    other = life.again(spec=replace(SPEC, max_classes=4))
    assert set(other.resumed.refused) == {"r"}
    before = other.weighted()
    other.evaluate("r", [*SELDOM, *OFTEN])
    assert other.monitors.drifts_of_references() == {"r": (1,)}
    other.evaluate("f", [False] * 3)
    assert other.weighted()[1] < before[1] + 2


def test_drifts_of_a_reference_that_are_counted_anew_are_taken_from_the_first():
    life = lived()
    life.evaluate("f", SOMETIMES)
    (title,) = (each for each in life.monitors.estimators().values() if each.startswith("drift-weighted"))
    other = life.again(over=StartOver(parts=frozenset({title}), parts_of=frozenset({"r"})))
    assert other.monitors.drifts_of_references() == {"r": (0,)}
    before = other.weighted()
    other.evaluate("r", [*SELDOM, *SELDOM, *OFTEN, *OFTEN])
    assert other.monitors.drifts_of_references()["r"] > (0,)
    other.evaluate("f", [False] * 3)
    assert other.weighted()[1] < before[1] + 2
    assert other.again().canonical() == other.canonical()
