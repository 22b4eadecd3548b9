"""`streamwatch alerts test`, as a person meets it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from streamwatch.cli.alerts import app
from tests.commands import CliRunner
from tests.edge.receivers.endpoint import Endpoint, endpoint

SAMPLES = ("drift.firing", "drift.resolved") * 2
"""Types of what a webhook is sent: an alarm and an early verdict, each with its end."""
KEY = "whsec_c2l4dGVlbiBieXRlcyBvciBtb3Jl"


@contextmanager
def listening(*script: Any) -> Iterator[Endpoint]:
    """An endpoint in a thread of its own: the command runs a loop in this one."""
    ready: list[Endpoint] = []
    started = threading.Event()
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        over = asyncio.Event()
        async with endpoint(*script) as made:
            ready.append(made)
            loops.append((asyncio.get_running_loop(), over))
            started.set()
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert started.wait(300)
    try:
        yield ready[0]
    finally:
        loop, over = loops[0]
        loop.call_soon_threadsafe(over.set)
        thread.join(300)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def receivers(folder: Path, *lines: str) -> None:
    body = "".join(f"    - {{{line}}}\n" for line in lines)
    (folder / "streamwatch.yaml").write_text(f"alerts:\n  receivers:\n{body}")


def test_each_receiver_is_notified_and_says_how_that_went(folder: Path) -> None:
    with listening() as good, listening(404) as bad:
        receivers(
            folder,
            f"name: oncall, type: webhook, url: '{good.url}', secrets: [{KEY}]",
            f"name: am, type: alertmanager, url: '{good.url}'",
            f"name: chat, type: slack, url: '{bad.url}/SECRET'",
        )
        result = CliRunner().invoke(app, ["test"])
        reported = [post.json for post in good.posts]
    lines = result.output.splitlines()
    assert result.exit_code == 2, "one of them did not take it"
    assert lines[0].startswith("✓ oncall at 127.0.0.1: delivered in ")
    assert lines[1].startswith("✓ am at 127.0.0.1: delivered in ")
    why = "answered 404: nothing takes messages at this URL; check its path, or get a new one there"
    assert lines[2] == f"✗ chat at 127.0.0.1: not delivered: {why}"
    assert "SECRET" not in result.output
    assert [t["type"] for t in reported[:2]] == ["drift.firing", "drift.resolved"]
    assert reported[0]["data"]["test"] is True
    early, retracted = (post["data"]["alarms"][0] for post in reported[2:4])
    assert (early["newest"]["judgement"]["status"], early["delays_moved"]) == ("early", ["hits"])
    assert (retracted["newest"]["judgement"]["status"], retracted["reason"]) == ("retracted", "retracted")
    assert "How late labels of hits are has changed lately" in str(reported[2])
    assert len(reported) == 6, "an Alertmanager ends both by itself"


def test_a_hint_is_sent_as_a_hint_and_is_over_at_once(folder: Path) -> None:
    with listening() as good:
        receivers(
            folder,
            f"name: oncall, type: webhook, url: '{good.url}', secrets: [{KEY}]",
            f"name: chat, type: slack, url: '{good.url}'",
            f"name: am, type: alertmanager, url: '{good.url}'",
            f"name: page, type: pagerduty, url: '{good.url}', routing_key: r",
        )
        result = CliRunner().invoke(app, ["test", "--hint"])
        reported = [post.json for post in good.posts]
    assert result.exit_code == 0, result.output
    assert [t["type"] for t in reported[:2]] == ["hint.firing", "hint.resolved"]
    assert [t["data"]["test"] for t in reported[:2]] == [True, True]
    assert [t["data"]["hint"]["reason"] for t in reported[:2]] == [None, "no_longer_active"]
    assert reported[0]["data"]["incident"] == reported[1]["data"]["incident"]
    assert "Test: Early hint, labels not yet in: streamwatch-test" in str(reported[2])
    assert [alert["labels"]["alertname"] for alert in reported[4]] == ["StreamwatchEarlyHint"]
    assert [t["event_action"] for t in reported[5:]] == ["trigger", "resolve"]


def test_receivers_of_digests_are_sent_one_and_nothing_else_if_that_is_all_they_take(folder: Path) -> None:
    with listening() as good:
        receivers(
            folder,
            f"name: both, type: webhook, url: '{good.url}', secrets: [{KEY}], events: [alarms, digest]",
            f"name: list, type: webhook, url: '{good.url}', secrets: [{KEY}], events: [digest]",
            f"name: chat, type: slack, url: '{good.url}', events: [digest]",
            f"name: plain, type: webhook, url: '{good.url}', secrets: [{KEY}]",
        )
        result = CliRunner().invoke(app, ["test"])
        reported = [post.json for post in good.posts]
    assert result.exit_code == 0, result.output
    assert len(result.output.splitlines()) == 4
    assert [each.get("type") for each in reported] == [
        *SAMPLES,
        "fleet.digest",
        "fleet.digest",
        None,
        *SAMPLES,
    ]
    digest = reported[5]["data"]
    assert digest["test"] is True
    assert [pair["model"] for pair in digest["digest"]["listed"]] == ["streamwatch-test"]
    assert "Test: Worse by the fleet's rule: 1 model (1 added)" in str(reported[6])
    assert "worse than the majority" in str(reported[6])


def test_one_receiver_can_be_chosen_and_success_is_zero(folder: Path) -> None:
    with listening() as good:
        receivers(
            folder,
            f"name: chat, type: slack, url: '{good.url}'",
            "name: broken, type: slack, url: 'http://no-such-host.invalid/'",
        )
        assert CliRunner().invoke(app, ["test", "--receiver", "chat"]).exit_code == 0
        broken = CliRunner().invoke(app, ["test", "--receiver", "broken"])
        unknown = CliRunner().invoke(app, ["test", "--receiver", "cat"])
    assert (broken.exit_code, unknown.exit_code) == (2, 2)
    assert broken.output.endswith("not delivered: the host name does not resolve\n")
    assert unknown.output == "--receiver: expected one of chat, broken, got 'cat'\n"


def test_without_receivers_there_is_nothing_to_test(folder: Path) -> None:
    del folder
    result = CliRunner().invoke(app, ["test"])
    assert result.exit_code == 2
    assert "no receiver is configured" in result.output
