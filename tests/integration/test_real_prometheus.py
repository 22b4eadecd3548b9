"""A real Prometheus scrapes a served report and answers queries with its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from streamwatch.core.metrics.series import Family, Histogram
from streamwatch.core.metrics.series_budget import PARTS, lines_of
from streamwatch.edge.web.routes.prometheus import PrometheusExporter
from streamwatch.edge.web.server import HttpServer
from tests.edge.web.exposition import realistic, report
from tests.integration.prometheus_server import prometheus
from tests.integration.test_promtool import five_hundred

SECONDS = 10
"""Between scrapes of 111,000 series: a third of what users have, on machines with other work."""
ODD = 'naïve "best" \\ model\n\U0001f600'


class Up:
    role: str | None = None

    def unready(self) -> Sequence[str]:
        return ()

    def families(self) -> Sequence[Family]:
        return [Family("kafka_up", "gauge", "1 while the broker answers", (), [((), 1)])]


def below_persistent(made: list[Family]) -> set[tuple[str, str]]:
    named = {family.name: dict(family.samples) for family in made}
    accuracy, baselines = named["accuracy_ratio"], named["baseline_accuracy_ratio"]
    return {key for key, value in accuracy.items() if value < baselines["persistent", *key]}


@pytest.mark.real("prometheus")
async def test_prometheus_reads_every_series_and_answers_with_the_same_numbers(
    real_component: Callable[[str], str], tmp_path: Path
) -> None:
    made = [
        *realistic(),
        Family("tiny_ratio", "gauge", "Odd name, exact number", ("model",), [((ODD,), 0.1 + 0.2)]),
    ]
    server = HttpServer(Up(), (PrometheusExporter(),), port=0)
    await server.start()
    server.publish(report(made))
    async with prometheus(real_component("prometheus"), server.url.removeprefix("http://"), tmp_path) as real:
        assert await real.answer("streamwatch_tiny_ratio") == [({"model": ODD}, "0.30000000000000004")]
        assert await real.answer("streamwatch_kafka_up") == [({}, "1")]
        for family in made:
            if family.kind == "histogram":
                continue
            found = await real.answer(f"streamwatch_{family.name}")
            read = {tuple(labels[name] for name in family.labels): float(value) for labels, value in found}
            assert read == dict(family.samples), family.name
        delays = next(family for family in made if family.kind == "histogram")
        for values, value in delays.samples:
            assert isinstance(value, Histogram)
            ((_, count),) = await real.answer(f'streamwatch_{delays.name}_count{{model="{values[0]}"}}')
            assert float(count) == value.counts[-1]
        worse = await real.answer(
            "streamwatch_accuracy_ratio < on(model, forgetting) "
            'max by (model, forgetting) (streamwatch_baseline_accuracy_ratio{baseline="persistent"})'
        )
        assert {(labels["forgetting"], labels["model"]) for labels, _ in worse} == below_persistent(made)
        (described,) = (await real.get("metadata", metric="streamwatch_kappa"))["streamwatch_kappa"]
        assert described["type"] == "gauge"
        assert described["help"].startswith("Gain over chance agreement")
        assert await real.answer("up == 1")
    await server.stop()


@pytest.mark.real("prometheus")
async def test_prometheus_reads_all_of_five_hundred_models_of_twenty_classes_under_the_default_limit(
    real_component: Callable[[str], str], tmp_path: Path
) -> None:
    made = five_hundred()
    server = HttpServer(Up(), (PrometheusExporter(),), port=0)
    await server.start()
    server.publish(report(made))
    live = len(Up().families())
    target = server.url.removeprefix("http://")
    async with prometheus(real_component("prometheus"), target, tmp_path, scrape_seconds=SECONDS) as real:
        ((_, scraped),) = await real.answer("scrape_samples_scraped")
        assert int(scraped) == sum(map(lines_of, made)) + live + len(PARTS) > 100_000
        assert await real.answer("sum(streamwatch_series_dropped)") == [({}, "0")]
        for name in ("label_delay_seconds_count", "outcomes_total"):
            assert await real.answer(f"count(streamwatch_{name})") == [({}, "500")]
        assert await real.answer("count(streamwatch_recall_ratio)") == [({}, "10000")]
    await server.stop()
