"""The two steps of the core, its state, and what a store may lend in parts."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from streamwatch.core.join.series import identities
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.stores.memory import MemoryStore
from tests.core.join.join_stream import (
    Stream,
    alive,
    clocked,
    label,
    label_for_all,
    null,
    predict,
    tick,
)


def test_needs_name_the_ids_and_what_will_be_due_at_the_end_of_the_batch():
    stream = Stream(JoinSpec(max_pending=3, max_labels=2))
    stream.feed(predict("a"), predict("b"), label("c"))
    read_set = stream.pipeline.read_set(
        [predict("d"), label("e"), null("f"), null(None), tick(5000), tick(7500)]
    )
    assert read_set.ids == ["d", "e", "f"]
    assert read_set.deadline_s == 7
    assert read_set.oldest_predictions == 2 + 6 - 3 + 1
    assert read_set.oldest_labels == 1 + 6 - 2
    assert stream.pipeline.clock_ms == 0


def test_a_step_names_every_id_it_touched_its_new_dedup_entries_and_outcomes():
    stream = Stream(JoinSpec(horizon_ms=1000))
    stream.feed(predict("old"))
    events = [predict("a"), label("a"), label("b"), tick(1000)]
    clocked(events)
    step = stream.pipeline.advance(events, stream.store.fetch(stream.pipeline.read_set(events)))
    assert step.touched == ["a", "b", "old"]
    assert [[record.id for record in records] for _, records in step.dedup_added] == [["a", "old"]]
    assert [outcome.true_class for outcome in step.outcomes] == ["x"]


class LendsInParts(MemoryStore):
    """Says of each index that it reaches some seconds past the clock, or past what it lent last."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds
        self.reached_s = -1

    def fetch(self, read_set):
        self.reached_s = max(self.reached_s, min(read_set.deadline_s, self.reached_s + self.seconds))
        reached_s = 2**62 if self.reached_s >= read_set.deadline_s else self.reached_s
        return replace(super().fetch(read_set), reached_s=(reached_s,) * 3)


@pytest.mark.parametrize("order", ["resolution", "prediction_time"])
@pytest.mark.parametrize("seconds", [1, 7, 40])
def test_what_falls_due_may_be_lent_in_parts(order, seconds):
    spec = JoinSpec(
        horizon_ms=20_000, early_horizon_ms=9_000, assume="y", order=order, reorder_window_ms=5_000
    )
    events = [predict(str(n), at=n * 300) for n in range(100)]
    events += [label(f"l{n}", at=30_000) for n in range(9)]
    events += [label("60", at=37_500), predict("late", at=90_000), label("late", at=90_100)]
    whole, parts = Stream(spec), Stream(spec, store=LendsInParts(seconds))
    whole.feed(*clocked(events))
    left, rounds = list(events), 0
    while left:
        step = parts.pipeline.advance(left, parts.store.fetch(parts.pipeline.read_set(left)))
        parts.store.apply(step)
        left = left[len(step.events) :]
        rounds += 1
        assert rounds < 1_000, "it stands still"
    assert rounds > 1
    assert parts.monitors.folded == whole.monitors.folded
    assert parts.pipeline.snapshot() == whole.pipeline.snapshot()
    assert alive(parts) == alive(whole)


def test_a_snapshot_of_something_else_is_refused():
    with pytest.raises(msgspec.DecodeError):
        Stream().pipeline.restore(b"not a snapshot")


def test_a_violated_identity_is_named():
    stream = Stream()
    stream.feed(predict(), label_for_all())
    stream.counters.predictions_accepted += 1
    stream.counters.without_model.joined += 1
    violated = identities(stream.pipeline._join)
    assert [text.split(" = ")[0] for text in violated] == ["predictions accepted", "labels without a model"]
    assert stream.value("join_identities_violated") == 2


def test_series_have_the_documented_names_and_no_sample_where_undefined():
    stream = Stream()
    families = {family.name: family for family in stream.pipeline.families()}
    assert families["oldest_pending_timestamp_seconds"].samples == []
    stream.feed(predict(at=3000))
    stream.until(4500)
    assert stream.value("oldest_pending_timestamp_seconds") == 3
    assert all(family.name.endswith("_total") == (family.kind == "counter") for family in families.values())
    assert all(family.labels == tuple(sorted(family.labels)) for family in families.values())


def test_estimators_limits_are_reported_with_those_of_the_join():
    stream = Stream(JoinSpec(max_models=1))
    stream.monitors.records_over_limit = {"classes": 4, "models": 1}
    stream.feed(predict("a", model="m"), predict("a", model="n"))
    assert stream.value("records_over_limit_total", "classes") == 4
    assert stream.value("records_over_limit_total", "models") == 2
