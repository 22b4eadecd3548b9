"""Dead letters arrive as they were or as stubs; one that cannot is counted and takes no other along."""

from __future__ import annotations

import asyncio
import random

import pytest

from streamwatch.edge.sources.kafka.batches.record import KafkaRecord
from streamwatch.edge.sources.kafka.dead_letters import DeadLetterTopic
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.telemetry import DeadLettersDelayed, DeadLettersDropped, InternalEvent
from tests.cpu_budget import until
from tests.edge.sources.kafka.fake_brokers import FakeBrokers, Refusal, Written

TOO_LARGE, DENIED, TOO_FEW, INVALID_RECORD, NO_TOPIC = 10, 29, 19, 87, 3


def topic(brokers: FakeBrokers, events: list[InternalEvent] | None = None, seconds: float = 0.05):
    emit = (events if events is not None else []).append
    return DeadLetterTopic(KafkaSpec(), "dead", emit, seconds, brokers)


def record(offset: int, value: bytes | None = b"{", key: bytes | None = None, headers=()) -> KafkaRecord:
    return KafkaRecord("predictions", 3, offset, 0, key, value, headers)


def counts(of: DeadLetterTopic) -> dict[str, dict[tuple[str, ...], float]]:
    return {family.name: dict(family.samples) for family in of.families() if family.samples}


async def test_everything_is_written_unchanged_whatever_is_missing_of_it() -> None:
    brokers = FakeBrokers()
    to = topic(brokers)
    contents = [(b"k", b"v"), (None, b"v"), (b"k", None), (b"", b""), (None, b""), (b"", None)]
    for offset, (key, value) in enumerate(contents):
        to.put(record(offset, value, key, (("trace", b"x"), ("none", None))), "invalid_json")
    await to.flush()
    assert [(written.key, written.value) for written in brokers.log] == contents
    for offset, written in enumerate(brokers.log):
        assert list(written.headers) == [
            ("trace", b"x"),
            ("none", None),
            ("streamwatch.topic", b"predictions"),
            ("streamwatch.partition", b"3"),
            ("streamwatch.offset", b"%d" % offset),
            ("streamwatch.reason", b"invalid_json"),
        ]


async def test_a_record_with_neither_key_nor_value_is_a_stub_and_delays_nothing() -> None:
    brokers = FakeBrokers()
    to = topic(brokers)
    to.put(KafkaRecord("predictions", 3, 0, 0, fault="record_too_large"), "record_too_large")
    to.put(record(1), "invalid_json")
    await to.flush()
    stub, other = brokers.log
    assert (stub.key, stub.value, stub.position) == (None, b"", ("predictions", 3, 0))
    assert dict(stub.headers)["streamwatch.reason"] == b"record_too_large"
    assert dict(stub.headers)["streamwatch.stub"] == b"no_content"
    assert other.value == b"{"
    assert brokers.requests == 1
    assert counts(to) == {
        "dead_letters_written_total": {(): 2.0},
        "dead_letter_stubs_total": {("no_content",): 1.0},
    }


def too_long(written: Written) -> int:
    return TOO_LARGE if len(written.value or b"") > 50 else 0


def unkeyed(written: Written) -> int:
    return INVALID_RECORD if written.key is None else 0


def unlucky(written: Written) -> int:
    return INVALID_RECORD if written.position[2] % 7 == 3 else 0


@pytest.mark.parametrize(
    ("code", "stubs", "dropped"),
    [(too_long, {"too_large"}, set()), (unkeyed, set(), {"refused"}), (unlucky, set(), {"refused"})],
)
async def test_what_brokers_refuse_is_counted_alone_and_every_other_arrives_as_it_was(
    code: Refusal, stubs: set[str], dropped: set[str]
) -> None:
    chance = random.Random(2)
    brokers = FakeBrokers(code, {0: 1, 1: 2, 2: 1})
    to = topic(brokers)
    records = [
        record(
            offset,
            b"x" * chance.choice((1, 20, 100)),
            chance.choice((None, b"k%d" % chance.randrange(9))),
        )
        for offset in range(1_500)
    ]
    for each in records:
        to.put(each, "invalid_json")
    await to.flush()
    arrived = {written.position[2]: written for written in brokers.log}
    assert len(arrived) == len(brokers.log), "none twice"
    alone = Written(0, None, None, [])
    for each in records:
        as_it_was = Written(0, each.key, each.value, [("streamwatch.offset", b"%d" % each.offset)])
        headers = [("streamwatch.topic", b"t"), ("streamwatch.partition", b"0"), *as_it_was.headers]
        refused = code(Written(0, each.key, each.value, headers))
        written = arrived.get(each.offset, alone)
        if not refused:
            assert (written.key, written.value) == (each.key, each.value)
        elif stubs:
            assert (written.key, written.value) == (None, b"")
        else:
            assert written is alone
    found = counts(to)
    assert {reason for (reason,) in found.get("dead_letter_stubs_total", {})} == stubs
    assert {reason for (reason,) in found.get("dead_letters_dropped_total", {})} == dropped
    lost = sum(found.get("dead_letters_dropped_total", {}).values())
    assert found["dead_letters_written_total"][()] + lost == len(records)


async def test_one_that_ends_the_connection_is_a_stub_in_the_end_and_the_others_arrive_as_they_were() -> None:
    brokers = FakeBrokers(breaks_beyond=2_000_000)
    to = topic(brokers, seconds=20.0)
    for offset in range(20):
        to.put(record(offset, b"x" * (3_000_000 if offset == 7 else 10)), "invalid_json")
    await to.flush()
    assert sorted(written.position[2] for written in brokers.log) == list(range(20))
    assert {len(written.value or b"") for written in brokers.log} == {0, 10}
    assert counts(to)["dead_letter_stubs_total"] == {("connection_closed",): 1.0}
    await to.stop()
    assert brokers.open == 0


@pytest.mark.parametrize(("code", "reason"), [(DENIED, "denied"), (NO_TOPIC, "no_topic")])
async def test_a_topic_that_refuses_everything_is_not_asked_for_each(code: int, reason: str) -> None:
    events: list[InternalEvent] = []
    brokers = FakeBrokers(lambda _: code)
    to = topic(brokers, events, seconds=20.0)
    for offset in range(1_000):
        to.put(record(offset), "invalid_json")
    await to.flush()
    assert brokers.requests == 1
    assert counts(to)["dead_letters_dropped_total"] == {(reason,): 1_000.0}
    [dropped] = events
    assert isinstance(dropped, DeadLettersDropped)
    assert (dropped.dead_letters, dropped.reason) == (1_000, reason)


async def test_a_partition_with_too_few_replicas_keeps_only_its_own_waiting() -> None:
    brokers = FakeBrokers(lambda written: TOO_FEW if written.partition == 0 else 0, {0: 1, 1: 1})
    events: list[InternalEvent] = []
    to = topic(brokers, events, seconds=0.7)
    for offset in range(40):
        to.put(record(offset, key=b"k%d" % offset), "invalid_json")
    await to.flush()
    written = counts(to)["dead_letters_written_total"][()]
    assert 0 < written < 40
    assert counts(to)["dead_letters_dropped_total"] == {("too_few_replicas",): 40 - written}
    assert any(isinstance(each, DeadLettersDelayed) and "NotEnoughReplicas" in each.error for each in events)


async def test_while_it_waits_it_says_for_what_and_goes_on_once_brokers_take_it() -> None:
    brokers = FakeBrokers(lambda _: TOO_FEW)
    to = topic(brokers, seconds=60.0)
    to.put(record(0), "invalid_json")
    assert to.problem is None
    flushing = asyncio.create_task(to.flush())
    await until(lambda: to.problem is not None)
    assert to.problem == "1 dead letters wait for topic dead: NotEnoughReplicasError (19)"
    brokers.code = lambda _: 0
    await flushing
    assert to.problem is None
    assert counts(to) == {"dead_letters_written_total": {(): 1.0}}


async def test_brokers_that_fall_silent_leave_the_reason_they_gave_before() -> None:
    brokers = FakeBrokers(lambda _: TOO_FEW, silent_after=1)
    to = topic(brokers, seconds=0.8)
    to.put(record(0), "invalid_json")
    await to.flush()
    assert brokers.requests == 2
    assert counts(to)["dead_letters_dropped_total"] == {("too_few_replicas",): 1.0}


async def test_after_it_was_given_up_each_flush_is_one_attempt_until_something_is_taken() -> None:
    brokers = FakeBrokers(away=True)
    to = topic(brokers)
    to.put(record(0), "invalid_json")
    await to.flush()
    assert counts(to)["dead_letters_dropped_total"] == {("unreachable",): 1.0}
    for offset in range(1, 4):
        before = brokers.connections
        to.put(record(offset), "invalid_json")
        await to.flush()
        assert brokers.connections == before + 1
    brokers.away = False
    to.put(record(4), "invalid_json")
    await to.flush()
    assert [written.position[2] for written in brokers.log] == [4]
    await to.stop()
    assert brokers.open == 0


async def test_nothing_is_kept_after_a_flush_and_a_stop_leaves_the_connection() -> None:
    brokers = FakeBrokers()
    to = topic(brokers)
    to.put(record(0, b"x" * 9_000_000), "invalid_json")
    assert to.is_full
    await to.flush()
    assert not to.is_full
    to.put(record(1), "invalid_json")
    await to.stop()
    assert brokers.open == 0
    await to.flush()
    assert len(brokers.log) == 1
