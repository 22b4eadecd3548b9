"""A schema registry in this process, as Confluent's API reference describes one."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

from aiohttp import web

from tests.ports import free_ports


@dataclass
class FakeRegistry:
    """Answers on loopback; `status` instead of every answer while it is set."""

    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    guids: dict[str, int] = field(default_factory=dict)
    subjects: dict[tuple[str, int], int] = field(default_factory=dict)
    authorization: str | None = None
    status: int | None = None
    broken: set[int] = field(default_factory=set)
    """Numbers of schemas for which it answers 500."""
    body: bytes | None = None
    encoding: str = "identity"
    hold: asyncio.Event | None = None
    """Waited for before every answer."""
    most_at_once: int = 0
    at_once: int = 0
    asked: list[str] = field(default_factory=list)
    port: int = field(default_factory=lambda: free_ports(1)[0])
    _runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add(
        self, number: int, text: str, kind: str = "AVRO", references: tuple[tuple[str, str, int], ...] = ()
    ) -> int:
        answer: dict[str, Any] = {"schema": text}
        if kind != "AVRO":
            answer["schemaType"] = kind
        if references:
            answer["references"] = [
                {"name": name, "subject": subject, "version": version}
                for name, subject, version in references
            ]
        self.schemas[number] = answer
        return number

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _answer(self, request: web.Request) -> web.Response:
        path = request.rel_url.raw_path.removeprefix("/")
        self.asked.append(path)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.01)
        if self.hold is not None:
            await self.hold.wait()
        self.at_once -= 1
        if self.authorization is not None and request.headers.get("Authorization") != self.authorization:
            return web.json_response({"error_code": 40101, "message": "Unauthorized"}, status=401)
        if self.status is not None or self.body is not None:
            headers = {"Location": "/elsewhere", "Content-Encoding": self.encoding}
            return web.Response(status=self.status or 200, body=self.body, headers=headers)
        return self._known(path)

    def _known(self, path: str) -> web.Response:
        match [unquote(part) for part in path.split("/")]:
            case ["schemas", "ids", number] if int(number) in self.broken:
                return web.json_response({"error_code": 50001, "message": "Internal"}, status=500)
            case ["schemas", "ids", number]:
                return self._schema(int(number), 40403)
            case ["schemas", "guids", guid]:
                return self._schema(self.guids.get(guid), 40403)
            case ["subjects", subject, "versions", version]:
                versions = [number for name, number in self.subjects if name == subject]
                number = max(versions, default=0) if version == "latest" else int(version)
                return self._schema(self.subjects.get((subject, number)), 40402 if versions else 40401)
            case _:
                return web.Response(status=404, text="<html>no such page</html>")

    def _schema(self, number: int | None, code: int) -> web.Response:
        if number is None or number not in self.schemas:
            return web.json_response({"error_code": code, "message": "not found"}, status=404)
        return web.Response(body=json.dumps(self.schemas[number]).encode())
