"""promtool finds nothing to object to in a live scrape."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

import aiohttp
import pytest

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.metrics import SECTIONS, family
from streamwatch.core.metrics.series import Family
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import MonitorsSpec
from streamwatch.edge.web.routes.prometheus import PrometheusExporter
from streamwatch.edge.web.server import HttpServer
from tests.edge.web.exposition import realistic, report


class NoHealth:
    role: str | None = None

    def unready(self) -> Sequence[str]:
        return ()

    def families(self) -> Sequence[Family]:
        return ()


def monitored() -> list[Family]:
    """Families of monitors that have seen a drift."""
    monitors = EstimatorSet(MonitorsSpec(max_models=4, max_classes=8))
    wrong_from = 1_000
    monitors.fold(
        [
            Outcome(
                model=f"m{n % 2}",
                true_class="up" if n % 3 else "down",
                predicted_class="up" if n % 3 or n > wrong_from else "down",
                event_ms=n * 1_000,
                delay_ms=n,
            )
            for n in range(2_000)
        ]
    )
    return monitors.families()


def fleet(models: int) -> list[Family]:
    """So many models of 20 classes, for 500 of which the default limit has room with all their series."""
    classes = 20
    monitors = EstimatorSet(MonitorsSpec(max_models=models, max_classes=classes))
    monitors.fold(
        [
            Outcome(f"m{model}", f"c{n % classes}", f"c{n % classes * (n % 3 > 0)}", n * 1_000, n)
            for model in range(models)
            for n in range(3 * classes)
        ]
    )
    return monitors.families()


def five_hundred() -> list[Family]:
    return fleet(500)


def a_thousand() -> list[Family]:
    return fleet(1_000)


def everything() -> list[Family]:
    """Models, and a sample of every other metric there is, in one scrape."""
    others = [m for section in SECTIONS for m in section if m.name != "series_dropped"]  # every scrape has it
    return [*monitored(), *(family(m.name, [(("x",) * len(m.labels), 1.0)]) for m in others)]


def objections(promtool: str, text: bytes) -> tuple[int, bytes]:
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, timeout=300, check=False
    )
    return checked.returncode, checked.stdout + checked.stderr


async def scrape(families: list[Family]) -> bytes:
    server = HttpServer(NoHealth(), (PrometheusExporter(),), port=0)
    await server.start()
    server.publish(report(families))
    async with aiohttp.ClientSession(server.url) as session, session.get("/metrics") as answer:
        text = await answer.read()
    await server.stop()
    return text


@pytest.mark.real("promtool")
@pytest.mark.parametrize("made", [realistic, everything, five_hundred, a_thousand])
async def test_promtool_finds_nothing_to_object_to(
    real_component: Callable[[str], str], made: Callable[[], list[Family]]
) -> None:
    promtool = real_component("promtool")
    text = await scrape(made())
    assert objections(promtool, text) == (0, b"")


@pytest.mark.real("promtool")
def test_promtool_does_object_to_a_family_without_help(real_component: Callable[[str], str]) -> None:
    text = b"# TYPE streamwatch_kappa gauge\nstreamwatch_kappa 1\n"
    status, said = objections(real_component("promtool"), text)
    assert status != 0
    assert b"no help text" in said
