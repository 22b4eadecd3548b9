"""What a start finds is bitwise what the last commit left, wherever commits and restarts fall."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join import join, prediction_order
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.pipeline import pipeline
from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.pipeline.journal import read
from streamwatch.core.pipeline.sections import DocumentError, StartOver, document_of, spec_of
from streamwatch.core.records.batch import batch_of
from streamwatch.core.specs import (
    AdwinDriftSpec,
    ComparisonSpec,
    FadingSpec,
    JoinSpec,
    MonitorsSpec,
    PageHinkleySpec,
)
from tests.core.join.join_stream import DAY, Stream, clocked, label, label_for_all, predict, tick
from tests.core.model_store import ModelStore
from tests.tiers import examples

COMPARED = (ComparisonSpec("m", ("*",)),)
SPEC = MonitorsSpec(
    detectors=(PageHinkleySpec(threshold=1.0, min_outcomes=3), AdwinDriftSpec()),
    max_models=4,
    max_classes=10,
    comparisons=COMPARED,
)
JOIN = JoinSpec(
    horizon_ms=4_000, early_horizon_ms=2_000, dedup_horizon_ms=3_000, max_models=3, comparisons=COMPARED
)


class Life:
    """A pipeline over real estimators, which begins anew from what was committed."""

    def __init__(self, model_store=None, spec=SPEC, join=JOIN, journal=5, over=None):
        self.spec, self.join, self.journal = spec, join, journal
        self.monitors = EstimatorSet(spec)
        self.stream = Stream(join, self.monitors)
        self.checkpoint = Checkpoint(self.stream.pipeline, self.monitors, spec, journal)
        self.model_store = model_store or ModelStore()
        self.resumed = self.checkpoint.restore(self.model_store.saved(), over=over)
        self.alarms = []

    def feed(self, *events):
        pipeline = self.stream.pipeline
        clocked(events, pipeline.clock_ms)
        step = pipeline.advance(events)
        self.checkpoint.take(step)
        self.alarms += step.alarms
        assert pipeline.identities() == []

    def until(self, record_ms):
        self.feed(tick(record_ms))

    def commit(self):
        self.model_store.commit(self.checkpoint.changes({}))

    def restarted(self, **changed):
        arguments = {"spec": self.spec, "join": self.join, "journal": self.journal} | changed
        return Life(self.model_store, **arguments)

    def canonical(self):
        models = {model: self.monitors.snapshot(model) for model in sorted(self.monitors.models())}
        return models | {"compared": self.monitors.comparisons and self.monitors.comparisons.snapshot()}

    def pipeline_state(self):
        return self.stream.pipeline.snapshot()


ACTIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("predict"),
            st.integers(0, 9),
            st.sampled_from("mno"),
            st.sampled_from("xy"),
            st.integers(0, 3),
        ),
        st.tuples(st.just("label"), st.integers(0, 9), st.sampled_from("mno"), st.sampled_from("xy")),
        st.tuples(st.just("label_all"), st.integers(0, 9), st.sampled_from("xy")),
        st.tuples(st.just("pass"), st.integers(0, 4_000)),
        st.tuples(st.just("commit")),
        st.tuples(st.just("restart")),
    ),
    max_size=60,
)


def play(actions, *, restarts, join=JOIN, journal=5):
    life, now = Life(join=join, journal=journal), 0
    alarms = []
    for action in actions:
        match action:
            case ("predict", key, model, predicted_class, step):
                now += step
                life.feed(predict(str(key), predicted_class, now, model))
            case ("label", key, model, true_class):
                life.feed(label(str(key), true_class, now, model))
            case ("label_all", key, true_class):
                life.feed(label_for_all(str(key), true_class, now))
            case ("pass", step):
                now += step
                life.until(now)
            case ("commit",):
                life.commit()
            case ("restart",):
                life.commit()
                if restarts:
                    alarms += life.alarms
                    before, order = life.canonical(), life.pipeline_state()
                    life = life.restarted()
                    assert life.canonical() == before
                    assert life.pipeline_state() == order
    return life, alarms + life.alarms


@settings(max_examples=examples(1.5))
@given(ACTIONS, st.sampled_from(["resolution", "prediction_time"]), st.sampled_from([1, 5, 1_000]))
def test_restarts_at_any_commit_change_nothing(actions, order, journal):
    join = replace(JOIN, order=order, reorder_window_ms=1_500, max_reordered=4)
    whole, alarms = play(actions, restarts=False, join=join, journal=journal)
    cut, cut_alarms = play(actions, restarts=True, join=join, journal=journal)
    assert cut.canonical() == whole.canonical()
    assert cut.pipeline_state() == whole.pipeline_state()
    assert cut_alarms == alarms
    assert cut.monitors.totals() == whole.monitors.totals()


def evaluate(life, number, record_ms=0, model="m", wrong=lambda _i: False, begin=0):
    for i in range(begin, begin + number):
        life.feed(
            predict(f"{model}{i}", "x", record_ms, model),
            label(f"{model}{i}", "y" if wrong(i) else "x", record_ms, model),
        )


@settings(max_examples=examples(1))
@given(ACTIONS, st.sampled_from([1, 5, 1_000]))
def test_restarts_of_a_join_in_columns_change_nothing(actions, journal):
    whole_in_rows, _ = play(actions, restarts=False, journal=journal)
    Stream.compiled = True
    try:
        whole, alarms = play(actions, restarts=False, journal=journal)
        cut, cut_alarms = play(actions, restarts=True, journal=journal)
    finally:
        Stream.compiled = False
    assert cut.canonical() == whole.canonical() == whole_in_rows.canonical()
    assert cut.pipeline_state() == whole.pipeline_state()
    assert cut_alarms == alarms
    assert cut.monitors.totals() == whole.monitors.totals()


@pytest.mark.slow
def test_the_journal_stays_near_its_limit_whatever_the_number_of_models():
    life = Life(spec=replace(SPEC, max_models=4), join=replace(JOIN, max_models=4), journal=100)
    for commit in range(60):
        for model in "mnop":
            evaluate(life, 5, model=model, begin=5 * commit)
        life.commit()
        assert sum(len(read(entry)) for entry in life.model_store.journal.values()) <= 2 * 100 + 20
        assert len(life.checkpoint._journal) <= 100 + 20
    again = life.restarted()
    assert again.resumed.refolded == len(life.checkpoint._journal)
    assert again.canonical() == life.canonical()


def test_a_model_that_fell_silent_does_not_keep_the_journal_long():
    life = Life(join=replace(JOIN, horizon_ms=DAY), journal=10)
    evaluate(life, 1, model="n")
    life.commit()
    for commit in range(30):
        evaluate(life, 5, begin=5 * commit)
        life.commit()
    assert len(life.model_store.journal) <= 4
    assert set(life.restarted().monitors.models()) == {"m", "n"}


def test_comparisons_go_on_through_other_settings_and_begin_anew_after_a_time_without_them():
    life, comparison = Life(journal=1_000), "comparison of m with *"
    life.feed(*(predict(str(i), "xy"[i % 3 > 0], 0, model) for i in range(9) for model in "mno"))
    life.feed(*(label_for_all(str(i), "x", 0) for i in range(9)))
    life.commit()
    before = life.monitors.comparisons.snapshot()
    assert before != ComparisonSet(SPEC).snapshot()
    detectors = (PageHinkleySpec(threshold=2.0), AdwinDriftSpec())
    other = life.restarted(spec=replace(SPEC, detectors=detectors))
    assert other.monitors.comparisons.snapshot() == before
    assert comparison in other.resumed.continued
    other.commit()
    without = other.restarted(spec=replace(SPEC, comparisons=()), join=replace(JOIN, comparisons=()))
    assert without.resumed.dropped == (comparison, "verdict of comparisons by accuracy")
    without.commit()
    again = without.restarted(spec=SPEC, join=JOIN)
    assert comparison in again.resumed.restarted
    assert again.monitors.comparisons.snapshot() == ComparisonSet(SPEC).snapshot()
    again.commit()
    again.feed(predict("0", "x", 0, "m"), predict("10", "x", 0, "n"), predict("10", "x", 0, "m"))
    again.feed(label_for_all("10", "x", 0))
    again.commit()
    assert again.restarted().canonical() == again.canonical()
    assert again.stream.value("pairs_made_total") == 19


def test_comparisons_go_on_once_the_journal_has_lost_their_first_pairs():
    life = Life(journal=5, join=replace(JOIN, horizon_ms=DAY))
    for i in range(12):
        life.feed(*(predict(str(i), "xy"[i % 3 > 0], 0, model) for model in "mno"))
        life.feed(label_for_all(str(i), "x", 0))
        life.commit()
    assert len(life.model_store.journal) < 6
    assert life.restarted().canonical() == life.canonical()


def test_pairs_of_a_commit_before_a_restart_are_kept_when_the_journal_is_shortened():
    life = Life(journal=10, join=replace(JOIN, horizon_ms=DAY))
    life.feed(*(predict(str(i), "xy"[i > 0], 0, model) for i in range(2) for model in "mn"))
    life.feed(*(label_for_all(str(i), "x", 0) for i in range(2)))
    life.commit()
    life = life.restarted()
    for commit in range(5):
        evaluate(life, 5, begin=5 * commit + 5)
        life.commit()
    assert 1 not in life.model_store.journal
    assert life.restarted().canonical() == life.canonical()


def test_what_was_not_committed_never_happened():
    life = Life()
    evaluate(life, 5)
    life.commit()
    before = life.canonical()
    evaluate(life, 5, begin=5)
    assert life.canonical() != before
    assert life.restarted().canonical() == before


def test_a_section_is_written_when_it_changes_and_by_the_first_commit_of_a_start():
    life = Life()
    evaluate(life, 3)
    sections = {"alarms": b"one is open", "positions": b"3"}
    first = life.checkpoint.changes(sections)
    assert first.sections.items() > sections.items()
    evaluate(life, 1, begin=3)
    second = life.checkpoint.changes({**sections, "positions": b"4"})
    assert "alarms" not in second.sections
    assert second.sections["positions"] == b"4"
    assert life.checkpoint.changes({**sections, "positions": b"4"}).sections == {}
    closed = life.checkpoint.changes({"alarms": b"", "positions": b"4"})
    assert closed.sections == {"alarms": b""}
    for commit in (first, second, closed):
        life.model_store.commit(commit)
    saved = life.model_store.saved()
    assert (saved.sections["alarms"], saved.sections["positions"]) == (b"", b"4")
    begun = life.restarted().checkpoint.changes({"alarms": b"", "positions": b"4"})
    assert begun.sections.items() > {"alarms": b"", "positions": b"4"}.items()


@pytest.mark.parametrize("name", ["settings", "estimators"])
def test_a_state_without_one_of_its_sections_is_refused_by_its_name(name):
    life = Life()
    evaluate(life, 3)
    life.commit()
    saved = life.model_store.saved()
    damaged = replace(saved, sections={key: value for key, value in saved.sections.items() if key != name})
    with pytest.raises(PackedError, match=f"expected the section '{name}' beside 'pipeline'"):
        Checkpoint(Stream(JOIN, EstimatorSet(SPEC)).pipeline, EstimatorSet(SPEC), SPEC, 5).restore(damaged)


def test_a_model_that_retired_stays_retired_and_starts_anew_when_it_returns():
    life = Life()
    evaluate(life, 5)
    life.commit()
    life.until(60_000)
    evaluate(life, 2, record_ms=60_000, begin=9)
    life.commit()
    again = life.restarted()
    assert again.canonical() == life.canonical()
    (outcomes,) = [f for f in again.monitors.families() if f.name == "outcomes_total"]
    assert dict(outcomes.samples) == {("m",): 2}


@pytest.mark.parametrize("journal", [5, 1_000])
def test_a_model_that_returned_keeps_what_commits_after_its_retirement_have(journal):
    life = Life(journal=journal)
    evaluate(life, 5)
    life.commit()
    life.until(60_000)
    life.commit()
    for commit in range(3):
        evaluate(life, 2, record_ms=60_000, begin=10 + 2 * commit)
        life.commit()
        assert life.restarted().canonical() == life.canonical()
    (outcomes,) = [f for f in life.restarted().monitors.families() if f.name == "outcomes_total"]
    assert dict(outcomes.samples) == {("m",): 6}


def test_a_changed_detector_begins_anew_and_all_others_continue():
    life = Life()
    evaluate(life, 8)
    life.commit()
    changed = replace(SPEC, detectors=(replace(SPEC.detectors[0], threshold=2.0), SPEC.detectors[1]))
    after = life.restarted(spec=changed)
    assert after.resumed.restarted == ("page_hinkley",)
    assert after.resumed.dropped == ()
    assert "fading:0.999" in str(after.resumed.continued)
    after.commit()
    once_more = after.restarted()
    assert once_more.resumed.restarted == ()
    assert once_more.canonical() == after.canonical()
    series = {f.name: dict(f.samples) for f in once_more.monitors.families()}
    assert series["outcomes_total"] == {("m",): 8}


@pytest.mark.parametrize("models", [None, frozenset({"m"}), frozenset({"other"})])
def test_an_estimator_that_is_to_begin_anew_goes_on_for_other_models_only(models):
    life = Life()
    evaluate(life, 5)
    life.commit()
    detector = next(title for title in life.monitors.estimators().values() if "page_hinkley" in title)
    again = Life(life.model_store, over=StartOver(parts=frozenset({detector, "none"}), parts_of=models))
    assert again.resumed.restarted == (detector,)
    assert (detector in again.resumed.continued) is (models is not None)
    assert len(again.resumed.continued) > 1
    assert ("none" in again.checkpoint.beginnings.parts) is False


def test_another_fading_factor_restarts_only_that_window_and_the_recovery_of_its_error():
    life = Life()
    evaluate(life, 8)
    life.commit()
    forgetting = tuple(FadingSpec(0.99) if isinstance(f, FadingSpec) else f for f in SPEC.forgetting)
    after = life.restarted(spec=replace(SPEC, forgetting=forgetting, per_class="fading:0.99"))
    assert after.resumed.restarted == ("fading:0.99", "recovery of the error of fading:0.99")
    series = {f.name: dict(f.samples) for f in after.monitors.families()}
    assert (
        series["effective_sample_size"]["fading:0.99", "m"] == pytest.approx(0.0)
        or (
            "fading:0.99",
            "m",
        )
        not in series["effective_sample_size"]
    )
    assert series["effective_sample_size"]["landmark", "m"] == 8


def test_a_model_that_does_not_fit_the_new_limits_is_reported_and_begins_anew():
    life = Life()
    evaluate(life, 3)
    life.commit()
    after = life.restarted(spec=replace(SPEC, max_classes=5))
    assert list(after.resumed.refused) == ["m"]
    assert after.monitors.models() == []


@pytest.mark.parametrize("journal", [5, 1_000])
@pytest.mark.parametrize("limits", [{"max_classes": 5}, {"max_models": 1}])
def test_a_model_that_did_not_fit_stays_gone_at_the_starts_after_that(limits, journal):
    life = Life(journal=journal)
    for model in "mn":
        evaluate(life, 12, model=model)
    life.commit()
    evaluate(life, 2, model="n", begin=12)
    life.commit()
    after = life.restarted(spec=replace(SPEC, **limits))
    assert "n" in after.resumed.refused
    after.commit()
    again = after.restarted()
    assert (again.resumed.refused, again.canonical()) == ({}, after.canonical())
    evaluate(again, 1, model="n", begin=14)
    again.commit()
    once_more = again.restarted()
    assert once_more.canonical() == again.canonical()
    assert once_more.monitors.totals() == again.monitors.totals()


def test_settings_survive_a_version_that_knows_fewer_kinds():
    document = document_of(SPEC).replace(b"AdwinDriftSpec", b"OlderDriftSpec")
    spec, lost = spec_of(document)
    assert spec.detectors == SPEC.detectors[:1]
    assert lost == ("OlderDrift adwin",)
    assert spec_of(document_of(SPEC)) == (SPEC, ())
    with pytest.raises(DocumentError, match="settings of monitors"):
        spec_of(b"{}")


def evaluated(life, events, steps=None):
    """Evaluate events in steps, with a commit after each step that one may follow; return these steps."""
    records = batch_of(events, np.arange(len(events)), np.array([event.record_ms for event in events]))
    found = []
    for step in islice(life.stream.pipeline.steps(records), steps):
        life.checkpoint.take(step)
        found.append(step)
        if step.is_whole:
            life.commit()
    return found


def test_a_restart_while_thousands_of_held_outcomes_are_released_loses_none(monkeypatch):
    monkeypatch.setattr(pipeline, "MOST_AT_ONCE", 100)
    monkeypatch.setattr(prediction_order, "ROOM", 2_000)
    join = JoinSpec(horizon_ms=3_600_000, order="prediction_time", reorder_window_ms=60_000)
    spec, many = replace(SPEC, comparisons=()), 5_000
    events = [predict(str(n), "x", n // 10) for n in range(many)]
    events += [label(str(n), "xy"[n % 3 == 0], 2_000 + n // 10) for n in range(many)]
    events += [tick(200_000), predict("last", "x", 200_000), label("last", "x", 200_000)]
    whole = Life(spec=spec, join=join, journal=2 * many)
    steps = evaluated(whole, events)
    assert whole.monitors.outcomes_of("m") == many
    assert not all(step.is_whole for step in steps)
    for number, step in enumerate(steps, 1):
        if step.is_whole:
            cut = Life(spec=spec, join=join, journal=2 * many)
            evaluated(cut, events, number)
            again = cut.restarted()
            evaluated(again, events[step.taken :])
            assert again.canonical() == whole.canonical()
            assert again.pipeline_state() == whole.pipeline_state()


@pytest.mark.parametrize("order", ["resolution", "prediction_time"])
def test_a_restart_at_any_step_that_a_commit_may_follow_changes_nothing(order, monkeypatch):
    monkeypatch.setattr(pipeline, "MOST_AT_ONCE", 9)
    monkeypatch.setattr(join, "ROOM", 5)
    monkeypatch.setattr(prediction_order, "ROOM", 7)
    chance, events, now = Random(order), [], 0
    for number in range(300):
        now += chance.choice([0, 1, 10, 60])
        events.append(predict(str(number), chance.choice("xy"), now, chance.choice("mno")))
        earlier = str(chance.randrange(max(0, number - 9), number + 1))
        events += [label(earlier, chance.choice("xy"), now, model) for model in "mno"]
    spec, rules = replace(SPEC, comparisons=()), replace(JOIN, order=order, comparisons=())
    whole = Life(spec=spec, join=rules, journal=50)
    steps = evaluated(whole, events)
    assert len(steps) > 20
    for number in range(1, len(steps), 3):
        cut = Life(spec=spec, join=rules, journal=50)
        taken = [step.taken for step in evaluated(cut, events, number) if step.is_whole]
        again = cut.restarted()
        evaluated(again, events[max(taken, default=0) :])
        assert again.canonical() == whole.canonical()
        assert again.pipeline_state() == whole.pipeline_state()
