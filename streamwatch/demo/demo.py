"""`streamwatch demo`: a broker, models that drift and the daemon that watches them, in one command.

The daemon is the one of `streamwatch run`, reading over the Kafka protocol; only its broker lives in the
same process. Memory stays bounded for hours: the broker keeps 5 MB per partition, and the join's horizon
is minutes.
"""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rich.console import Console

from streamwatch.core.ports import Sink
from streamwatch.demo.embedded import EmbeddedBroker
from streamwatch.demo.narrator import NarratedTelemetry, Narrator
from streamwatch.demo.simulate import SimulationSpec, run_simulation
from streamwatch.demo.simulated import DelaySpec, StreamSpec
from streamwatch.telemetry import Telemetry

PREDICTIONS = "predictions"
LABELS = "labels"
CHAMPION = "drifting-v2"
SPARED = "branch"
_PARTITIONS = 2
_STOP_SECONDS = 10.0


class DemoDaemon(Protocol):
    """The daemon, as the demo needs it."""

    @property
    def url(self) -> str:
        """URL of its HTTP server."""
        ...

    async def run(self) -> None:
        """Until `stop`, or a signal."""
        ...

    def stop(self, cause: str = ...) -> None:
        """Leave `run` soon."""
        ...


BuildDaemon = Callable[[Mapping[str, Any], Telemetry, Sequence[Sink]], DemoDaemon]
"""Makes a daemon from what `streamwatch.yaml` would hold; every report goes to the sinks, too."""


@dataclass(frozen=True, slots=True)
class DemoSpec:
    """Course of the demo: by default the first drift comes 15 seconds after the page is there.

    On a first start estimators are compiled meanwhile, and the daemon then reads what has been written.
    `seconds` ends it by itself, None runs until Ctrl-C. `head_start` instances are written at once. `compare`
    compares the models with `CHAMPION`: a first start compiles for seven seconds more.
    """

    host: str = "127.0.0.1"
    port: int = 9877
    seconds: float | None = None
    open_browser: bool = False
    rate: float = 100.0
    head_start: int = 1_000
    drift_every: int = 2_500
    seed: int = 1
    compare: bool = False


@dataclass(frozen=True, slots=True)
class DemoSummary:
    """Summary of what was shown."""

    url: str
    alarms: int
    first_alarm_seconds: float | None


def settings_document(bootstrap_servers: str, spec: DemoSpec) -> dict[str, Any]:
    """Contents that the demo's configuration file would have."""
    return {
        "kafka": {"bootstrap_servers": bootstrap_servers},
        "topics": {
            "predictions": [{"name": PREDICTIONS, "mapping": {"segments": ["channel"]}}],
            "labels": [LABELS],
        },
        # Minutes, so that what is remembered of settled ids stays small however long the demo runs.
        # In the order in which labels happen to come, guessing what came last would look worse than it is
        # in the stream: evaluate in the order of the predictions.
        "join": {
            "horizon": "5m",
            "early_horizon": "1m",
            "order": "prediction_time",
            "reorder_window": "4s",
        },
        "monitors": {
            "comparisons": [{"champion": CHAMPION, "challengers": ["stable-*", "adaptive-*"]}]
            if spec.compare
            else [],
            "label_delays": True,
        },
        "state": {"kind": "memory"},  # the broker forgets with the process
        "http": {"listen": f"{spec.host}:{spec.port}"},
    }


async def run_demo(spec: DemoSpec, build: BuildDaemon, console: Console) -> DemoSummary:
    """Run until Ctrl-C, or for `spec.seconds`.

    Raises
    ------
    EmbeddedBrokerMissingError
        The extra `demo` is not installed.
    """
    narrator = Narrator(console)
    with EmbeddedBroker() as broker:
        for topic in (PREDICTIONS, LABELS):
            broker.create_topic(topic, _PARTITIONS)
        narrator.say(f"a Kafka broker in this process listens at {broker.bootstrap_servers}")
        document = settings_document(broker.bootstrap_servers, spec)
        daemon = build(document, NarratedTelemetry(narrator), [narrator])
        stop = asyncio.Event()
        narrator.start()
        running = asyncio.create_task(daemon.run())
        showing = asyncio.create_task(_show(spec, broker.bootstrap_servers, daemon, narrator, stop))
        try:
            await asyncio.wait({running, showing}, timeout=spec.seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            daemon.stop("the demo is over")
            if not narrator.serving.is_set():
                showing.cancel()  # it never began
            await asyncio.wait({running, showing}, timeout=_STOP_SECONDS)
            narrator.stop()
        for task in (running, showing):
            if task.done() and not task.cancelled():
                task.result()  # raises what the task raised
    return DemoSummary(daemon.url, narrator.alarms, narrator.first_alarm_seconds)


def things_to_try(url: str, *, compare: bool) -> tuple[str, ...]:
    """Lines that say where to look while the demo runs."""
    compared = f"which challenger may replace {CHAMPION}, on the same ids"
    return (
        "three things to try:",
        f"  1. {url}/#/model/drifting-v2: since when it is worse; Segments and Labels have a story each",
        f"  2. {url}/#/comparisons: {compared}"
        if compare
        else f"  2. streamwatch demo --compare: {compared}",
        f"  3. streamwatch doctor --url {url}: what a colleague would say of this daemon",
    )


async def _show(
    spec: DemoSpec, bootstrap_servers: str, daemon: DemoDaemon, narrator: Narrator, stop: asyncio.Event
) -> None:
    """Once there is a page to look at, write the stream, be the estimators compiled by then or not."""
    await narrator.serving.wait()
    stream = StreamSpec(
        seed=spec.seed,
        drift_every=spec.drift_every,
        gradual_width=spec.drift_every // 4,
        delay=DelaySpec(median_s=1.0, sigma=0.5),
        channels=(("web", 0.55), ("app", 0.35), (SPARED, 0.1)),
        spared=SPARED,
        slowness=(1.0, 1.0, 2.0),
    )
    simulation = SimulationSpec(
        bootstrap_servers, PREDICTIONS, LABELS, stream=stream, rate=spec.rate, head_start=spec.head_start
    )
    until_drift = (spec.drift_every - spec.head_start) / spec.rate
    narrator.say(
        f"three models now predict {spec.rate:,.0f} instances a second, labels come about a second later; "
        f"in {until_drift:.0f} s the world changes under drifting-v2"
    )
    for line in things_to_try(daemon.url, compare=spec.compare):
        narrator.say(line)
    if spec.open_browser:
        await asyncio.to_thread(webbrowser.open, daemon.url)
    await run_simulation(simulation, stop=stop)
