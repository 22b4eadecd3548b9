"""A server of its own process, as the daemon builds it, over a report of many models: something to attack.

Prints its URL. Has as many file descriptors as a service usually has. With `--control` it is a bare server
that answers everything with 200: what the machine allows at this moment.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
from pathlib import Path

from tests.edge.web.http_faces import Model, report_of, serving

DESCRIPTORS = 1_024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--certificate", type=Path)
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    asyncio.run(_control() if asked.control else _serve(asked.models, asked.certificate))


async def _serve(models: int, certificate: Path | None) -> None:
    from streamwatch.telemetry import Telemetry  # noqa: PLC0415 - not needed by the control

    tls = None if certificate is None else {"certificate_file": certificate, "key_file": certificate}
    async with serving(telemetry=Telemetry(form="json", stream=sys.stderr), tls=tls) as server:
        report = report_of({f"model-{i}": Model() for i in range(models)})
        server.publish(report)
        print(server.url, flush=True)  # noqa: T201
        await asyncio.Event().wait()


async def _control() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}", flush=True)  # noqa: T201
    await server.serve_forever()


if __name__ == "__main__":
    main()
