"""Endpoints that do everything wrong: reading goes on at full speed, and every failure is counted."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.cpu_budget import OwnTime
from tests.edge.receivers.endpoint import endpoint
from tests.integration.conftest import Broker
from tests.integration.running import Child, Samples, value
from tests.integration.watched import Models, Watch, all_told, nothing_secret_in, page, read, summed, until
from tests.integration.webhook_receiver import SECRET, TOKEN, receiving

ROUNDS, NAMES = 8, [f"model-{number}" for number in range(10)]
"""Of each model in each round: right, wrong for a while, and right again."""
RIGHT, WRONG = 700, 60
SLOWER = 1.5
"""As many times as long may reading take beside endpoints that do everything wrong: telling is work, too."""
POLL_SECONDS = 0.02
SCRIPTS: dict[str, tuple[Sequence[Any], str]] = {
    "hangs": (["hang"], "timeout"),
    "broken": ([500], "http_500"),
    "gone": ([410], "http_410"),
    "resets": (["reset"], "connection"),
    "moved": ([(302, {"Location": "/elsewhere"})], "http_302"),
    "busy": ([(429, {"Retry-After": "1"}), 200], "http_429"),
}
"""Endpoint → what it answers, the reason counted for it."""

log = logging.getLogger(__name__)


def receiver(name: str, url: str, **keys: Any) -> dict[str, Any]:
    made = {"name": name, "type": "webhook", "url": url, "secrets": [SECRET], "timeout": "60s"}
    return made | keys


@contextmanager
def closed_port() -> Iterator[int]:
    """One at which nobody listens, nor will before the end."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        yield nobody.getsockname()[1]


@asynccontextmanager
async def untrusted() -> AsyncIterator[str]:
    """The URL of a server whose certificate nobody vouches for."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("localhost", "127.0.0.1").configure_cert(context)

    async def never(_: web.Request) -> web.Response:
        pytest.fail("a request went to a server that is not trusted")

    app = web.Application()
    app.router.add_post("/", never)
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=context)
    try:
        yield f"https://localhost:{server.port}/"
    finally:
        await server.close()


async def catching_up(running: Child) -> tuple[float, float]:
    """Seconds it took to read the backlog, once it has: by the clock, and of its own."""
    while "topics_assigned" not in running.log:  # noqa: ASYNC110
        await asyncio.sleep(POLL_SECONDS)
    own = OwnTime(running.process.pid)
    while "catch_up_completed" not in running.log:
        own.look()
        await asyncio.sleep(POLL_SECONDS)
    lines = map(json.loads, running.log.splitlines())
    (seconds,) = [line["seconds"] for line in lines if line["event"] == "catch_up_completed"]
    return seconds, max(0.0, seconds - own.waited)


async def test_endpoints_that_do_everything_wrong_slow_nothing_and_are_counted(
    kafka: Broker, tmp_path: Path
) -> None:
    models = await Models.on(kafka)
    for _ in range(ROUNDS):
        for name in NAMES:
            models.answer(name, RIGHT, right=True)
            models.answer(name, WRONG, right=False)
        await models.flush()
    alarms: dict[str, Any] = {"cooldown": "0s", "give_up_after": "5s"}
    async with AsyncExitStack() as stack:
        bad = {name: await stack.enter_async_context(endpoint(*SCRIPTS[name][0])) for name in SCRIPTS}
        people = await stack.enter_async_context(receiving())
        nobody = stack.enter_context(closed_port())
        receivers = [
            receiver("people", people.url),
            *(
                receiver(name, f"{served.url}/{TOKEN}", timeout="1s" if name == "hangs" else "60s")
                for name, served in bad.items()
            ),
            receiver("untrusted", await stack.enter_async_context(untrusted())),
            receiver("closed", f"http://127.0.0.1:{nobody}/"),
            receiver("metadata", "http://2852039166:9/latest"),  # 169.254.169.254, otherwise
        ]
        calm = Watch(tmp_path / "calm", models, alarms)
        troubled = Watch(tmp_path / "troubled", models, alarms | {"receivers": receivers})
        with calm.life() as beside, troubled.life() as running:
            reading = [asyncio.create_task(catching_up(each)) for each in (beside, running)]
            shown = await asyncio.gather(
                *(until(each.url(), lambda s: caught_up(s, models.total())) for each in (beside, running))
            )
            (alone, _), (beside_them, own) = await asyncio.gather(*reading)
            log.info(
                "%d outcomes: %.2f s alone, %.2f s beside bad endpoints, %.2f s of its own",
                models.total(),
                alone,
                beside_them,
                own,
            )
            assert own < SLOWER * alone + 1.0
            assert len({summed(samples, "alarms_total") for samples in shown}) == 1
            at_rest = await until(running.url(), all_told)
            text = await page(running.url())
            for each in (running, beside):
                assert each.end(signal.SIGTERM)[0] == 0
    notifications = value(at_rest, "notifications_sent_total", receiver="people")
    assert notifications == len(people.told) == len({told.id for told in people.told}) > len(NAMES)
    reasons = {name: reason for name, (_, reason) in SCRIPTS.items()}
    reasons |= {"untrusted": "tls", "closed": "connection"}
    for name, reason in reasons.items():
        assert value(at_rest, "notifications_failed_total", receiver=name, reason=reason) > 0, name
        assert summed(at_rest, "notifications_failed_total", receiver=name) == value(
            at_rest, "notifications_failed_total", receiver=name, reason=reason
        ), f"{name} fails for one reason"
    assert summed(at_rest, "notifications_failed_total", receiver="metadata") > 0
    assert value(at_rest, "notifications_sent_total", receiver="busy") == notifications
    assert (
        value(at_rest, "notifications_dropped_total", receiver="gone", reason="receiver_gone")
        == notifications
    )
    assert len(bad["gone"].posts) == 1, "it asked not to be told any more"
    for name in ("hangs", "broken", "resets", "moved", "untrusted", "closed", "metadata"):
        assert value(at_rest, "notifications_sent_total", receiver=name) == 0
        assert summed(at_rest, "notifications_dropped_total", receiver=name) == notifications, name
    assert not [post for post in bad["moved"].posts if post.path == "/elsewhere"]
    nothing_secret_in(troubled, text)


def caught_up(samples: Samples, outcomes: int) -> bool:
    return (
        read(outcomes)(samples)
        and value(samples, "caught_up") == 1
        and summed(samples, "consumer_lag_records") == 0
    )


async def command(folder: Path, *receivers: dict[str, Any]) -> tuple[int, str]:
    """`streamwatch alerts test`, as a person runs it: exit code, and what it says."""
    file = folder / "prod.yaml"
    file.write_text(yaml.safe_dump({"alerts": {"receivers": list(receivers)}}))
    ran = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "streamwatch", "alerts", "test", "-c", str(file)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
    )
    said, _ = await ran.communicate()
    assert ran.returncode is not None
    return ran.returncode, said.decode()


async def test_the_test_command_says_whether_a_receiver_took_it(tmp_path: Path) -> None:
    async with receiving() as people:
        code, said = await command(tmp_path, receiver("people", people.url))
        assert (code, said.startswith("✓ people at 127.0.0.1: delivered in ")) == (0, True), said
        assert [(told.type, told.data["test"]) for told in people.told] == [
            ("drift.firing", True),
            ("drift.resolved", True),
            ("drift.firing", True),
            ("drift.resolved", True),
        ]
        early = people.told[2].data["alarms"][0]
        assert early["delays_moved"] == ["hits"]
        assert early["newest"]["judgement"]["status"] == "early"
        with closed_port() as nobody:
            dead = receiver("dead", f"http://127.0.0.1:{nobody}/{TOKEN}")
            code, said = await command(tmp_path, receiver("people", people.url), dead)
    assert code == 2
    assert said.splitlines()[1:] == [
        "✗ dead at 127.0.0.1: not delivered: the connection was refused, or broke off"
    ]
    assert TOKEN not in said
    assert SECRET not in said


async def test_a_link_local_address_is_refused_before_anything_starts(tmp_path: Path) -> None:
    code, said = await command(tmp_path, receiver("cloud", f"http://169.254.169.254/{TOKEN}"))
    assert code == 2
    assert "alerts.receivers[0].url: 169.254.169.254 is a link-local address" in said
    assert "Traceback" not in said
    assert TOKEN not in said
