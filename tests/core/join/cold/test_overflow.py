"""A join most of whose entries lie outside its table says what a naive one says, in many lives."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from streamwatch.core.join import join
from streamwatch.core.join.activity import used_entries
from streamwatch.core.join.cold import merging
from streamwatch.core.join.cold.overflow import Overflow, OverflowSpec
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.batch import batch_of
from streamwatch.core.records.events import Prediction
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.keys import digest_bytes
from tests.core.join.cold.cold_model import SMALL, CutRuns
from tests.core.join.cold.cold_streams import ColdJoined, alive_outside
from tests.core.join.durable_streams import cramped_logs
from tests.core.join.join_stream import alive, digested, label, label_for_all, predict
from tests.core.join.naive_join import NaiveJoin
from tests.core.join.naive_reports import naive_alive
from tests.core.join.shelf import ColumnShelf
from tests.core.join.streams import (
    Columns,
    Joined,
    RecordingEstimatorSet,
    a_case,
    agrees_with,
    cramped,
    crowded_digests,
    listened,
    reported,
)
from tests.tiers import by_tier

STREAMS = by_tier(fast=40, default=50, everything=10_000)
pytestmark = pytest.mark.timeout(1_800 + 2 * STREAMS)


def compare(chance, digests=digest_bytes):
    """One stream in one life, and in many; what was seen."""
    spec, events, start_ms = a_case(chance)
    spec = listened(spec)
    if chance.random() < 0.3:
        for event in events:
            if type(event) is Prediction:
                event.scores = None
    one_life = Joined(lambda monitors: Pipeline(spec, monitors, digest_bytes), start_ms)
    naive = NaiveJoin(spec, start_ms)
    columns = ColdJoined(spec, digests, start_ms, chance)
    most, seldom = chance.choice([1, 5, 30]), chance.choice([1, 2, 5])
    records = Columns(chance, digests)
    at = 0
    while at < len(events):
        stop = min(len(events), at + chance.randrange(1, most + 1))
        one_life.feed(events[at:stop])  # cuts change nothing: test_same_as_naive.py
        for event in events[at:stop]:
            naive.feed(event)
        if chance.random() < 0.5:
            columns.feed_columns(records.of(events[at:stop]))
        else:
            columns.feed(events[at:stop])
        columns.look()
        columns.keep_up()
        if chance.randrange(2):
            columns.commit()
            if chance.randrange(seldom) == 0:
                columns.restart()
                columns.seen["restarts"] += 1
                columns.look()
        said = columns.read()
        reports = reported(stop, events)
        assert columns.results(said, reports=reports) == one_life.results(reports=reports)
        agrees_with(naive, columns, said)
        at = stop
    columns.commit()
    columns.restart()
    assert columns.results() == one_life.results()
    outside = alive_outside(columns.pipeline, columns.runs)
    join = columns.pipeline.join
    assert join.holdings().tiers == {"memory": len(used_entries(join.arrays)), "disk": len(outside)}
    if digests is digest_bytes:
        assert sorted(alive(columns) + outside) == digested(naive_alive(naive))
    return columns.seen


@pytest.mark.slow
def test_a_table_of_a_few_entries_says_what_one_without_limits_says():
    seen = sum((compare(Random(seed)) for seed in range(STREAMS)), Counter())
    for queue in range(4):
        assert seen[f"outside {queue}"] > STREAMS, seen
    assert min(seen["front 0"], seen["merges"], seen["restarts"]) > STREAMS, seen


@pytest.mark.slow
def test_it_is_so_when_every_commit_writes_old_entries_anew_and_merges():
    with cramped_logs():
        for seed in range(10**6, 10**6 + STREAMS):
            compare(Random(seed))


@pytest.mark.slow
def test_it_is_so_with_names_that_are_released_and_ids_whose_digests_nearly_agree(monkeypatch):
    """In whatever order entries with equal lower halves are: numpy's sort has another on other processors."""
    chance = np.random.default_rng(1)

    def sorted_otherwise(low):
        order = chance.permutation(len(low))
        return order[np.argsort(low[order], kind="stable")].astype(np.int32), len(np.unique(low))

    monkeypatch.setattr(merging, "sorted_by_low", sorted_otherwise)
    with cramped_logs(), cramped():
        for seed in range(2 * 10**6, 2 * 10**6 + STREAMS // 2):
            compare(Random(seed), crowded_digests)


@pytest.mark.parametrize("conflicts", ["first", "last", "both"])
def test_a_restart_among_the_records_after_a_revision_of_a_cold_prediction_keeps_it(conflicts, monkeypatch):
    monkeypatch.setattr(join, "ROOM", 4)  # so that a batch of records takes several steps
    spec = JoinSpec(horizon_ms=3_600_000, conflicts=conflicts)
    early = [predict(str(n), "x", n) for n in range(30)]
    late = [predict("3", "y", 100), *(label(str(n), "x", 110) for n in range(10, 25)), label("3", "y", 120)]

    def in_steps(pipeline, events):
        """Take steps with their work done, each with whether a commit may follow."""
        times = np.array([event.record_ms for event in events])
        for step in pipeline.steps(batch_of(events, np.arange(len(events)), times)):
            if step.work is not None:
                step.work()
            yield step, step.is_whole and step.work is None

    def outcomes_with_a_restart_after(commits):
        runs, shelf, monitors = CutRuns(), ColumnShelf(), RecordingEstimatorSet()
        pipeline = Pipeline(spec, monitors, digest_bytes, Overflow(runs, OverflowSpec(1, 3, SMALL)))
        for _ in in_steps(pipeline, early):
            pass
        made = 0
        for step, may_commit in in_steps(pipeline, late):
            made += may_commit
            if may_commit and made == commits:
                shelf.commit(pipeline)
                runs.commit(pipeline.join.run_changes())
                runs.cut(0)
                pipeline = Pipeline(spec, monitors, digest_bytes, Overflow(runs, OverflowSpec(1, 3, SMALL)))
                list(in_steps(shelf.restored(pipeline), late[step.taken :]))
                break
        return made, [(each.predicted_class, each.last_class) for each in monitors.folded]

    expected = {"first": ("x", None), "last": ("y", None), "both": ("x", "y")}[conflicts]
    possible, _ = outcomes_with_a_restart_after(0)
    assert possible
    for commits in range(1, possible + 1):
        _, found = outcomes_with_a_restart_after(commits)
        assert found == [*[("x", None)] * 15, expected]


def test_of_ids_with_many_models_only_so_many_entries_are_loaded_at_once():
    models, ids, at_once = 30, 40, 100
    monitors = RecordingEstimatorSet()
    overflow = Overflow(CutRuns(), OverflowSpec(1, at_once, SMALL))
    pipeline = Pipeline(JoinSpec(horizon_ms=3_600_000), monitors, digest_bytes, overflow)
    for n in range(ids):
        pipeline.advance([predict(str(n), "x", n, f"m{model}") for model in range(models)])
    pipeline.advance([predict("later", "x", ids)])
    labels = [label_for_all(str(n), "x", 100 + n) for n in range(ids)]
    most = looked_up = 0
    look_up = overflow.contents.cold.look_up

    def counted(low, high):
        nonlocal looked_up
        looked_up += 1
        return look_up(low, high)

    overflow.contents.cold.look_up = counted
    times = np.array([each.record_ms for each in labels])
    for step in pipeline.steps(batch_of(labels, np.arange(ids), times)):
        if step.work is not None:
            step.work()
        most = max(most, len(pipeline.join.arrays.guests))
    assert len(monitors.folded) == models * ids
    assert at_once < most < at_once + models
    assert looked_up <= ids // (at_once // models) + 1
