"""Writing a synthetic stream over the Kafka protocol."""

from __future__ import annotations

import asyncio
import time
import uuid
from types import SimpleNamespace

import msgspec
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from streamwatch.demo.embedded import EmbeddedBroker
from streamwatch.demo.simulate import (
    ScheduleSpec,
    SimulationError,
    SimulationSpec,
    create_topics,
    run_simulation,
    schedule,
)
from streamwatch.demo.simulated import DelaySpec, StreamSpec

pytestmark = pytest.mark.slow

STREAM = StreamSpec(seed=3, drift_every=150, delay=DelaySpec(median_s=2.0, never=0.1))


@pytest.fixture(scope="module")
def running():
    with EmbeddedBroker() as embedded:
        yield embedded


@pytest.fixture
def broker(running):
    """The broker, and two topics of this test's own."""
    name = uuid.uuid4().hex[:8]
    running.create_topic(f"predictions-{name}", 3)
    running.create_topic(f"labels-{name}", 2)
    return SimpleNamespace(
        bootstrap_servers=running.bootstrap_servers,
        predictions=f"predictions-{name}",
        labels=f"labels-{name}",
    )


def spec_for(broker, **changed):
    given = {
        "predictions_topic": broker.predictions,
        "labels_topic": broker.labels,
        "stream": STREAM,
        "run": "t",
    }
    return SimulationSpec(broker.bootstrap_servers, **{**given, **changed})


async def everything(broker, topic, partitions):
    """All records of a topic."""
    partitions_of_topic = [TopicPartition(topic, p) for p in range(partitions)]
    async with AIOKafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="none"
    ) as consumer:
        consumer.assign(partitions_of_topic)
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(partitions_of_topic)
        records = []
        async with asyncio.timeout(300):
            while len(records) < sum(ends.values()):
                for found in (await consumer.getmany(timeout_ms=200)).values():
                    records += found
    return records


async def test_a_flat_out_run_writes_the_schedule_as_a_backlog_that_ends_now(broker):
    began_ms = time.time_ns() // 1_000_000
    summary = await run_simulation(spec_for(broker, outcomes=400, flat_out=True, rate=20.0))
    predictions, labels = (
        await everything(broker, broker.predictions, 3),
        await everything(broker, broker.labels, 2),
    )
    start_ms = min(r.timestamp for r in predictions)
    planned = list(schedule(ScheduleSpec(STREAM, rate=20.0, start_ms=start_ms, run="t", instances=400)))
    assert sorted(r.value for r in predictions) == sorted(p.value for p in planned if p.side == "prediction")
    assert sorted(r.value for r in labels) == sorted(p.value for p in planned if p.side == "label")
    assert (summary.instances, summary.predictions, summary.labels) == (400, len(predictions), len(labels))
    now_ms = time.time_ns() // 1_000_000
    newest_ms = max(r.timestamp for r in predictions + labels)
    assert newest_ms <= now_ms
    assert max(r.timestamp for r in predictions) - start_ms == 399 * 50
    assert start_ms <= began_ms - 400 * 50


async def test_record_time_is_the_event_time_and_an_id_stays_in_its_partition(broker):
    await run_simulation(spec_for(broker, outcomes=100, flat_out=True))
    home = {}
    for record in await everything(broker, broker.predictions, 3):
        event = msgspec.json.decode(record.value)
        assert record.timestamp == event["timestamp"]
        assert record.key.decode() == event["id"]
        assert home.setdefault(event["id"], record.partition) == record.partition


async def test_two_runs_never_share_ids_unless_given_one_seed(broker):
    for _ in range(2):
        await run_simulation(spec_for(broker, outcomes=10, flat_out=True, run=None))
    ids = {r.key for r in await everything(broker, broker.predictions, 3)}
    assert len(ids) == 20


async def test_a_live_run_keeps_to_its_rate_and_sends_labels_when_they_are_due(broker):
    began = time.monotonic()
    summary = await run_simulation(spec_for(broker, outcomes=200, rate=400.0, time_scale=20.0))
    took = time.monotonic() - began
    assert took >= 199 / 400.0
    assert summary.labels == len(await everything(broker, broker.labels, 2))
    assert not summary.interrupted


async def test_a_head_start_is_written_at_once_with_timestamps_in_the_past(broker):
    began_ms = time.time_ns() // 1_000_000
    async with asyncio.timeout(900):  # at its rate it would take an hour
        await run_simulation(spec_for(broker, outcomes=200, rate=0.05, head_start=200, time_scale=100.0))
    assert min(r.timestamp for r in await everything(broker, broker.predictions, 3)) <= began_ms - 3_900_000


async def test_stopping_flushes_what_was_sent_and_says_so(broker):
    stop = asyncio.Event()
    running = asyncio.create_task(run_simulation(spec_for(broker, rate=500.0), stop=stop))
    async with asyncio.timeout(300):
        while not await everything(broker, broker.predictions, 3):
            pass
    stop.set()
    summary = await running
    assert summary.interrupted
    assert summary.predictions == len(await everything(broker, broker.predictions, 3))
    assert "were not sent" in "\n".join(summary.lines())


async def test_the_summary_shows_what_was_sent_and_where_the_drifts_are(broker):
    lines = "\n".join((await run_simulation(spec_for(broker, outcomes=400, flat_out=True))).lines())
    assert (
        "sent 1,200 predictions of 3 models (stable-v1, drifting-v2, adaptive-v3) on 400 instances" in lines
    )
    assert "drift at instance 150: abrupt" in lines
    assert "drift at instance 300: gradual" in lines


async def test_an_absent_topic_is_an_error_and_is_not_created(broker):
    for _ in range(2):
        with pytest.raises(SimulationError, match=r"absent: lables \(--create-topics makes them\)"):
            await run_simulation(spec_for(broker, labels_topic="lables", outcomes=1))


async def test_a_broker_without_admin_protocol_says_that_topics_were_not_created(broker):
    with pytest.raises(SimulationError, match="topics were not created"):
        await create_topics(broker.bootstrap_servers, ["new"], partitions=1)


async def test_no_broker_is_an_error_that_names_the_address():
    with pytest.raises(SimulationError, match=r"no Kafka broker at 127\.0\.0\.1:1"):
        await run_simulation(SimulationSpec("127.0.0.1:1", outcomes=1))


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({"rate": 0.0}, "rate must be above 0"),
        ({"time_scale": 0.0}, "time scale must be above 0"),
        ({"flat_out": True}, "needs a number of outcomes"),
        ({"rate": 1e-320}, r"rate must be at least 1\.05.*e-09 instances per second"),
        ({"rate": 1e-3, "flat_out": True, "outcomes": 10_000_000}, r"10,000,000 instances take 30 years"),
        ({"time_scale": 1e-320}, "label delays must be 30 years at most, got up to inf s"),
        ({"stream": StreamSpec(delay=DelaySpec(median_s=1e308))}, "with a median of 1e.308 s"),
    ],
)
def test_a_run_that_cannot_be_is_refused(changed, shown):
    with pytest.raises(ValueError, match=shown):
        SimulationSpec("localhost:9092", **changed)
