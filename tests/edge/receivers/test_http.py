"""One attempt over HTTP: what each behaviour of the other side is taken for."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any

import pytest
import trustme
from aiohttp import web

from streamwatch.core.alerting.outbox import Delivered, DeliveryResult, Failed, Gone, Refused
from streamwatch.edge.receivers import EndpointSpec
from streamwatch.edge.receivers.alertmanager import Alertmanager
from streamwatch.edge.receivers.http import HttpReceiver, meaning, result_of, seconds_of
from streamwatch.edge.receivers.slack import Slack
from tests.edge.receivers.endpoint import endpoint
from tests.edge.receivers.notifications import NOW_MS, alarm, digest, firing, part, resolved, updated


async def reported(url: str, seconds: float = 300.0, **spec: Any) -> DeliveryResult:
    receiver = HttpReceiver(EndpointSpec("chat", url, timeout_seconds=seconds, **spec), Slack())
    await receiver.open()
    try:
        return await receiver.deliver(firing(), NOW_MS)
    finally:
        await receiver.close()


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        (200, Delivered()),
        (204, Delivered()),
        (400, Refused("http_400")),
        (404, Refused("http_404")),
        (408, Failed("http_408")),
        (425, Failed("http_425")),
        ((429, {"Retry-After": "7"}), Failed("http_429", 7.0)),
        ((503, {"Retry-After": "Tue, 14 Nov 2023 22:13:50 GMT"}), Failed("http_503", 30.0)),
        (410, Gone("http_410")),
        (500, Failed("http_500")),
        ("reset", Failed("connection")),
    ],
)
async def test_each_answer_has_its_meaning(script: Any, answer: DeliveryResult) -> None:
    async with endpoint(script) as receiver:
        assert await reported(receiver.url) == answer
        assert len(receiver.posts) == 1


async def test_a_redirect_is_a_failure_and_is_not_followed() -> None:
    async with endpoint() as elsewhere, endpoint((302, {"Location": elsewhere.url})) as receiver:
        assert await reported(receiver.url) == Failed("http_302")
        assert elsewhere.posts == []


async def test_a_receiver_that_hangs_costs_the_timeout_and_no_more() -> None:
    async with endpoint("hang") as receiver:
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await reported(receiver.url, seconds=0.2) == Failed("timeout")
        assert loop.time() - began < 60


async def test_nobody_listening_and_no_such_name_are_distinguished() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        assert await reported(f"http://127.0.0.1:{closed.getsockname()[1]}/") == Failed("connection")
    assert await reported("http://no-such-host.invalid/") == Failed("dns")


async def test_what_is_not_http_is_a_failure() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        answer = await reported(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    assert isinstance(answer, Failed)
    assert answer.reason in {"protocol", "connection"}


async def test_a_certificate_is_checked_against_the_given_authority(tmp_path: Any) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    trusted = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(trusted))

    async def good(_: web.Request) -> web.Response:
        return web.Response()

    app = web.Application()
    app.router.add_post("/", good)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    try:
        assert await reported(f"https://localhost:{port}/") == Failed("tls")
        assert await reported(f"https://localhost:{port}/", ca_file=str(trusted)) == Delivered()
    finally:
        await runner.cleanup()


async def test_the_environment_names_no_proxy_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with endpoint() as proxy, endpoint() as receiver:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        assert await reported(receiver.url) == Delivered()
        assert proxy.posts == []


async def test_only_a_receiver_with_reminders_is_reminded() -> None:
    async with endpoint() as server:
        form = Alertmanager()
        spec = EndpointSpec("am", server.url, repeat_interval_seconds=60.0)
        receiver = HttpReceiver(spec, form, form.reminder)
        assert (receiver.repeat_interval_seconds, HttpReceiver(spec, form).repeat_interval_seconds) == (
            60.0,
            None,
        )
        await receiver.open()
        assert await receiver.remind([firing(), firing("firing_2", "clicks")], NOW_MS) == Delivered()
        await receiver.close()
        assert [a["labels"]["model"] for a in server.posts[0].json] == ["fraud-v3", "clicks"]


def test_severities_choose_what_a_receiver_is_notified_of() -> None:
    receiver = HttpReceiver(EndpointSpec("chat", "http://a/", severities=frozenset({"critical"})), Slack())
    assert not receiver.wants(firing())
    critical = part(alarm(detector="adwin"), severity="critical")
    assert receiver.wants(updated(firing(), critical))
    assert receiver.wants(resolved(updated(firing(), critical)))
    ordinary = HttpReceiver(EndpointSpec("chat", "http://a/", severities=frozenset({"warning"})), Slack())
    assert ordinary.wants(updated(firing(), critical)), (
        "who was notified of its beginning is notified of its end"
    )
    assert receiver.wants(digest(severity="critical"))
    assert not receiver.wants(digest(severity="warning"))


def test_a_url_is_part_of_no_repr_and_only_its_host_is_shown() -> None:
    spec = EndpointSpec("chat", "https://user:pw@hooks.example.com/services/T0/B0/SECRET?key=SECRET")
    receiver = HttpReceiver(spec, Slack())
    assert "SECRET" not in repr(spec) + repr(receiver)
    assert receiver.host == "hooks.example.com"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:00:00 GMT", 0.0),
        ("Tuesday, 14-Nov-23 22:13:50 GMT", 30.0),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("²", None),
        ("", None),
        (None, None),
        ("9" * 400, 999_999_999.0),
    ],
)
def test_retry_after_is_seconds_or_a_date_or_nothing(text: str | None, seconds: float | None) -> None:
    assert seconds_of(text, NOW_MS) == seconds


def test_reasons_are_put_in_words_for_people() -> None:
    assert meaning("http_404").startswith("answered 404: nothing takes messages at this URL")
    assert meaning("http_502").startswith("answered 502: it failed")
    assert meaning("http_418") == "answered 418"
    assert meaning("http_302") == "answered 302: redirects are not followed, give the final URL"
    assert meaning("dns") == "the host name does not resolve"
    assert result_of(100, None, 0) == Failed("http_100")
