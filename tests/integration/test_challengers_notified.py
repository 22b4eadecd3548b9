"""A challenger that becomes better, and then worse: who waits for that is notified, and nobody else."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.integration.conftest import Broker
from tests.integration.watched import Models, Watch, read, until
from tests.integration.webhook_receiver import Told, receiving, webhook

COMPARED = [{"champion": "old", "challengers": ["new"]}]


async def test_a_challenger_is_better_and_then_worse_as_whoever_waits_for_it_is_told(
    kafka: Broker, tmp_path: Path
) -> None:
    models = await Models.on(kafka)
    async with receiving() as team, receiving() as oncall:
        team.answer = lambda _: None
        receivers = [
            webhook(team, name="team", events=["comparisons"]),
            webhook(oncall, name="oncall"),
        ]
        watch = Watch(tmp_path, models, {"receivers": receivers, "cooldown": "0s"}, comparisons=COMPARED)
        with watch.life() as running:
            models.answer_together({"old": 0.6, "new": 0.95}, 4_000)
            await models.flush()
            await until(running.url(), read(models.total()))
            await team.until(lambda: bool(team.told))
            running.end(signal.SIGKILL)
        (first,) = team.told
        team.answer = lambda _: 200
        with watch.life() as running:
            await team.until(lambda: len(team.told) > 1)
            models.answer_together({"old": 0.6, "new": 0.05}, 6_000)
            await models.flush()
            await team.until(lambda: any(sides(told) == ("comparison.firing", "worse") for told in team.told))
            assert running.end(signal.SIGTERM)[0] == 0
    assert sides(first) == ("comparison.firing", "better")
    assert [told.id for told in team.told].count(first.id) == 2
    assert team.told[1].data == first.data
    assert {told.type.partition(".")[0] for told in team.told} == {"comparison"}
    (ended,) = [told for told in team.told if sides(told) == ("comparison.resolved", "better")]
    assert ended.data["incident"] == first.data["incident"]
    assert first.data["comparison"].items() >= {"champion": "old", "challenger": "new"}.items()
    assert not [told for told in oncall.told if told.type.startswith("comparison")]


def sides(told: Told) -> tuple[str, str]:
    """Type of a notification, and the side it says."""
    return told.type, told.data["comparison"]["verdict"]
