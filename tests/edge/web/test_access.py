"""Who may read, and how the way there is protected."""

from __future__ import annotations

import io
import ssl
from pathlib import Path

import aiohttp
import pytest
import trustme
from pydantic import ValidationError

from streamwatch.assembly.http import build_server
from streamwatch.edge.web.access import Access
from streamwatch.edge.web.connections import ListenError
from streamwatch.edge.web.server import HttpServer
from streamwatch.settings.http import HttpSection
from streamwatch.telemetry import HttpExposed, Telemetry
from tests.edge.web.http_faces import FakeHealth, Model, report_of, serving

TOKEN = "correct-horse-battery-staple"  # noqa: S105  # opens nothing but these tests
CLOSED = (
    "/metrics",
    "/api/v1/models",
    "/api/v1/models/m",
    "/api/v1/models/m/history",
    "/api/v1/overview",
    "/api/v1/list",
    "/api/v1/alarms",
    "/api/v1/health",
    "/api/v1/stream",
    "/api/v1/openapi.json",
    "/nowhere",
)
OPEN = ("/healthz", "/readyz", "/", "/page/main.js", "/page/page.css", "/page/vendor/uPlot.iife.min.js")


async def status(server: HttpServer, path: str, **headers: str) -> int:
    async with aiohttp.ClientSession() as session, session.get(server.url + path, headers=headers) as answer:
        return answer.status


@pytest.mark.parametrize("path", CLOSED)
@pytest.mark.parametrize(
    "shown",
    [None, "", "Bearer", "Bearer ", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN],
)
async def test_without_the_token_no_number_is_reported(path: str, shown: str | None) -> None:
    async with serving(token=TOKEN) as server, aiohttp.ClientSession(server.url) as session:
        server.publish(report_of({"m": Model()}))
        headers = {} if shown is None else {"Authorization": shown}
        async with session.get(path, headers=headers) as answer:
            assert answer.status == 401
            assert answer.headers["WWW-Authenticate"] == 'Bearer realm="streamwatch"'
            assert await answer.json() == {"error": "a bearer token is needed", "status": 401}


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_with_the_token_everything_answers(scheme: str) -> None:
    async with serving(token=TOKEN) as server, aiohttp.ClientSession(server.url) as session:
        server.publish(report_of({"m": Model()}))
        for path in CLOSED:
            async with session.get(path, headers={"Authorization": f"{scheme} {TOKEN}"}) as answer:
                assert answer.status == (404 if path == "/nowhere" else 200), path


@pytest.mark.parametrize("path", OPEN)
async def test_health_and_the_empty_page_need_no_token(path: str) -> None:
    async with serving(token=TOKEN) as server:
        assert await status(server, path) == 200


async def test_a_file_read_ends_at_the_page_s_own_files() -> None:
    async with serving(token=TOKEN) as server:
        for path in ("/page/nothing.js", "/page/..%2f__init__.py", "/page/%2fetc%2fpasswd"):
            assert await status(server, path) == 404, path


async def test_a_token_file_s_line_end_is_not_part_of_the_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    async with serving(token_file=file) as server:
        assert await status(server, "/metrics") == 401
        assert await status(server, "/metrics", Authorization=f"Bearer {TOKEN}") == 200


@pytest.mark.parametrize("token", ["short", "", "with a space in it, quite long", "naïve-but-long-enough"])
def test_a_token_that_protects_nothing_or_fits_no_header_is_refused(token: str) -> None:
    with pytest.raises(ValidationError, match="at least 16 printable ASCII") as error:
        HttpSection(token=token)  # type: ignore[arg-type]
    assert not token or repr(token) not in str(error.value).partition("[type=")[0]


def test_a_token_is_given_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    with pytest.raises(ValidationError, match="not both"):
        HttpSection(token=TOKEN, token_file=file)  # type: ignore[arg-type]


def test_the_token_is_in_no_representation() -> None:
    section = HttpSection(token=TOKEN)  # type: ignore[arg-type]
    assert TOKEN not in repr(section)
    assert TOKEN not in repr(Access(token=TOKEN))


@pytest.fixture
def authority(tmp_path: Path) -> tuple[trustme.CA, dict[str, Path]]:
    ca = trustme.CA()
    issued = ca.issue_cert("127.0.0.1", "localhost")
    files = {"certificate_file": tmp_path / "cert.pem", "key_file": tmp_path / "key.pem"}
    files["certificate_file"].write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    files["key_file"].write_bytes(issued.private_key_pem.bytes())
    return ca, files


async def test_numbers_travel_encrypted_with_a_certificate(
    authority: tuple[trustme.CA, dict[str, Path]],
) -> None:
    ca, files = authority
    trusting, plain = ssl.create_default_context(), aiohttp.ClientSession()
    ca.configure_trust(trusting)
    async with serving(tls=files, token=TOKEN) as server, plain as session:
        assert server.url.startswith("https://127.0.0.1:")
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with session.get(f"{server.url}/metrics", ssl=trusting, headers=headers) as answer:
            assert answer.status == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(f"{server.url}/metrics")
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"{server.url.replace('https', 'http')}/metrics")


async def test_a_key_of_another_certificate_ends_the_start_and_says_what_to_change(
    authority: tuple[trustme.CA, dict[str, Path]],
) -> None:
    _, files = authority
    files["key_file"].write_bytes(trustme.CA().issue_cert("localhost").private_key_pem.bytes())
    with pytest.raises(ListenError, match=r"KEY_VALUES_MISMATCH; change http\.tls"):
        async with serving(tls=files):
            pytest.fail("it started")


@pytest.mark.parametrize(
    ("listen", "token", "tls", "warned"),
    [
        ("127.0.0.1:0", None, False, None),
        ("[::1]:0", None, False, None),
        ("localhost:0", None, False, None),
        ("0.0.0.0:0", None, False, "no token is required"),
        ("0.0.0.0:0", None, True, "no token is required"),
        ("10.1.2.3:9877", TOKEN, False, "in the clear"),
        ("10.1.2.3:9877", TOKEN, True, None),
    ],
)
def test_who_listens_beyond_this_machine_is_warned_of_what_is_open(
    authority: tuple[trustme.CA, dict[str, Path]],
    *,
    listen: str,
    token: str | None,
    tls: bool,
    warned: str | None,
) -> None:
    log = io.StringIO()
    telemetry = Telemetry("warning", "json", log)
    section = HttpSection.model_validate(
        {"listen": listen, "token": token, "tls": authority[1] if tls else None}
    )
    build_server(section, FakeHealth(), telemetry)
    assert telemetry.count(HttpExposed) == (0 if warned is None else 1)
    assert (warned or "") in log.getvalue()
    assert TOKEN not in log.getvalue()
