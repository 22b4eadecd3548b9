"""HTTPS under load: handshakes that never end, clients that never read, and health beside them."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import aiohttp
import trustme

from tests.attack.siege import Siege, rounds, siege

CLIENTS = 20
ROUNDS = 5
HALF = 400
LAZY = 20
EXTRA_BYTES = 250_000_000


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    authority, pem = trustme.CA(), folder / "server.pem"
    authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(pem)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    return pem, trusting


async def begun(besieged: Siege, text: bytes, context: ssl.SSLContext | None) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection("127.0.0.1", besieged.port, limit=1_024, ssl=context)
    writer.write(text)
    return writer


async def test_https_serves_everybody_who_asks_while_others_hold_handshakes_and_answers(
    tmp_path: Path,
) -> None:
    pem, trusting = certificate(tmp_path)
    ask = b"GET /api/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with siege("--models", "2000", "--certificate", str(pem)) as besieged:
        before = besieged.resident_bytes
        held = [await begun(besieged, b"\x16\x03\x01\x02", None) for _ in range(HALF)]
        held += [await begun(besieged, ask, trusting) for _ in range(LAZY)]
        timeout = aiohttp.ClientTimeout(total=120)
        connector = aiohttp.TCPConnector(ssl=trusting, limit=CLIENTS, force_close=True)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:

            async def scraped() -> list[int]:
                statuses: list[int] = []
                for _ in range(ROUNDS):
                    async with session.get(f"{besieged.url}/metrics") as answer:
                        await answer.read()
                        statuses.append(answer.status)
                return statuses

            scrapes = await asyncio.gather(*(scraped() for _ in range(CLIENTS)))
        await rounds(besieged, 5)
        for writer in held:
            writer.transport.abort()
        health = besieged.health()
        assert health.unanswered == 0
        assert health.median < 0.1
        answered = [status for of_one in scrapes for status in of_one]
        assert set(answered) <= {200, 503}
        assert answered.count(200) >= len(answered) // 2
        assert besieged.peak_bytes - before < EXTRA_BYTES
        assert not [line for line in besieged.lines if "Traceback" in line]
