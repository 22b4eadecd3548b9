"""A topic is deleted under a running daemon: it says so, and its log stays JSON to the last line."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.integration.conftest import Broker
from tests.integration.running import child
from tests.integration.topic_changes import delete_topic
from tests.integration.topics import create_topic, fresh, send


@pytest.mark.timeout(600)
async def test_the_log_of_a_daemon_whose_topic_is_deleted_holds_nothing_but_its_events(
    kafka: Broker, tmp_path: Path
) -> None:
    predictions = await create_topic(kafka, fresh("predictions"), 3)
    labels = await create_topic(kafka, fresh("labels"))
    await send(kafka.bootstrap_servers, predictions, [b'{"id":"1","model":"m","prediction":"a"}'])
    options = [
        f"kafka.bootstrap_servers={kafka.bootstrap_servers}",
        "kafka.group_id=lag",
        f"topics.predictions={predictions}",
        f"topics.labels={labels}",
        f"state.directory={tmp_path / 'state'}",
    ]
    surroundings = {"PYTHONWARNINGS": "always::ResourceWarning"}
    with child(tmp_path, *options, environment=surroundings) as running:
        running.url()
        while "catch_up_completed" not in running.log:
            running.pause()
        await delete_topic(kafka, predictions)
        while running.log.count("TopicsMissing") < 5:
            running.pause()
        assert running.end(signal.SIGTERM)[0] == 0
        events = [json.loads(line) for line in running.log.splitlines()]
    assert [event for event in events if event["event"].startswith("library_")] == []
    assert events[-1]["event"] == "stopped"
