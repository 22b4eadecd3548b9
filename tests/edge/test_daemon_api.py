"""Answers that are none of a daemon, and addresses that nothing can be asked at, are refused by name."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamwatch.cli import app
from streamwatch.edge import daemon_api
from streamwatch.edge.daemon_api import Address, DaemonUnreachable, answer


@contextmanager
def answering(reply: bytes) -> Generator[str]:
    """URL of a server that answers one request with these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
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
    ],
)
def test_what_is_no_answer_of_a_daemon_is_named(reply: bytes, shown: str) -> None:
    with answering(reply) as url, pytest.raises(DaemonUnreachable, match=shown):
        answer(Address(url), "/x")


def test_an_answer_without_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_api, "_MOST_BYTES", 4)
    with (
        answering(b"HTTP/1.1 200 OK\r\n\r\n12345") as url,
        pytest.raises(DaemonUnreachable, match="more than 4 bytes"),
    ):
        Address(url).get("/x")


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
