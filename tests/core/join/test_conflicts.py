"""Predictions that are revised, in columns: as a naive join says, in many lives, also of several settings."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from msgspec import structs

from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.packed import CHANGED, MODEL, SIDE, key_of
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.events import Label, Outcome, Prediction
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.keys import digest_bytes
from tests.core.join.cold.cold_streams import ColdJoined, alive_outside
from tests.core.join.durable_streams import ColumnShelf, DurableJoined, cramped_logs
from tests.core.join.join_stream import alive, clocked, digested, label, null, predict
from tests.core.join.naive_join import NaiveJoin
from tests.core.join.naive_reports import naive_alive
from tests.core.join.streams import Columns, a_case, agrees_with, cramped, crowded_digests
from tests.tiers import by_tier

CONFLICTS = ("first", "last", "both")
STREAMS = by_tier(fast=8, rotating=20, default=70, everything=2_000)
pytestmark = pytest.mark.timeout(1_800 + 2 * STREAMS)


def revised(events, chance):
    """Return the events, with further predictions of the same ids, soon after or much later."""
    later = []
    for index, event in enumerate(events):
        if isinstance(event, Prediction) and chance.random() < 0.5:
            for _ in range(chance.choice([1, 1, 2])):
                at = index + chance.choice([1, 1, 2, 5, 20])
                own_ms = chance.choice([None, event.record_ms + 100, event.record_ms + 3_000])
                scores = chance.choice([None, {"x": 0.25, "y": 0.75}, event.scores])
                again = copy.copy(event)
                again.predicted_class, again.timestamp_ms = chance.choice("xyz"), own_ms
                again.scores, again.segments = scores, chance.choice([None, {"country": "9"}, event.segments])
                later.append((at, again))
    found = []
    for index, event in enumerate(events):
        found += [again for at, again in later if at == index]
        found.append(event)
    for event, before in zip(found, [*found[:1], *found], strict=False):
        event.record_ms = max(event.record_ms, before.record_ms)
    return clocked(found)


def compare(chance, made, digests=digest_bytes, *, changes):
    """A stream through a naive join in one life, and in columns in many; with `changes`, of other settings.

    Return what was seen.
    """
    spec, events, start_ms = a_case(chance)
    spec = replace(spec, conflicts=chance.choice(["last", "both", *CONFLICTS]))
    events = revised(events, chance)
    columns, naive = made(spec, digests, start_ms, chance), NaiveJoin(spec, start_ms)
    records = Columns(chance, digests)
    most, seldom = chance.choice([1, 5, 30]), chance.choice([1, 2, 5])
    seen, at = Counter(), 0
    while at < len(events):
        stop = min(len(events), at + chance.randrange(1, most + 1))
        for event in events[at:stop]:
            naive.feed(copy.copy(event))
        if chance.random() < 0.5:
            columns.feed_columns(records.of(events[at:stop]))
        else:
            columns.feed(events[at:stop])
        if isinstance(columns, ColdJoined):
            columns.look()
            columns.keep_up()
        if chance.randrange(2):
            columns.commit()
            seen["commits of changes"] += key_of(CHANGED, columns.shelf.commits) in columns.shelf.values
            if chance.randrange(seldom) == 0:
                if changes:
                    seen["kept when it changed"] += sum("last" in each for each in naive.pending)
                    columns.spec = replace(spec, conflicts=chance.choice(CONFLICTS))
                    naive.go_on_with(columns.spec.conflicts)
                columns.restart()
                seen["restarts"] += 1
        said = columns.read()
        agrees_with(naive, columns, said)
        oldest = min(naive.pending, key=lambda p: p["due"], default=None)
        assert said.holdings.oldest_ms == (None if oldest is None else oldest["at"])
        at = stop
    columns.commit()
    columns.restart()
    agrees_with(naive, columns, columns.read())
    if digests is digest_bytes:
        outside = alive_outside(columns.pipeline, columns.runs) if isinstance(columns, ColdJoined) else []
        assert sorted(alive(columns) + outside) == digested(naive_alive(naive))
    seen["revised"] += sum(outcome.last_class is not None for outcome in naive.outcomes)
    seen["conflicts"] += naive.count["conflict"]
    return seen + getattr(columns, "seen", Counter())


def in_memory(spec, digests, start_ms, _):
    return DurableJoined(spec, digests, start_ms)


MADE = pytest.mark.parametrize("made", [in_memory, ColdJoined], ids=["in memory", "outside"])


@MADE
@pytest.mark.parametrize("changes", [False, True], ids=["one setting", "changed settings"])
@pytest.mark.slow
def test_outcomes_and_counters_are_those_of_a_naive_join(made, changes):
    seen = Counter()
    for seed in range(STREAMS):
        seen += compare(Random(f"{made.__name__} {seed}"), made, changes=changes)
    assert min(seen["revised"], seen["restarts"], seen["commits of changes"]) > STREAMS, seen
    assert seen["conflicts"] > 10 * STREAMS, seen
    if changes:
        assert seen["kept when it changed"] > STREAMS, seen
    if made is ColdJoined:
        assert min(seen["outside 0"], seen["front 0"], seen["merges"]) > STREAMS, seen


@pytest.mark.slow
@MADE
def test_it_is_so_when_every_commit_writes_old_entries_anew_and_names_are_released(made):
    with cramped_logs(), cramped():
        for seed in range(STREAMS // 2):
            compare(Random(f"{made.__name__} cramped {seed}"), made, crowded_digests, changes=seed % 2 > 0)


def joined(conflicts, **more):
    return DurableJoined(JoinSpec(conflicts=conflicts, **more), digest_bytes, None)


def go_on(columns, conflicts):
    columns.commit()
    columns.spec = replace(columns.spec, conflicts=conflicts)
    columns.restart()


AT = {"made": 2, "resolved_ms": 5_000, "waited_ms": 4_000}
FIRST = Outcome("m", "y", "x", 5_000, 4_500, False, {"x": 0.9}, None, None, {"country": "1"}, **AT)
LATER = Outcome("m", "y", "y", 5_000, 2_000, False, {"y": 0.6}, "x", None, {"country": "2"}, **AT)
SETTINGS = {
    ("first", "first"): FIRST,
    ("first", "last"): FIRST,
    ("first", "both"): FIRST,
    ("last", "first"): LATER,
    ("last", "last"): LATER,
    ("last", "both"): LATER,
    ("both", "first"): FIRST,
    ("both", "last"): structs.replace(FIRST, predicted_class="y"),
    ("both", "both"): structs.replace(FIRST, last_class="y"),
}


@pytest.mark.parametrize(("before", "after"), SETTINGS)
def test_what_waits_while_the_setting_changes(before, after):
    columns = joined(before)
    columns.feed(
        [
            predict("a", "x", 1_000, timestamp_ms=500, scores={"x": 0.9}, segments={"country": "1"}),
            predict("b", "x", 1_500),
            label("b", "x", 2_000),
        ]
    )
    columns.commit()
    columns.feed([predict("a", "y", 3_000, scores={"y": 0.6}, segments={"country": "2"})])
    go_on(columns, after)
    columns.feed([label("a", "y", 5_000)])
    assert columns.outcomes[1:] == [SETTINGS[before, after]]


def test_what_was_dropped_does_not_come_back_with_the_setting():
    columns = joined("both")
    columns.feed([predict("a", "x", 0), predict("a", "y", 1)])
    for conflicts in ("first", "both"):
        go_on(columns, conflicts)
    columns.feed([label("a", "y", 5_000)])
    assert [outcome.last_class for outcome in columns.outcomes] == [None]


def test_a_class_that_counts_stays_so_with_the_setting_of_before():
    columns = joined("both")
    columns.feed([predict("a", "x", 0), predict("a", "y", 1)])
    for conflicts in ("last", "first", "both"):
        go_on(columns, conflicts)
    columns.feed([label("a", "y", 5_000)])
    assert [(each.predicted_class, each.last_class) for each in columns.outcomes] == [("y", None)]


def test_its_turn_to_expire_stays_that_of_the_first_over_a_restart():
    columns = joined("last", horizon_ms=10_000, assume="x")
    columns.feed([predict(key, "x", 0) for key in "abc"])
    columns.commit()
    columns.feed([predict("b", "y", 9_000)])
    go_on(columns, "last")
    columns.feed([predict("d", at=10_000)])
    assert [each.predicted_class for each in columns.outcomes] == ["x", "y", "x"]


def test_scores_of_what_was_replaced_are_dropped():
    columns = joined("last")
    columns.feed([predict("a", each, 0, scores={each: 0.5}) for each in "xyz"])
    held = columns.pipeline.join.names.scores
    assert (len(held), held.scores) == (1, 1)
    columns.feed([predict("a", "z", 0, scores={"z": 0.7}), null("a")])
    assert len(held) == 0


def test_nothing_more_is_written_of_predictions_that_are_not_revised():
    of_first, of_both = joined("first"), joined("both")
    for columns in (of_first, of_both):
        columns.feed([predict("a", "x", 0), predict("b", "x", 0), label("b")])
        columns.commit()
    assert of_first.shelf.items() == of_both.shelf.items()
    assert of_first.pipeline.join.arrays.side.nbytes == 0


def some_revised():
    """A shelf with a run of a revised prediction, and one that was revised after it was written."""
    columns = joined("both")
    columns.feed([predict("a", "x", 0), predict("a", "y", 1), predict("b", "x", 2)])
    columns.commit()
    columns.feed([predict("b", "z", 3)])
    columns.commit()
    return columns.shelf


@pytest.mark.parametrize("key", [key_of(SIDE, 0), key_of(CHANGED, 2)], ids=["side columns", "changes"])
@pytest.mark.parametrize(
    "change",
    [lambda value: value[:-1], lambda value: value + b"x", lambda _: b"", lambda value: b"\x91" + value[1:]],
    ids=["shorter", "longer", "empty", "of another form"],
)
def test_damaged_values_are_refused(key, change):
    shelf: ColumnShelf = some_revised()
    values = {**shelf.values, key: change(shelf.values[key])}
    fresh = Pipeline(JoinSpec(conflicts="both"), joined("both").monitors, digest_bytes)
    with pytest.raises(PackedError):
        fresh.restore(shelf.snapshot, sorted(values.items()))


@pytest.mark.parametrize("name", [b"", b"\xff", b"a\x1fw"], ids=["empty", "no text", "of no fold"])
def test_a_model_without_a_valid_name_is_refused(name):
    shelf: ColumnShelf = some_revised()
    values = {**shelf.values, key_of(MODEL, 0): name}
    fresh = Pipeline(JoinSpec(conflicts="both"), joined("both").monitors, digest_bytes)
    with pytest.raises(PackedError, match=f"the value under {key_of(MODEL, 0).hex()}"):
        fresh.restore(shelf.snapshot, sorted(values.items()))


def test_values_that_contradict_each_other_are_refused():
    shelf = some_revised()

    def restored(values):
        fresh = Pipeline(JoinSpec(conflicts="both"), joined("both").monitors, digest_bytes)
        fresh.restore(shelf.snapshot, sorted(values.items()))

    with pytest.raises(PackedError, match="some of no run"):
        restored({**shelf.values, key_of(SIDE, 7): shelf.values[key_of(SIDE, 0)]})
    without = {key: value for key, value in shelf.values.items() if key[:1] not in b"wx"}
    with pytest.raises(PackedError, match="that was not written"):
        restored(without)


def test_changes_are_forgotten_with_what_they_changed():
    columns = joined("last", horizon_ms=10**9)
    with cramped_logs():
        columns.feed([predict("old", "x", 0)])
        for n in range(1, 40):
            columns.feed([predict("old", "xy"[n % 2], n), predict(str(n), at=n), label(str(n), at=n)])
            columns.commit()
            assert len([key for key in columns.shelf.values if key[:1] == CHANGED]) <= 4
        columns.restart()
    columns.feed([Label("old", "y", 50, "m")])
    assert columns.outcomes[-1].predicted_class == "y"
