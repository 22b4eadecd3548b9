"""`standby.enabled`: what it cannot be used with, and what `check` says that it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamwatch.assembly.build import build_daemon
from streamwatch.assembly.checks import check_all
from streamwatch.assembly.job_settings import REFUSALS
from streamwatch.assembly.publishing import election_spec, require_publishable
from streamwatch.demo.embedded import EmbeddedBroker
from streamwatch.settings import Settings, SettingsError
from streamwatch.telemetry import Telemetry


def settings(folder: Path, **sections: dict[str, Any]) -> Settings:
    document: dict[str, Any] = {
        "kafka": {"bootstrap_servers": "127.0.0.1:1"},
        "topics": {"predictions": "predictions", "labels": "labels"},
        "http": {"listen": "127.0.0.1:0"},
        "state": {"directory": str(folder / "state")},
        "ledger": {"topic": "fraud-ledger", "transactional_id": "fraud"},
        "standby": {"enabled": True},
    }
    for name, section in sections.items():
        document[name] = {**document.get(name, {}), **section}
    return Settings(**document)


@pytest.mark.parametrize(
    ("sections", "reported"),
    [
        ({"state": {"kind": "memory"}}, "standby.enabled: expected state.kind: rocksdb, got memory"),
        ({"kafka": {"start_from": "latest"}}, "kafka.start_from: expected earliest or a point in time"),
        ({"kafka": {"start_from": "-2h"}}, "kafka.start_from: expected earliest or a point in time"),
        ({"ledger": {"topic": "labels"}}, "ledger.topic: expected a topic of its own, got 'labels'"),
    ],
)
def test_what_replicas_cannot_be_used_with_is_refused_by_name(
    tmp_path: Path, sections: dict[str, dict[str, Any]], reported: str
) -> None:
    with pytest.raises(SettingsError, match=reported):
        build_daemon(settings(tmp_path, **sections), Telemetry(level="error"))


@pytest.mark.parametrize("start", ["earliest", "2025-06-01T00:00:00Z"])
def test_a_start_that_is_the_same_for_all_replicas_may_be_used(tmp_path: Path, start: str) -> None:
    require_publishable(settings(tmp_path, kafka={"start_from": start}))


def test_a_standby_of_results_and_of_a_job_is_refused(tmp_path: Path) -> None:
    document = settings(tmp_path).model_copy(update={"source": "results"})
    with pytest.raises(SettingsError, match=r"standby\.enabled: expected none with source: results"):
        require_publishable(document)
    [refusal] = [each for each in REFUSALS if each.key == "standby.enabled"]
    assert refusal.given(settings(tmp_path))


def test_the_session_decides_when_a_holder_is_silent_and_how_often_it_renews(tmp_path: Path) -> None:
    session = election_spec(settings(tmp_path)).session
    assert (session.timeout, session.margin, session.renewal) == (6.0, 1.0, 1.0)
    short = election_spec(settings(tmp_path, standby={"session_timeout": "1s"})).session
    assert short.renewal < short.timeout - short.margin


async def test_check_says_what_replicas_need(tmp_path: Path) -> None:
    found = await check_all(settings(tmp_path, kafka={"dead_letter_topic": "rejected"}))
    [reported] = [each for each in found if each.what.startswith("standby:")]
    shown = " ".join(reported.details)
    for needed in (
        "fraud-standby",
        "fraud-ledger",
        "group.min.session.timeout.ms",
        "state.directory",
        "twice",
    ):
        assert needed in shown
    alone = await check_all(settings(tmp_path, standby={"enabled": False}))
    assert not [each for each in alone if each.what.startswith("standby:")]


@pytest.mark.parametrize(
    ("partitions", "good", "reported"),
    [
        (None, True, "topic fraud-ledger: ledger, created at the first start"),
        (3, False, "ledger.topic: expected a topic with one partition, fraud-ledger has 3"),
    ],
)
async def test_check_asks_for_the_ledger(
    tmp_path: Path, partitions: int | None, reported: str, *, good: bool
) -> None:
    with EmbeddedBroker() as broker:
        for topic in ("predictions", "labels"):
            broker.create_topic(topic)
        if partitions is not None:
            broker.create_topic("fraud-ledger", partitions)
        found = await check_all(settings(tmp_path, kafka={"bootstrap_servers": broker.bootstrap_servers}))
    assert [each.good for each in found if each.what == reported] == [good]
