"""CPU of what many models cost beside their outcomes: evaluation, commits, reports, scrapes, and a start.

    python -m tests.bench.many_models [--models 500] [--classes 20] [--outcomes 1000] [--rounds 3]
        [--series standard]

Outcomes of all models, in turn, go through evaluation into a state on disk, without Kafka and the join, and
are committed every 20,000 as the daemon commits by default. CPU is that of this thread, per outcome, as
commits come after so many outcomes; what disturbs a run only adds to it, so the lowest of the rounds counts.
A report is built after each fifth commit, and rendered for a scraper; the first rendering is told apart. At
last the state is opened again. Where both kinds of scrapes are measured, the first of a report pays for what
both of them need: `--series` measures one.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import os
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

import numpy as np

from streamwatch.assembly.specs import monitors_spec
from streamwatch.assembly.state import state_opening
from streamwatch.assembly.topics import build_topics
from streamwatch.assembly.warming import warm_up_run
from streamwatch.core.metrics.series import Report
from streamwatch.core.metrics.table import StandardSeries
from streamwatch.core.pipeline.pipeline import PartialResult
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch
from streamwatch.daemon import POSITIONS, SourcePositions, State
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.prometheus import PLAIN_0_0_4, PrometheusExporter
from streamwatch.settings import Settings
from streamwatch.telemetry import Telemetry

COMMIT = 20_000
STEP = 4_000
REPORTS = 5
"""Commits after which a report is built."""
START_MS = 1_760_011_200_000


def settings_of(directory: str) -> Settings:
    """Default settings, of a state in a directory."""
    return Settings(
        kafka={"bootstrap_servers": "nowhere:9092"},  # type: ignore[arg-type]
        topics={"predictions": "p", "labels": "l"},  # type: ignore[arg-type]
        state={"kind": "rocksdb", "directory": directory},  # type: ignore[arg-type]
    )


def opened(directory: str) -> State:
    """State in a directory, as the daemon opens it."""
    settings = settings_of(directory)
    return state_opening(settings, build_topics(settings), Telemetry(level="error"))()


def outcomes_of(models: int, classes: int, number: int, start: int) -> np.ndarray:
    """Outcomes of all models in turn, from number `start` on; two thirds of them right."""
    chance = np.random.default_rng(start)
    records = np.zeros(number, OUTCOME)
    records["model"] = (start + np.arange(number)) % models
    records["true_class"] = np.minimum(chance.geometric(0.2, number) - 1, classes - 1)
    moved = (records["true_class"] + chance.integers(1, classes, number)) % classes
    records["predicted_class"] = np.where(chance.random(number) < 0.66, records["true_class"], moved)
    records["label_at_prediction"] = np.roll(records["true_class"], 1)
    records["event_ms"] = records["resolved_ms"] = START_MS + (start + np.arange(number)) // 5
    records["delay_ms"] = records["waited_ms"] = 30_000
    records["made"] = (start + np.arange(number)) // models
    records["scores"] = -1
    return records


def report_of(state: State) -> Report:
    """Build a report to its end."""
    slices = state.processor.report_in_slices()
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return end.value


class Spent:
    """CPU of this thread, in seconds, by what it was spent for."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = time.thread_time()

    def on(self, what: str) -> None:
        """Count the time since the last call."""
        now = time.thread_time()
        self.seconds[what] = self.seconds.get(what, 0.0) + now - self._began
        self._began = time.thread_time()


def resident_megabytes() -> float:
    """Memory of the process in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def round_of(
    models: int, classes: int, outcomes: int, directory: str, shown: Collection[str]
) -> dict[str, float]:
    """Microseconds an outcome of evaluation and commits, milliseconds of one report, scrape and start."""
    state = opened(directory)
    names = [f"model-{number:04}" for number in range(models)]
    labels = [f"class-{number:04}" for number in range(classes)]
    forgettings = [each.name for each in monitors_spec(settings_of(directory)).forgetting]
    exporters = {
        "standard": PrometheusExporter(standard=StandardSeries(forgettings)),
        "all": PrometheusExporter(),
    }
    exporters = {name: exporters[name] for name in shown}
    total, reports = models * outcomes, 0
    sizes: dict[str, float] = {}
    at_first = resident_megabytes()
    spent = Spent()
    for start in range(0, total, STEP):
        records = outcomes_of(models, classes, min(STEP, total - start), start)
        batch = OutcomeBatch(records, names, labels)
        spent.on("making")
        alarms = state.checkpoint.pipeline.evaluate(batch)
        spent.on("evaluation")
        state.checkpoint.take(PartialResult(0, batch, alarms, ()))
        if (start + STEP) % COMMIT == 0:
            changes = state.checkpoint.changes({POSITIONS: SourcePositions().encode()})
            spent.on("commits")
            state.store.commit(changes)
            spent.on("writing")
            state.store.flush()
            if state.checkpoint.commits % REPORTS == 0:
                spent.on("flushing")
                report = report_of(state)
                spent.on("reports")
                for name, exporter in exporters.items():
                    text = exporter.render(Asked(report, media_type=PLAIN_0_0_4))
                    spent.on(f"scrapes of {name}" if reports else f"first scrape of {name}")
                    sizes[f"series of {name}"] = sum(not line.startswith(b"#") for line in text.splitlines())
                    sizes[f"bytes of {name}"] = len(text)
                    sizes[f"bytes of {name}, gzip"] = len(gzip.compress(text, 1))
                    spent.on("counting")
                reports += 1
        spent.on("flushing")
    state.store.commit(state.checkpoint.changes({POSITIONS: SourcePositions().encode()}))
    state.store.flush()
    grown = resident_megabytes() - at_first
    state.store.close()
    del state
    gc.collect()
    began = time.thread_time()
    opened(directory).store.close()
    found = {f"{name} µs": 1e6 * spent.seconds[name] / total for name in ("evaluation", "commits", "writing")}
    if reports > 1:
        found["report ms"] = 1e3 * spent.seconds["reports"] / reports
        for name in exporters:
            found[f"first scrape of {name} ms"] = 1e3 * spent.seconds[f"first scrape of {name}"]
            found[f"scrape of {name} ms"] = 1e3 * spent.seconds[f"scrapes of {name}"] / (reports - 1)
    return {**found, **sizes, "start ms": 1e3 * (time.thread_time() - began), "grown MB": grown}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--outcomes", type=int, default=1_000, help="of each model")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--series", nargs="+", choices=("standard", "all"), default=("standard", "all"))
    arguments = parser.parse_args()
    rounds: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        warm_up_run(settings_of(f"{folder}/none"))
        for number in range(arguments.rounds):
            directory = f"{folder}/{number}"
            made = round_of(
                arguments.models, arguments.classes, arguments.outcomes, directory, arguments.series
            )
            rounds.append(made)
            print(json.dumps({name: round(value, 3) for name, value in made.items()}), flush=True)
    lowest = {name: min(each[name] for each in rounds) for name in rounds[0]}
    print(", ".join(f"{name} {value:.3g}" for name, value in lowest.items()))


if __name__ == "__main__":
    main()
