"""Attacks on the HTTP server: each takes a siege and a size, and leaves when it is over."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tests.attack.siege import Siege, rounds

Attack = Callable[[Siege, int], Awaitable[None]]
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]

HALF = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Half: "
WHOLE = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: identity\r\n\r\n"
POST = b"POST /metrics HTTP/1.1\r\nHost: localhost\r\n"
ANSWER_SECONDS = 60.0

SMUGGLED: tuple[bytes, ...] = (
    (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    ),
    (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n"
        b"abcdGET / HTTP/1.1\r\n\r\n"
    ),
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: +4\r\n\r\nabcd",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\rContent-Length: 4\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n X: folded\r\n\r\n",
    b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://169.254.169.254/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n",
    b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
)
"""Requests that two parsers may read differently; none may be answered with numbers."""


async def half_sent(besieged: Siege, count: int) -> None:
    """Begin many requests, finish none, begin them again when cut off."""
    ends = [await _opened(besieged, HALF) for _ in range(count)]
    await rounds(besieged, 20)
    _leave(ends)


async def dripping(besieged: Siege, count: int) -> None:
    """Send a header one byte at a time."""
    ends = [await _opened(besieged, HALF) for _ in range(count)]
    for _ in range(20):
        for end in ends:
            if end is not None and not end[1].is_closing():
                end[1].write(b"x")
        await rounds(besieged, 1)
    _leave(ends)


async def not_reading(besieged: Siege, count: int) -> None:
    """Ask for all numbers and read none of them."""
    ends = [await _opened(besieged, WHOLE) for _ in range(count)]
    await rounds(besieged, 100)
    _leave(ends)


async def huge(besieged: Siege, count: int) -> None:
    """Send headers without end, bodies without end, long lines, thousands of requests at once."""
    for number in range(count):
        for begun, more in (
            (b"GET / HTTP/1.1\r\n", b"X-%d: %s\r\n" % (number, b"y" * 4_000)),
            (b"GET /", b"a" * 65_536),
            (POST + b"Content-Length: 99999999999\r\n\r\n", b"b" * 65_536),
            (POST + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n%s\r\n" % (b"c" * 65_536)),
            (b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1_000),
        ):  # fmt: skip
            await _poured(besieged, begun, more)


async def smuggled(besieged: Siege, count: int) -> None:
    """Send what a proxy and this server might cut differently."""
    for _ in range(count):
        for text in SMUGGLED:
            answer = await exchanged(besieged, text)
            assert b"streamwatch_" not in answer, (text, answer[:200])


async def mutated(besieged: Siege, count: int) -> None:
    """Send good requests with bytes changed, doubled, cut out."""
    rng = random.Random(4)
    seeds = [
        WHOLE,
        *SMUGGLED,
        b"GET /api/v1/models/m?name=%ff HTTP/1.1\r\nHost: [::1]:9\r\nAccept: */*\r\n\r\n",
    ]
    for _ in range(count):
        text = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 8)):
            place = rng.randrange(len(text))
            match rng.randrange(3):
                case 0:
                    text[place] = rng.randrange(256)
                case 1:
                    text[place:place] = text[place : place + rng.randint(1, 40)]
                case _:
                    del text[place : place + rng.randint(1, 4)]
                    text = text or bytearray(b"\n")
        end = await _opened(besieged, bytes(text))
        if end is not None and rng.random() < 0.2:
            with suppress(OSError, TimeoutError):
                await asyncio.wait_for(end[0].read(100), 0.05)
        _leave([end])


async def exchanged(besieged: Siege, text: bytes) -> bytes:
    """Everything that is answered to a text until the other side closes, or says nothing for a moment."""
    end = await _opened(besieged, text)
    if end is None:
        return b""
    answer = b""
    with suppress(OSError, TimeoutError):
        while piece := await asyncio.wait_for(end[0].read(65_536), 0.3):
            answer += piece
    _leave([end])
    return answer


async def _poured(besieged: Siege, begun: bytes, more: bytes) -> None:
    """Send more until cut off, or until far more was taken than a request may be."""
    end = await _opened(besieged, begun)
    if end is None:
        return
    reader, writer = end
    reading = asyncio.create_task(_drained(reader))
    with suppress(OSError):
        for _ in range(200):
            writer.write(more)
            await writer.drain()
            if writer.is_closing() or reading.done():
                break
    reading.cancel()
    _leave([end])


async def _drained(reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        while await reader.read(65_536):
            pass


async def _opened(besieged: Siege, text: bytes) -> Ends | None:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", besieged.port, limit=1_024)
            writer.write(text)
            await writer.drain()
    except OSError:
        return None
    return reader, writer


def _leave(ends: list[Ends | None]) -> None:
    for end in ends:
        if end is not None:
            end[1].transport.abort()


ATTACKS: dict[str, tuple[Attack, int]] = {
    "half_sent": (half_sent, 1_100),
    "dripping": (dripping, 400),
    "not_reading": (not_reading, 40),
    "huge": (huge, 10),
    "smuggled": (smuggled, 3),
    "mutated": (mutated, 2_000),
}
"""Name → attack and its usual size."""
