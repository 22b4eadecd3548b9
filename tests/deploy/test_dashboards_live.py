"""A real Prometheus scrapes a daemon that watches a drifting stream: every panel has something to show."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from deploy.grafana.generate import FOLDER
from streamwatch.demo.demo import LABELS, PREDICTIONS, DemoSpec, settings_document
from streamwatch.demo.embedded import EmbeddedBroker
from streamwatch.demo.simulate import SimulationSpec, run_simulation
from streamwatch.demo.simulated import DelaySpec, StreamSpec
from tests.deploy.prometheus_with_rules import prometheus_with_rules
from tests.deploy.rules import recorded, rules
from tests.integration.prometheus_server import Prometheus
from tests.integration.running import Running, daemon, value

pytestmark = pytest.mark.slow

DEMO = DemoSpec(head_start=5_000, drift_every=3_000, rate=100.0)
"""The first drift is in what is there when reading begins, the second a while away."""
CHOSEN = {
    "$__rate_interval": "10s",  # at least four scrapes, as Grafana chooses it
    "$job": ".+",
    "$instance": ".+",
    "$model": "drifting-v2",
    "$forgetting": "fading:0.999",
    "$detector": ".+",
}
SECONDS = 300.0
UNDEFINED_HERE = {
    "topic:streamwatch_records_invalid:ratio_rate15m",  # no record was invalid
    "topic:streamwatch_records_out_of_order:ratio_rate15m",  # none came out of order
    "model:streamwatch_order_doubtful:bool",  # the demo puts outcomes in the order of predictions
}

NOT_IN_THE_DEMO = (
    *(
        "accuracy_delay_corrected",
        "accuracy_settled",
        "label_delay_bias",
    ),  # its horizon is longer than it runs
    *("log_loss", "brier_score", "calibration_error", "auc_ratio"),  # its models send no scores
    *("expected_accuracy", "unchanged_accuracy"),
    "prediction_clock_",  # all its detectors see outcomes as labels come
    "segment_",  # nor fields that tell predictions apart
    "results_",  # a daemon that evaluates shows no results of a job
)
"""Series by the beginning of their names; what asks for them is to be accepted, and has no answer."""


def panel_expressions() -> dict[str, str]:
    """Every query of every panel and annotation, as Grafana would send it."""
    found = {}
    for file in sorted(FOLDER.glob("*.json")):
        dashboard = json.loads(file.read_text(encoding="utf-8"))
        for panel in dashboard["panels"]:
            for target in panel.get("targets", ()):
                found[f"{file.stem}: {panel['title']} {target['refId']}"] = chosen(target["expr"])
        for annotation in dashboard["annotations"]["list"]:
            found[f"{file.stem}: {annotation['name']}"] = chosen(annotation["expr"])
    return found


def chosen(expr: str) -> str:
    for name, choice in CHOSEN.items():
        expr = expr.replace(name, choice)
    assert "$" not in expr
    return expr


@asynccontextmanager
async def watched_stream() -> AsyncIterator[Running]:
    """The demo's daemon and its stream, until it has seen the drift."""
    with EmbeddedBroker() as broker:
        for topic in (PREDICTIONS, LABELS):
            broker.create_topic(topic, 2)
        document = settings_document(broker.bootstrap_servers, DEMO)
        document |= {"state": {"kind": "memory"}, "http": {"listen": "127.0.0.1:0"}}
        document["monitors"] = {**document.get("monitors", {}), "early_hints": {}, "label_delays": True}
        stream = StreamSpec(
            seed=DEMO.seed, drift_every=DEMO.drift_every, delay=DelaySpec(median_s=1.0, sigma=0.5)
        )
        simulation = SimulationSpec(
            broker.bootstrap_servers,
            PREDICTIONS,
            LABELS,
            stream=stream,
            rate=DEMO.rate,
            head_start=DEMO.head_start,
        )
        stop = asyncio.Event()
        async with daemon(document) as running:
            writing = asyncio.create_task(run_simulation(simulation, stop=stop))
            try:
                await running.until(
                    lambda s: value(s, "alarms_total", detector="adwin", model="drifting-v2") > 0
                )
                yield running
            finally:
                stop.set()
                await writing


@pytest.mark.real("prometheus")
@pytest.mark.timeout(1_800)
async def test_every_panel_has_data_and_every_rule_is_evaluated(
    real_component: Callable[[str], str], tmp_path: Path
) -> None:
    asked = panel_expressions()
    assert len(asked) > 50
    unfilled = [
        query for query in asked.values() if any(f"streamwatch_{part}" in query for part in NOT_IN_THE_DEMO)
    ]
    filled = {name: query for name, query in asked.items() if query not in unfilled}
    assert len(filled) == len(asked) - 18
    program = real_component("prometheus")
    async with watched_stream() as running:
        target = running.url.removeprefix("http://")
        async with prometheus_with_rules(program, target, tmp_path) as real:
            for query in unfilled:
                await real.get("query", query=query)  # raises if it is refused
            assert await unanswered(real, filled) == []
            assert await unanswered(real, {name: name for name in recorded() - UNDEFINED_HERE}) == []
            for rule in rules():
                await real.get("query", query=rule["expr"])  # raises if it is refused
            assert await evaluated(real) == {}
            pending = 'ALERTS{alertname="DriftAlarm",model="drifting-v2"}'
            assert await unanswered(real, {"the drift is reported": pending}) == []
            assert (await real.get("query", query="streamwatch_nonsense"))["result"] == []
            assert await unanswered(real, {"it is reported": 'ALERTS{alertname="StateNotDurable"}'}) == []
            assert await unanswered(real, {"it is not": 'absent(ALERTS{alertname="Down"})'}) == []


async def evaluated(real: Prometheus) -> dict[str, str | None]:
    """Rules that have not been evaluated, or not well, and why; it waits for the first time of each."""
    deadline = time.monotonic() + SECONDS
    while True:
        found = [rule for group in (await real.get("rules"))["groups"] for rule in group["rules"]]
        assert len(found) == len(rules())
        if all(rule["health"] != "unknown" for rule in found) or time.monotonic() > deadline:
            return {rule["name"]: rule.get("lastError") for rule in found if rule["health"] != "ok"}
        await asyncio.sleep(0.5)


async def unanswered(real: Prometheus, queries: Mapping[str, str]) -> list[str]:
    """Names of the queries that have no answer when time is up."""
    left, deadline = dict(queries), time.monotonic() + SECONDS
    while left and time.monotonic() < deadline:
        answers = {name: (await real.get("query", query=expr))["result"] for name, expr in left.items()}
        left = {name: expr for name, expr in left.items() if not answers[name]}
        await asyncio.sleep(0.5)
    return sorted(left)
