"""Answers that are none of a daemon, and addresses that nothing can be asked at, are refused by name."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamwatch.cli import app
from streamwatch.edge import daemon_api
from streamwatch.edge.daemon_api import Address, DaemonUnreachable, answer
from tests.commands import CliRunner


@contextmanager
def answering(reply: bytes, heard: list[bytes] | None = None) -> Generator[str]:
    """URL of a server that answers one request, which is added to `heard`, with these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                request = connection.recv(65_536)
                if heard is not None:
                    heard.append(request)
                connection.sendall(reply)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        pytest.param(b"\0\0\0\x0c not HTTP\r\n\r\n", "not an answer of streamwatch", id="no HTTP"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", "broke off after 2 bytes", id="cut off"
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n<html>", "/x: not an answer of streamwatch", id="no JSON"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n[]", "expected an object", id="no object"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 60_000, "/x: not an answer", id="too deep"),
    ],
)
def test_what_is_no_answer_of_a_daemon_is_named(reply: bytes, shown: str) -> None:
    with answering(reply) as url, pytest.raises(DaemonUnreachable, match=shown):
        answer(Address(url), "/x")


@pytest.mark.parametrize("token", ["gehe\nim", "geh\0eim", "gehéim"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(DaemonUnreachable, match="printable ASCII") as caught:
        Address("http://127.0.0.1:1", token).get("/x")
    assert "geh" not in str(caught.value)


def test_a_token_is_not_passed_on_to_another_host() -> None:
    heard: list[bytes] = []
    done = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    with answering(done, heard) as other:
        there = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %b/y\r\n\r\n" % other.encode()
        with answering(there, heard) as url:
            assert Address(url, "secret").get("/x") == b"{}"
    assert [b"Authorization: Bearer secret" in request for request in heard] == [True, False]


def test_a_redirection_out_of_http_is_not_followed() -> None:
    there = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: ftp://127.0.0.1:1/y\r\n\r\n"
    with answering(there) as url, pytest.raises(DaemonUnreachable, match="answered 302"):
        Address(url).get("/x")


def test_an_answer_without_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_api, "_MOST_BYTES", 4)
    with (
        answering(b"HTTP/1.1 200 OK\r\n\r\n12345") as url,
        pytest.raises(DaemonUnreachable, match="more than 4 bytes"),
    ):
        Address(url).get("/x")


@pytest.mark.parametrize("url", ["http://me:hidden@127.0.0.1:9", "ftp://me:hidden@x", "https://hidden@x/y"])
def test_a_url_with_a_password_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(DaemonUnreachable, match="expected a URL without user and password") as refused:
        Address(url).get("/x")
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("url", ["127.0.0.1:9877", "ftp://x", "http://", "http://x:port", "http://[::1"])
def test_what_is_no_url_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(DaemonUnreachable, match=r"expected a URL such as http://127\.0\.0\.1:9877, got "):
        Address(url).get("/x")


@pytest.mark.parametrize("contents", [None, "none"])
def test_certificates_that_cannot_be_read_are_named(contents: str | None, tmp_path: Path) -> None:
    if contents is not None:
        (tmp_path / "ca.pem").write_text(contents)
    with pytest.raises(DaemonUnreachable, match=r"--ca-file: .*ca\.pem cannot be read"):
        Address("https://127.0.0.1:1", ca_file=tmp_path / "ca.pem").get("/x")


@pytest.mark.parametrize("command", [["report"], ["tune", "--url"], ["doctor", "--url"]])
def test_a_token_that_is_no_text_is_refused_by_every_command(command: list[str], tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_bytes(b"\xff\xfe\0")
    refused = CliRunner().invoke(app, [*command, "http://127.0.0.1:1", "--token-file", str(token)])
    assert "--token-file:" in refused.output
    assert isinstance(refused.exception, SystemExit)
