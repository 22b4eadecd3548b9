"""Models and estimators that begin anew at a start do so once, and what began, and when, is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.pipeline.sections import Epoch, StartOver
from tests.core.join.join_stream import DAY, label_for_all, predict
from tests.core.pipeline.test_checkpoint import JOIN, SPEC, Life, evaluate

NOW_MS = 7_000


def lived(horizon_ms=DAY):
    """Models m, with 8 outcomes of which 3 are errors, and n, with 3."""
    life = Life(join=replace(JOIN, horizon_ms=horizon_ms))
    life.until(NOW_MS)
    evaluate(life, 8, NOW_MS, wrong=lambda i: i % 3 == 0)
    evaluate(life, 3, NOW_MS, model="n")
    life.commit()
    return life


def outcomes(life):
    (found,) = [dict(each.samples) for each in life.monitors.families() if each.name == "outcomes_total"]
    return {model: number for (model,), number in found.items()}


def statistic(life, model="m"):
    (found,) = [dict(each.samples) for each in life.monitors.families() if each.name == "detector_statistic"]
    return found.get(("page_hinkley", model))


def again(life, **changed):
    """The state at the start after the next commit."""
    life.commit()
    found = life.restarted(**changed)
    assert (found.resumed.restarted, found.resumed.begun) == ((), ())
    return found


def test_an_epoch_has_its_beginning_and_outcomes_before_and_changes_no_estimator():
    life = lived()
    after = life.restarted(over=StartOver(epochs={"m": ("join.horizon", "join.order")}))
    expected = {"m": Epoch(NOW_MS, ["join.horizon", "join.order"], 8, anew=False)}
    assert after.checkpoint.beginnings.epochs == expected
    assert after.canonical() == life.canonical()
    assert after.resumed.begun == ()
    later = again(after)
    assert later.checkpoint.beginnings.epochs == expected
    evaluate(later, 1, NOW_MS, begin=8)
    assert later.checkpoint.changes({}).sections.get("beginnings") is None, "nothing began since"


def test_estimators_of_a_model_begin_anew_and_those_of_others_go_on():
    life = lived()
    over = StartOver(epochs={"m": ("reset",)}, estimators=frozenset({"m"}))
    after = life.restarted(over=over)
    assert after.resumed.begun == ("m",)
    assert outcomes(after) == {"n": 3}
    expected = {"m": Epoch(NOW_MS, ["reset"], 8, anew=True)}
    assert after.checkpoint.beginnings.epochs == expected
    later = again(after)
    assert outcomes(later) == {"n": 3}
    evaluate(later, 2, NOW_MS, begin=20)
    later = again(later)
    assert outcomes(later) == {"m": 2, "n": 3}
    assert later.checkpoint.beginnings.epochs == expected


def test_the_epoch_of_a_model_that_retires_ends():
    life = lived(JOIN.horizon_ms)
    after = life.restarted(over=StartOver(epochs={"m": ("join.order",), "n": ("join.order",)}))
    assert after.checkpoint.beginnings.epochs.keys() == {"m", "n"}
    after.until(40_000)
    evaluate(after, 1, 40_000, model="n", begin=9)
    after.until(70_000)
    assert after.checkpoint.beginnings.epochs == {}
    assert again(after).checkpoint.beginnings.epochs == {}


@pytest.mark.parametrize("chosen", [None, frozenset({"n"})])
def test_an_estimator_begins_anew_for_all_models_or_for_some(chosen):
    life = lived()
    before = statistic(life)
    assert before > 0
    after = life.restarted(over=StartOver(parts=frozenset({"page_hinkley"}), parts_of=chosen))
    assert outcomes(after) == {"m": 8, "n": 3}
    assert after.resumed.restarted == ("page_hinkley",)
    begun = {"page_hinkley": NOW_MS} if chosen is None else {}
    for found in (after, again(after)):
        assert statistic(found) == (before if chosen else None)
        assert found.checkpoint.beginnings.parts == begun


def test_a_changed_estimator_has_the_time_of_its_beginning_as_long_as_there_is_one():
    life = lived()
    changed = replace(SPEC, detectors=(replace(SPEC.detectors[0], threshold=2.0), SPEC.detectors[1]))
    after = life.restarted(spec=changed)
    assert after.checkpoint.beginnings.parts == {"page_hinkley": NOW_MS}
    after = again(after)
    assert after.checkpoint.beginnings.parts == {"page_hinkley": NOW_MS}
    renamed = replace(SPEC, detectors=(replace(SPEC.detectors[0], name="other"), SPEC.detectors[1]))
    without = after.restarted(spec=renamed)
    assert without.resumed.dropped == ("page_hinkley",)
    assert without.checkpoint.beginnings.parts == {"other": NOW_MS}
    assert again(without).checkpoint.beginnings.parts == {"other": NOW_MS}


def test_comparisons_begin_anew_and_models_go_on():
    life = lived()
    life.feed(*(predict(f"c{i}", "x", NOW_MS, model) for i in range(4) for model in "mn"))
    life.feed(*(label_for_all(f"c{i}", "x", NOW_MS) for i in range(4)))
    life.commit()
    empty = ComparisonSet(SPEC).snapshot()
    assert life.monitors.comparisons.snapshot() != empty
    after = life.restarted(over=StartOver(comparisons=True))
    for found in (after, again(after)):
        assert found.monitors.comparisons.snapshot() == empty
        assert outcomes(found) == {"m": 12, "n": 7}


def test_a_join_begins_without_entries_and_the_clock_goes_on():
    life = lived()
    life.feed(predict("waits", "x", NOW_MS + 5, "m"))
    life.commit()
    after = life.restarted(over=StartOver(join=True))
    assert outcomes(after) == {"m": 8, "n": 3}
    assert after.stream.pipeline.clock_ms == NOW_MS + 5
    after.feed(label_for_all("waits", "x", NOW_MS + 6))
    assert outcomes(after) == {"m": 8, "n": 3}
