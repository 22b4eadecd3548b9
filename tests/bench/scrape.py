"""Render time of a scrape beside prometheus-client's renderer over the same families, in one run.

    python -m tests.bench.scrape [samples]

Every round renders a new report (nothing of its numbers is cached), as a daemon that commits more often than
it is scraped does; "again" renders the same report for a second scraper.
"""

from __future__ import annotations

import gc
import random
import statistics
import sys
import time
from collections.abc import Callable

from streamwatch.core.metrics.series import Family, Report
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.prometheus import PrometheusExporter
from tests.edge.web.exposition import FORMATS, OPENMETRICS, rendered_by_client, report

ROUNDS = 15
FAMILIES = 10


def families(samples: int, rng: random.Random) -> list[Family]:
    """Ten gauges over models and four forgettings."""
    forgettings = ("landmark", "fading:0.999", "sliding:1000", "adwin:0.05")
    series = [(forgettings[n % 4], f"fraud-model-v{n // 4}") for n in range(samples // FAMILIES)]
    labels = ("forgetting", "model")
    return [
        Family(
            f"measure_{n}_ratio", "gauge", "A measure", labels, [(values, rng.random()) for values in series]
        )
        for n in range(FAMILIES)
    ]


def milliseconds(render: Callable[[Report], object], reports: list[Report]) -> float:
    """Median over the reports."""
    taken: list[float] = []
    for published in reports:
        gc.collect()
        started = time.perf_counter()
        render(published)
        taken.append(1_000 * (time.perf_counter() - started))
    return statistics.median(taken)


def main(samples: int) -> None:
    """Print a line per format."""
    rng = random.Random(1)
    reports = [report(families(samples, rng)) for _ in range(ROUNDS)]
    print(f"{samples} samples, median of {ROUNDS} rounds")
    for media_type in FORMATS:
        ours = PrometheusExporter()

        def render(
            published: Report, exporter: PrometheusExporter = ours, format_: str = media_type
        ) -> bytes:
            return exporter.render(Asked(published, media_type=format_))

        def by_client(published: Report, format_: str = media_type) -> str:
            return rendered_by_client(published.families, format_)

        first = milliseconds(render, reports[:1])
        new = milliseconds(render, reports[1:])
        again = milliseconds(render, [reports[-1]] * ROUNDS)
        theirs = milliseconds(by_client, reports)
        name = "OpenMetrics" if media_type == OPENMETRICS else "text"
        print(
            f"{name:12} first {first:6.1f} ms   new report {new:6.1f} ms   again {again:6.2f} ms   "
            f"prometheus-client {theirs:6.1f} ms   ratio {theirs / new:4.1f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
