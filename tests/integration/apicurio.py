"""Apicurio Registry in a child process, from the archive that Maven resolves once; schemas are in its memory.

Its Confluent-compatible API is under /apis/ccompat/v7. Ids count from 1 in the order of registration, so that
one that was killed has its schemas again once they are registered in the same order.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_ports

VERSION = "3.0.9"
ARTIFACT = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
CACHE = Path(__file__).parents[2] / ".cache" / "apicurio"
RUNNER = f"apicurio-registry-app-{VERSION}-runner.jar"
RESOLVE_SECONDS = 1_200
START_SECONDS = 300


class Unavailable(Exception):  # noqa: N818
    """The registry cannot be had on this machine, and why."""


def unpacked() -> Path:
    """The folder with the registry; resolved through Maven once, then cached."""
    folder = CACHE / VERSION
    if not (folder / RUNNER).exists():
        maven = shutil.which("mvn")
        if maven is None:
            raise Unavailable("no mvn on the PATH to resolve Apicurio Registry with")
        fresh = CACHE / f"fresh-{os.getpid()}"
        command = [
            maven,
            "-q",
            "-B",
            "dependency:copy",
            f"-Dartifact={ARTIFACT}",
            f"-DoutputDirectory={fresh}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_SECONDS, check=False)
        archives = list(fresh.glob("*.tar.gz"))
        if done.returncode != 0 or not archives:
            shutil.rmtree(fresh, ignore_errors=True)
            raise Unavailable(f"Maven did not resolve Apicurio Registry: {done.stdout.strip()[:300]}")
        with tarfile.open(archives[0]) as archive:
            archive.extractall(fresh, filter="data")
        archives[0].unlink()
        if folder.exists():
            shutil.rmtree(fresh)
        else:
            fresh.rename(folder)
    return folder


def unavailable() -> str:
    """Why no registry can be started here, or an empty string."""
    if shutil.which("java") is None:
        return "no Java runtime on the PATH"
    try:
        unpacked()
    except (Unavailable, subprocess.TimeoutExpired, OSError, tarfile.TarError) as error:
        return str(error)
    return ""


class Apicurio:
    """One registry, which keeps its port when it is killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "apicurio.log"
        self.port = free_ports(1)[0]
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def start(self) -> None:
        """Start it and wait until it serves."""
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-Dquarkus.http.host=127.0.0.1"]
        command = ["java", *options, f"-Dquarkus.http.port={self.port}", "-jar", str(unpacked() / RUNNER)]
        with self._log.open("ab") as out:
            self._child = subprocess.Popen(command, stdout=out, stderr=out)
        deadline = time.monotonic() + START_SECONDS
        while not self._serves():
            assert time.monotonic() < deadline, f"the registry does not serve: {self._complaints()}"
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(0.1)
                pytest.fail(f"the registry ended: {self._complaints()}")

    def kill(self) -> None:
        """End it as a power cut would end the process."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait(START_SECONDS)

    def register(
        self, subject: str, text: str, kind: str = "AVRO", references: Sequence[tuple[str, str, int]] = ()
    ) -> int:
        """Register a version of a subject; the schema's id."""
        named = [{"name": n, "subject": s, "version": v} for n, s, v in references]
        body = json.dumps({"schema": text, "schemaType": kind, "references": named}).encode()
        request = urllib.request.Request(  # noqa: S310 - http on loopback
            f"{self.url}/subjects/{subject}/versions",
            body,
            {"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - http on loopback
            found: dict[str, Any] = json.load(answer)
        return int(found["id"])

    def _serves(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health/ready", timeout=5) as answer:
                return answer.status == 200
        except (OSError, urllib.error.URLError):
            return False

    def _complaints(self) -> str:
        return self._log.read_text()[-2_000:]
