"""Real components that some tests need, and what happens where a machine cannot have them.

Such tests are left out and listed by name at the end of the run, or fail under `STREAMWATCH_REQUIRE_REAL=1`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.faults.disk import volume
from tests.integration import apicurio, kafka_broker

REQUIRED = os.environ.get("STREAMWATCH_REQUIRE_REAL") == "1"
left_out: dict[str, str] = {}
"""Test → why it did not run."""
on_the_embedded_broker: dict[str, str] = {}
"""Test → why it did not run on the real one."""

HELM = Path(__file__).parents[1] / ".cache" / "helm" / "helm"
"""Where `make helm` puts it."""


def helm() -> str | None:
    """Helm on the PATH, or the one that was built here."""
    return shutil.which("helm") or (str(HELM) if HELM.exists() else None)


PROBES: dict[str, Callable[[], str]] = {
    "kafka": kafka_broker.unavailable,
    "a Kafka of its own": kafka_broker.unavailable_jars,
    "kafka connect": kafka_broker.unavailable_connect,
    "helm": lambda: "" if helm() else "neither on the PATH nor built by make helm",
    "schema registry": apicurio.unavailable,
    "loop mount": volume.unavailable,
}
"""Why a component cannot be had, or an empty string. Others are programs on the PATH."""
GIVEN = frozenset({"loop mount", "helm", "toxiproxy-server"})
"""What no package brings, as the machine allows it or not: never a failure, always listed by name."""


@cache
def missing(component: str) -> str:
    """Why a real component cannot be had here, or an empty string."""
    if component in PROBES:
        return PROBES[component]()
    return "" if shutil.which(component) else f"no {component} on the PATH"


def need(test: str, component: str, reason: str = "") -> None:
    """Leave a test out, or fail it where real components are required, if the component is missing."""
    reason = reason or missing(component)
    if not reason:
        return
    if REQUIRED and component not in GIVEN:
        pytest.fail(f"needs {component}: {reason}", pytrace=False)
    left_out[test] = f"{component}: {reason}"
    pytest.skip(f"left out, needs {component}: {reason}")


def need_or_embedded(test: str, component: str) -> bool:
    """Whether the real component is there; if not, the test runs on the embedded one and is listed."""
    reason = missing(component)
    if reason and REQUIRED:
        pytest.fail(f"needs {component}: {reason}", pytrace=False)
    if reason:
        on_the_embedded_broker[test] = f"{component}: {reason}"
    return not reason


def program(request: pytest.FixtureRequest, name: str) -> str:
    """Path of a program; the test is left out where it is missing."""
    need(request.node.nodeid, name)
    path = shutil.which(name)
    assert path is not None
    return path
