"""Alarms of many models at once, through commits, kills and deliveries: one digest, of one id."""

from __future__ import annotations

import pytest

from streamwatch.core.alerting.pacing import PacingSpec
from tests.core.model_store import ModelStore
from tests.daemon.fake_alerting import HOUR_MS, FakeDaemon, alarm, telling

SPEC = PacingSpec(group_wait_ms=10_000, max_per_minute=5)


def outage(models: int = 500) -> list[object]:
    return [alarm(f"fraud-{n:03d}") for n in range(models)]


async def test_an_outage_of_500_models_is_one_notification() -> None:
    daemon = FakeDaemon(paced=SPEC)
    async with telling(daemon):
        daemon.find(*outage())
        await daemon.rests()
        assert daemon.receiver.delivered == []
        assert daemon.model_store.saved().outbox == {}
        daemon.now_ms += 10_000
        await daemon.turns(lambda: bool(daemon.receiver.delivered))
        await daemon.rests()
    (digest,) = daemon.receiver.delivered
    assert digest.gathered is not None
    assert digest.gathered.models == 500
    assert daemon.model_store.saved().outbox == {}


async def test_what_was_gathered_before_a_kill_is_delivered_after_it() -> None:
    store = ModelStore()
    killed = FakeDaemon(store, paced=SPEC)
    async with telling(killed):
        killed.find(*outage(12))
        await killed.rests()
    assert killed.receiver.delivered == []
    again = FakeDaemon(store, paced=SPEC)
    again.now_ms += 10_000
    async with telling(again):
        await again.turns(lambda: bool(again.receiver.delivered))
        await again.rests()
    (digest,) = again.receiver.delivered
    assert digest.gathered is not None
    assert digest.gathered.notifications == 12


async def test_a_digest_that_was_committed_and_not_delivered_keeps_its_id_and_its_contents() -> None:
    store = ModelStore()
    killed = FakeDaemon(store, paced=SPEC)
    killed.find(*outage(12))
    await killed.rests()
    killed.now_ms += 10_000
    await killed.rests()  # nobody delivers: the process dies before that
    assert len(store.saved().outbox) == 1
    lives = [FakeDaemon(store, paced=SPEC) for _ in range(2)]
    delivered = []
    for life in lives:
        life.now_ms += 10_000
        async with telling(life):
            await life.turns(lambda life=life: bool(life.receiver.delivered))
        delivered += life.receiver.delivered  # killed again before a commit forgets it
        if life is lives[0]:
            lives[1].begin_life()
    assert len(delivered) == 2
    assert delivered[0] == delivered[1]


async def test_a_few_alarms_are_notified_one_by_one_after_their_wait() -> None:
    daemon = FakeDaemon(paced=SPEC)
    async with telling(daemon):
        daemon.find(*outage(3))
        await daemon.rests()
        daemon.now_ms += 10_000
        await daemon.turns(lambda: len(daemon.receiver.delivered) == 3)
    assert daemon.receiver.kinds == ["firing"] * 3


@pytest.mark.parametrize("models", [3, 12])
async def test_what_waits_for_others_is_announced_once_when_it_is_decided_and_a_digest_when_it_is_made(
    models: int,
) -> None:
    store = ModelStore()
    killed = FakeDaemon(store, paced=SPEC)
    killed.find(*outage(models))
    await killed.rests()
    again = FakeDaemon(store, paced=SPEC)
    again.now_ms += 10_000
    async with telling(again):
        await again.turns(lambda: bool(again.receiver.delivered))
        await again.rests()
    decided, later = (
        [each.kind for durable in life.shown for each in durable.outgoing.announced]
        for life in (killed, again)
    )
    assert decided == ["firing"] * models
    assert later == ([] if models <= SPEC.max_per_minute else ["digest"])


async def test_an_alarm_that_ends_as_its_wait_does_is_notified_before_its_end() -> None:
    daemon = FakeDaemon(paced=SPEC)
    async with telling(daemon):
        daemon.find(alarm())
        await daemon.rests()
        daemon.now_ms += 2 * HOUR_MS  # its resolve_timeout
        await daemon.turns(lambda: len(daemon.receiver.delivered) == 2)
    assert daemon.receiver.kinds == ["firing", "resolved"]


@pytest.mark.parametrize("models", [3, 12])
async def test_a_pager_is_sent_the_end_of_each_incident_that_it_opened_and_of_no_other(models: int) -> None:
    daemon = FakeDaemon(paced=SPEC, closing=True)
    async with telling(daemon):
        daemon.find(*outage(models))
        await daemon.rests()
        daemon.now_ms += 10_000
        await daemon.turns(lambda: bool(daemon.receiver.delivered))
        await daemon.rests()
        daemon.now_ms += 2 * HOUR_MS
        await daemon.rests()
    assert daemon.receiver.kinds == (["firing"] * 3 + ["resolved"] * 3 if models == 3 else ["digest"])


async def test_a_receiver_that_groups_by_itself_is_sent_the_alarms_of_2000_models() -> None:
    daemon = FakeDaemon()
    async with telling(daemon):
        daemon.find(*outage(2_000))
        await daemon.turns(lambda: len(daemon.receiver.delivered) == 2_000)
    assert daemon.receiver.kinds == ["firing"] * 2_000
