"""The consumer group remembers which state last used it, on Apache Kafka."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer

from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka import KafkaSource, KafkaSpec, LogLost, checking, probe_group
from streamwatch.edge.sources.kafka.background_tasks import shared
from streamwatch.telemetry import InternalEvent, StateMismatchDetected
from tests.integration.conftest import Broker
from tests.integration.polling import Reader
from tests.integration.topics import create_topic, fresh, send

RECORDS = [b"%d" % i for i in range(10)]


class Run:
    """One start of the daemon with some state: its positions, and the mark it goes by."""

    def __init__(
        self, kafka: Broker, topic: str, group: str, mark: str, on_data_loss: str = "continue"
    ) -> None:
        self.mark = mark
        self.topic = Partition(topic, 0)
        self.heard: list[InternalEvent] = []
        spec = KafkaSpec(
            bootstrap_servers=kafka.bootstrap_servers,
            group_id=group,
            on_data_loss=on_data_loss,  # type: ignore[arg-type]
            poll_timeout_ms=100,
            commit_interval_ms=100,
        )
        self.source = KafkaSource(spec, [topic], self.heard.append, offset_metadata=lambda: self.mark)

    async def read(self, first: int | None, then: str = "") -> list[bytes | None]:
        """Read from there to the end; leave `then` in the group as the mark of what is durable."""
        try:
            await self.source.start({} if first is None else {self.topic: first})
            reader = Reader(self.source)
            await reader.until_caught_up()
            if then:
                self.mark = then
                self.source.durable({self.topic: reader.poll.partitions[self.topic].position})
                await reader.until(lambda: self.source._background._durable is None)
            return reader.values
        finally:
            await self.source.stop()


async def committed(run: Run) -> None:
    """Let what is durable come to the group, after a look at who else commits there."""
    run.source._group._look_at = 0.0
    run.source.durable({run.topic: len(RECORDS)})
    await Reader(run.source).until(
        lambda: run.source._background._durable is None and run.source._background._idle("commit")
    )


@pytest.fixture
async def used(kafka: Broker) -> tuple[str, str]:
    """A topic, and a group in which state `a` has come to commit 5."""
    topic, group = await create_topic(kafka, fresh("used")), fresh("group")
    await send(kafka.bootstrap_servers, topic, RECORDS)
    assert await Run(kafka, topic, group, "state=a commit=0").read(None, "state=a commit=5") == RECORDS
    return topic, group


@pytest.mark.parametrize("mark", ["state=a commit=5", "state=a commit=6", ""])
async def test_the_same_state_and_one_that_has_no_name_go_on_in_silence(
    kafka: Broker, used: tuple[str, str], mark: str
):
    run = Run(kafka, *used, mark, "fail")
    assert await run.read(4) == RECORDS[4:]
    assert run.source.losses == {}


@pytest.mark.parametrize(
    ("mark", "first", "cause", "says"),
    [
        ("state=b commit=0", None, "state_lost", r"commit 5 of state a, and this state is empty"),
        ("state=a commit=3", 6, "state_restored", r"commit 5 of this state, which is at commit 3"),
        ("state=b commit=9", 6, "state_replaced", r"last used by state a, and this is state b"),
    ],
)
async def test_another_state_than_the_one_last_used_is_noticed_counted_and_loses_nothing(
    kafka: Broker, used: tuple[str, str], mark: str, first: int | None, cause: str, says: str
):
    strict = Run(kafka, *used, mark, "fail")
    with pytest.raises(LogLost, match=rf"{says}.*{cause}.*put .* back"):
        await strict.read(first)
    run = Run(kafka, *used, mark)
    assert await run.read(first, mark.replace("commit=", "commit=1")) == RECORDS[first or 0 :]
    assert (run.source.losses, run.source.records_lost) == ({cause: 1}, {})
    assert [h.cause for h in run.heard if isinstance(h, StateMismatchDetected)] == [cause]
    # The group is this state's now.
    again = Run(kafka, *used, mark.replace("commit=", "commit=1"), "fail")
    assert await again.read(first) == RECORDS[first or 0 :]


async def test_offsets_of_another_program_say_nothing_of_a_state(kafka: Broker):
    topic, group = await create_topic(kafka, fresh("others")), fresh("group")
    await send(kafka.bootstrap_servers, topic, RECORDS)
    await Run(kafka, topic, group, "").read(None, "written by something else")
    run = Run(kafka, topic, group, "state=b commit=0", "fail")
    assert await run.read(None) == RECORDS


async def test_another_daemon_on_the_same_group_is_noticed_while_both_run(kafka: Broker):
    topic, group = await create_topic(kafka, fresh("shared")), fresh("group")
    await send(kafka.bootstrap_servers, topic, RECORDS)
    first = Run(kafka, topic, group, "state=a commit=1")
    second = Run(kafka, topic, group, "state=b commit=1")
    try:
        for run in (first, second):
            await run.source.start({})
            await Reader(run.source).until_caught_up()
            await committed(run)
        assert first.source.losses == {}
        first.mark = "state=a commit=2"
        await committed(first)
        assert first.source.losses == {"group_shared": 1}
        [told] = [event for event in first.heard if isinstance(event, StateMismatchDetected)]
        assert "used by another daemon at the same time, whose state is b" in told.what
        await committed(first)
        assert first.source.losses == {"group_shared": 1}, "it is said once"
        await committed(second)
        assert second.source.losses == {"state_lost": 1, "group_shared": 1}
    finally:
        await first.source.stop()
        await second.source.stop()


async def test_a_copy_of_the_state_on_the_same_group_is_noticed(kafka: Broker):
    topic, group = await create_topic(kafka, fresh("copied")), fresh("group")
    await send(kafka.bootstrap_servers, topic, RECORDS)
    run = Run(kafka, topic, group, "state=a commit=4")
    await run.read(None, "state=a commit=5")
    spec = KafkaSpec(bootstrap_servers=kafka.bootstrap_servers, group_id=group)
    assert await probe_group(spec, [topic], lambda: ("state=a commit=5", True)) is None
    found = shared(group, "state=a commit=3", ["state=a commit=5"])
    assert found is not None
    assert "on a copy of this state" in found.what


async def test_a_group_that_others_subscribe_with_is_told_by_check_and_while_running(kafka: Broker):
    topic, group = await create_topic(kafka, fresh("members")), fresh("group")
    await send(kafka.bootstrap_servers, topic, RECORDS)
    member = AIOKafkaConsumer(
        topic, bootstrap_servers=kafka.bootstrap_servers, group_id=group, client_id="billing"
    )
    await member.start()
    try:
        await member.getone() if not member.assignment() else None
        spec = KafkaSpec(bootstrap_servers=kafka.bootstrap_servers, group_id=group)
        found = await probe_group(spec, [topic], lambda: ("state=a commit=1", True))
        assert found is not None
        assert found.cause == "group_shared"
        assert "billing on 127.0.0.1" in found.what
        run = Run(kafka, topic, group, "state=a commit=1")
        try:
            await run.source.start({})
            reader = Reader(run.source)
            await reader.until_caught_up()
            run.source.durable({run.topic: 3})
            await reader.until(lambda: bool(run.source.losses))
            assert reader.values == RECORDS, "reading needs no group"
        finally:
            await run.source.stop()
        assert run.source.losses == {"group_shared": 1}
    finally:
        await member.stop()


async def test_check_tells_a_daemon_that_uses_the_group_now_from_one_that_did(
    kafka: Broker, monkeypatch: pytest.MonkeyPatch
):
    topic, group = await create_topic(kafka, fresh("twice")), fresh("group")
    await send(kafka.bootstrap_servers, topic, RECORDS)
    run = Run(kafka, topic, group, "state=a commit=4")
    await run.read(None, "state=a commit=5")
    monkeypatch.setattr(checking, "COMMITS_SECONDS", 0.3)
    spec = KafkaSpec(bootstrap_servers=kafka.bootstrap_servers, group_id=group)
    found = await probe_group(spec, [topic], lambda: ("state=none commit=0", False))
    assert found is not None
    assert found.cause == "state_lost"
    other = Run(kafka, topic, group, "state=a commit=5")
    going: asyncio.Task[None] | None = None
    try:
        await other.source.start({})
        await Reader(other.source).until_caught_up()

        async def commits() -> None:
            for number in range(6, 10_000):
                other.mark = f"state=a commit={number}"
                await committed(other)

        going = asyncio.create_task(commits())
        now = await probe_group(spec, [topic], lambda: ("state=none commit=0", False))
        assert now is not None
        assert now.cause == "group_shared"
    finally:
        if going is not None:
            going.cancel()
        await other.source.stop()
