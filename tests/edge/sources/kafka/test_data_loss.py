"""What happened to a log is judged by topic ids and by what stands where remembered records stood."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from streamwatch.core.records.events import Fingerprint, Mark, Partition
from streamwatch.edge.sources.kafka import At, KafkaSource, KafkaSpec
from streamwatch.edge.sources.kafka.background_tasks import foreign
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord
from streamwatch.edge.sources.kafka.data_loss import (
    MARKS,
    DataLossSnapshot,
    DataLossTracker,
    Fingerprints,
    Found,
    Kinship,
    Verdict,
    judge,
    mark_of,
    with_newest,
)
from streamwatch.edge.sources.kafka.positions import PartitionPositions
from streamwatch.edge.sources.kafka.wire import Listed

EVENTS = Partition("events", 0)


@pytest.mark.parametrize(
    ("topic", "found", "verdict"),
    [
        ("other", [], "recreated"),
        ("other", ["same"], "recreated"),
        ("same", ["same"], "intact"),
        ("same", ["hidden"], "intact"),
        ("same", ["absent"], "unverified"),
        ("same", ["other", "other"], "truncation"),
        ("same", ["beyond"], "truncation"),
        ("unknown", ["same"], "intact"),
        ("unknown", ["absent"], "unverified"),
        ("unknown", ["other"], "recreated"),
        ("unknown", ["other", "absent", "other"], "recreated"),
        ("unknown", ["other", "other", "same"], "truncation"),
        ("unknown", ["beyond", "same"], "truncation"),
        ("unknown", ["beyond", "other"], "recreated"),
        ("unknown", ["beyond", "absent"], "truncation"),
        ("unknown", ["beyond"], "truncation"),
    ],
)
def test_the_table_is_followed(topic: Kinship, found: list[Found], verdict: Verdict) -> None:
    assert judge(topic, found) == verdict


def record(offset: int, value: bytes | None = b"v", key: bytes | None = None, record_ms: int = 1) -> object:
    return KafkaRecord("events", 0, offset, record_ms, key, value)


def test_records_that_differ_in_timestamp_key_or_value_have_other_hashes() -> None:
    parts = itertools.product((1, 2), (None, b"", b"a", b"ab"), (None, b"", b"b", b"ab"))
    hashes = [mark_of(record(7, value, key, record_ms)).hash for record_ms, key, value in parts]
    assert len(set(hashes)) == len(hashes)
    assert mark_of(record(7)) == mark_of(record(7))
    assert mark_of(record(7)).hash == mark_of(record(8)).hash


def test_few_marks_reach_far_back_however_many_there_were() -> None:
    marks: tuple[Mark, ...] = ()
    for offset in range(20_000):
        marks = with_newest(Mark(offset, 0), marks)
        assert marks[0].offset == offset
        assert len(marks) <= MARKS
        assert [m.offset for m in marks] == sorted({m.offset for m in marks}, reverse=True)
    assert marks[1].offset == 19_998
    assert 19_999 - marks[-1].offset > 2_000


def test_a_fingerprint_is_of_the_last_record_evaluated_and_survives_being_stored() -> None:
    prints = Fingerprints()
    prints.set_topic_id(EVENTS, "id")
    prints.delivered(EVENTS, record(1, b"w"))
    first = prints.all()[EVENTS]
    assert first == Fingerprint("id", (mark_of(record(1, b"w")),))
    assert prints.all()[EVENTS] is first
    prints.delivered(EVENTS, record(2))
    second = prints.all()[EVENTS]
    assert [mark.offset for mark in second.marks] == [2, 1]
    stored = msgspec.msgpack.encode(second)
    assert msgspec.msgpack.decode(stored, type=Fingerprint) == second
    prints.replace({EVENTS: first})
    assert prints.all() == {EVENTS: first}


def test_a_record_that_was_too_large_leaves_no_mark_which_another_limit_would_make_differ() -> None:
    prints = Fingerprints()
    sound = KafkaRecord("t", 0, 7, 1_000, None, b"v")
    prints.delivered(Partition("t", 0), sound)
    prints.delivered(Partition("t", 0), KafkaRecord("t", 0, 8, 1_000, fault="record_too_large"))
    assert prints.of(Partition("t", 0)).marks == (mark_of(sound),)


def test_a_log_found_to_be_another_one_is_not_released_before_its_position_is() -> None:
    prints = Fingerprints()
    prints.set_topic_id(EVENTS, "old")
    prints.delivered(EVENTS, record(7))
    prints.renew(EVENTS, "new")
    prints.renew(EVENTS, "newer")
    assert prints.of(EVENTS) == Fingerprint("newer", ())
    assert prints.all() == {EVENTS: Fingerprint("old", (mark_of(record(7)),))}
    prints.polled()
    assert prints.all() == {EVENTS: Fingerprint("newer", ())}
    prints.forget(EVENTS)
    assert prints.all() == {EVENTS: Fingerprint("newer", ())}
    prints.polled()
    assert prints.all() == {}
    prints.renew(EVENTS, "another")
    prints.replace({})
    assert prints.all() == {}


def polled(source: KafkaSource):
    """A poll that delivers nothing, what came before it being evaluated."""
    poll = source._empty()
    source.release_findings()
    return poll


async def test_a_commit_between_two_polls_holds_a_position_with_the_log_it_is_in() -> None:
    source = KafkaSource(KafkaSpec(), ["events"], lambda _: None)
    old = Fingerprint("old", (mark_of(record(9)),))
    partition_positions = source._partition_positions
    partition_positions.replace({EVENTS: 10}, {EVENTS: old})
    assert source._empty().partitions[EVENTS].position == 10
    connection: Any = Reborn()
    await partition_positions.settle(
        connection, {"events": Listed({0: 1}, "new")}
    )  # a connection is made meanwhile
    assert source.fingerprints() == {EVENTS: old}
    assert polled(source).partitions[EVENTS].position == 0
    assert source.fingerprints() == {EVENTS: Fingerprint("new", ())}


async def test_a_loss_found_between_two_polls_is_reported_with_the_position_that_comes_of_it() -> None:
    source = KafkaSource(KafkaSpec(), ["events"], lambda _: None)
    source.count_from({"recreated": 2, "retention": 1}, {"retention": 7}, 3)
    partition_positions = source._partition_positions
    partition_positions.replace({EVENTS: 10}, {EVENTS: Fingerprint("old", (mark_of(record(9)),))})
    connection: Any = Reborn()
    await partition_positions.settle(connection, {"events": Listed({0: 1}, "new")})
    assert source.losses == {"recreated": 2, "retention": 1}
    assert polled(source).partitions[EVENTS].position == 0
    assert source.losses == {"recreated": 3, "retention": 1}
    assert (source.records_lost, source.position_unverified) == ({"retention": 7}, 3)


async def test_a_loss_found_again_from_where_state_is_durable_is_counted_once() -> None:
    source = KafkaSource(KafkaSpec(), ["events"], lambda _: None)
    connection: Any = Reborn()
    for _ in range(3):
        source.count_from({}, {}, 0)
        source._partition_positions.replace({EVENTS: 10}, {EVENTS: Fingerprint("old", (mark_of(record(9)),))})
        await source._partition_positions.settle(connection, {"events": Listed({0: 1}, "new")})
        polled(source)
        assert source.losses == {"recreated": 1}


def test_what_is_found_is_counted_on_from_what_is_durable() -> None:
    losses = DataLossTracker("continue", lambda _: None)
    losses.overtaken(EVENTS, 5, 10)
    losses.unverified(EVENTS, 4)
    assert losses.released == DataLossSnapshot()
    losses.release()
    assert losses.released == DataLossSnapshot({"retention": 1}, {"retention": 5}, 1)
    losses.count_from(DataLossSnapshot({"retention": 4}, {"retention": 90}, 6))
    assert losses.released == DataLossSnapshot({"retention": 4}, {"retention": 90}, 6)
    losses.overtaken(EVENTS, 5, 10)
    losses.unverified(EVENTS, 4)
    losses.release()
    assert losses.released == DataLossSnapshot({"retention": 5}, {"retention": 95}, 7)


def test_that_another_state_used_the_group_last_is_counted_once_whether_or_not_a_write_failed() -> None:
    losses = DataLossTracker("continue", lambda _: None)
    losses.count_from(DataLossSnapshot({"state_restored": 1, "retention": 2}))
    losses.foreign("state_restored", "what", "remedy")
    assert losses.released.times == {"state_restored": 2, "retention": 2}
    losses.count_from(DataLossSnapshot({"state_restored": 1, "retention": 3}))  # the write of it failed
    assert losses.released.times == {"state_restored": 2, "retention": 3}
    losses.count_from(DataLossSnapshot({"state_restored": 2, "retention": 3}))  # it was there after all
    assert losses.released.times == {"state_restored": 2, "retention": 3}


class Reborn:
    """A cluster in which a topic was deleted and made anew."""

    async def resolve(self, *_: object) -> dict[Partition, int]:
        return {}

    async def ends(self, _: Partition) -> tuple[int, int]:
        return 0, 3


@pytest.mark.parametrize(
    ("own", "theirs", "begun", "cause"),
    [
        ("state=a commit=5", ["state=a commit=5"], True, None),
        ("state=a commit=5", ["state=a commit=3", "state=a commit=6"], True, "state_restored"),
        ("state=a commit=0", ["state=a commit=6"], False, "state_restored"),
        ("state=b commit=9", ["state=a commit=3"], True, "state_replaced"),
        ("state=b commit=0", ["state=a commit=3", "x"], False, "state_lost"),
        ("state=b commit=0", ["x", ""], False, None),
        ("state=b commit=0", [], False, None),
        ("", ["state=a commit=3"], False, None),
        # A partition this state has yet to commit still has the mark of the state before.
        ("state=b commit=4", ["state=a commit=9", "state=b commit=4"], True, None),
    ],
)
def test_the_group_distinguishes_states(own: str, theirs: list[str], begun: bool, cause: str | None) -> None:  # noqa: FBT001 - a case of the table
    found = foreign("g", own, theirs, begun=begun)
    assert (found and found.cause) == cause


class Asked:
    """A cluster that notes from where it was asked to begin."""

    def __init__(self) -> None:
        self.starts: dict[str, object] = {}

    async def resolve(self, partitions: list[Partition], start: object, _: int) -> dict[Partition, int]:
        self.starts |= {partition.topic: start for partition in partitions}
        return dict.fromkeys(partitions, 7)


async def test_a_topic_that_a_state_got_later_begins_at_its_own_time_and_the_others_at_the_start() -> None:
    losses = DataLossTracker("continue", lambda _: None)
    spec = KafkaSpec(start_from="latest")
    topics = ["old", "quiet", "added"]
    positions = PartitionPositions(
        spec, topics, losses, lambda _: None, lambda: 0.0, lambda: {"added": 5_000}
    )
    positions.replace({Partition("old", 0): 3}, {})
    listing: Any = {topic: Listed({0: 1}, "id") for topic in topics}
    cluster: Any = Asked()
    await positions.settle(cluster, listing)
    assert cluster.starts == {"quiet": "latest", "added": At(5_000)}
    assert positions.positions == {Partition("old", 0): 3, Partition("quiet", 0): 7, Partition("added", 0): 7}
