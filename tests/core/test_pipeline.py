"""The two steps of the core, its state, and a backlog read in step."""

from __future__ import annotations

from collections import deque
from random import Random

import msgspec
import pytest

from streamwatch.core.events import Label, Partition, Prediction, Progress
from streamwatch.core.join_series import identities
from streamwatch.core.specs import JoinSpec, TimeSpec
from tests.core.join_stream import DAY, LABELS, PREDICTIONS, Stream, label, label_for_all, null, predict

HOUR = 3_600_000
MINUTE = 60_000


def test_needs_name_the_ids_and_what_will_be_due_at_the_end_of_the_batch():
    stream = Stream(JoinSpec(max_pending=3, max_labels=2))
    stream.feed(predict("a"), predict("b"), label("c"))
    needs = stream.pipeline.needs(
        [
            predict("d"),
            label("e"),
            null("f"),
            null(None),
            Progress(*PREDICTIONS, 7500, False),
            Progress(*LABELS, 5000, False),
        ]
    )
    assert needs.ids == ["d", "e", "f"]
    assert (needs.prediction_deadline_s, needs.label_deadline_s) == (5, 7)
    assert needs.oldest_predictions == 2 + 6 - 3 + 1
    assert needs.oldest_labels == 1 + 6 - 2
    assert stream.pipeline.timeline.prediction_ms == -1


def test_a_step_names_every_id_it_touched_its_new_tombstones_and_outcomes():
    stream = Stream(JoinSpec(horizon_ms=1000))
    stream.feed(predict("old"))
    events = [
        predict("a"),
        label("a"),
        label("b"),
        Progress(*PREDICTIONS, 1000, False),
        Progress(*LABELS, 1000, False),
    ]
    step = stream.pipeline.advance(events, stream.store.fetch(stream.pipeline.needs(events)))
    assert step.touched == ["a", "b", "old"]
    assert [[record.id for record in records] for _, records in step.buried] == [["a", "old"]]
    assert [outcome.truth for outcome in step.outcomes] == ["x"]


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
    assert families["watermark_timestamp_seconds"].samples == []
    stream.feed(predict(at=3000))
    stream.until(4500)
    assert stream.value("oldest_pending_timestamp_seconds") == 3
    assert stream.value("watermark_timestamp_seconds", "label") == 4.5
    assert stream.value("watermark_timestamp_seconds", "prediction") == 4.5
    assert all(family.name.endswith("_total") == (family.kind == "counter") for family in families.values())
    assert all(family.labels == tuple(sorted(family.labels)) for family in families.values())


def test_estimators_limits_are_reported_with_those_of_the_join():
    stream = Stream(JoinSpec(max_models=1))
    stream.monitors.records_over_limit = {"classes": 4, "models": 1}
    stream.feed(predict("a", model="m"), predict("a", model="n"))
    assert stream.value("records_over_limit_total", "classes") == 4
    assert stream.value("records_over_limit_total", "models") == 2


class Topic:
    """Partitions of records sorted by record time, delivered in polls of so many bytes a partition."""

    POLL_BYTES = 5_000

    def __init__(self, records):
        self.records = {
            partition: deque(sorted(rows, key=lambda r: r.at_ms)) for partition, rows in records.items()
        }

    def poll(self, paused):
        batches = []
        for partition, records in self.records.items():
            size, delivered = 0, []
            while records and partition not in paused and size < self.POLL_BYTES:
                record = records.popleft()
                size += 1000 if type(record) is Prediction else 100
                delivered.append(record)
            batches.append((partition, delivered, not records))
        return batches


def backlog(seed=11, size=12_000):
    """Three days: every prediction a kilobyte, one in four labelled, in some hours, by a small record."""
    chance = Random(seed)  # noqa: S311 - a seeded simulation
    records = {Partition(topic, n): [] for topic, count in (("p", 3), ("l", 2)) for n in range(count)}
    labelled = 0
    for number in range(size):
        at_ms = number * 3 * DAY // size
        records[Partition("p", number % 3)].append(Prediction(str(number), "m", "x", at_ms))
        if chance.random() < 0.25:
            labelled += 1
            delay_ms = int(chance.expovariate(1 / (2 * HOUR)))
            model = chance.choice(["m", None])
            records[Partition("l", chance.randrange(2))].append(
                Label(str(number), "x", at_ms + delay_ms, model)
            )
    return records, labelled


def read_backlog(*, aligned):
    records, labelled = backlog()
    sides = {partition: "prediction" if partition.topic == "p" else "label" for partition in records}
    spec = JoinSpec(horizon_ms=DAY, early_horizon_ms=HOUR, max_labels=800)
    stream = Stream(spec, sides, TimeSpec(max_skew_ms=15 * MINUTE))
    source, timeline = Topic(records), stream.pipeline.timeline
    held = polls = 0
    while not timeline.caught_up:
        polls += 1
        assert polls < 10_000, "the source stands still"
        for partition, delivered, caught_up in source.poll(timeline.ahead() if aligned else frozenset()):
            newest = -1
            for record in delivered:
                newest = max(newest, timeline.stamp(partition, record.at_ms, 4 * DAY))
            stream.feed(*delivered, Progress(*partition, newest, caught_up))
        held = max(held, stream.pipeline._join.labels.early + stream.pipeline._join.labels.unmet)
    return stream, labelled, held


def test_a_backlog_of_three_days_far_heavier_in_predictions_loses_no_join():
    stream, labelled, held = read_backlog(aligned=True)
    assert stream.value("predictions_resolved_total") == labelled
    assert stream.value("labels_joined_total") == labelled
    assert stream.value("labels_orphaned_total") == stream.value("labels_evicted_total") == 0
    assert stream.value("labels_late_total") == 0
    assert held < 200


def test_without_time_alignment_the_same_backlog_would_lose_most():
    stream, labelled, _ = read_backlog(aligned=False)
    lost = stream.value("labels_evicted_total") + stream.value("labels_orphaned_total")
    assert lost > labelled // 4
    assert stream.value("predictions_resolved_total") < labelled - lost // 2
