"""`streamwatch demo`: an embedded broker, simulated models and the daemon in one process.

The daemon is that of `streamwatch run` and reads by the Kafka protocol. Memory stays bounded for hours: the
broker keeps 5 MB a partition, and the join's horizon is minutes.
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
    """Daemon that the demo runs (`daemon.Daemon`)."""

    @property
    def url(self) -> str:
        """URL of its HTTP server."""
        ...

    async def run(self) -> None:
        """Run until `stop` or a signal."""
        ...

    def stop(self, cause: str = ...) -> None:
        """Request the end of `run`."""
        ...


BuildDaemon = Callable[[Mapping[str, Any], Telemetry, Sequence[Sink]], DemoDaemon]
"""(content of a configuration file, telemetry, further sinks of reports) → daemon."""


@dataclass(frozen=True, slots=True)
class DemoSpec:
    """Parameters of the demo; by default the first drift is 15 seconds after the page can be opened.

    At a first start, estimators are compiled while the stream is written. `seconds` is the duration; None:
    until Ctrl-C. `head_start` instances are written at once. `compare` compares the models with `CHAMPION`,
    for which a first start compiles seven seconds longer.
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
    """Result of a demo."""

    url: str
    alarms: int
    first_alarm_seconds: float | None
    """Seconds from the start of the demo to its first alarm; None without one."""


def settings_document(bootstrap_servers: str, spec: DemoSpec) -> dict[str, Any]:
    """Return the settings of the demo's daemon, as the content of a configuration file."""
    return {
        "kafka": {"bootstrap_servers": bootstrap_servers},
        "topics": {
            "predictions": [{"name": PREDICTIONS, "mapping": {"segments": ["channel"]}}],
            "labels": [LABELS],
        },
        # A horizon of minutes, so that dedup entries stay few however long the demo runs. Outcomes are
        # evaluated in the order of predictions, as the previous label is a worse baseline in the order of
        # labels.
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
                showing.cancel()  # it still waits for the page
            await asyncio.wait({running, showing}, timeout=_STOP_SECONDS)
            narrator.stop()
        for task in (running, showing):
            if task.done() and not task.cancelled():
                task.result()  # raises what the task raised
    return DemoSummary(daemon.url, narrator.alarms, narrator.first_alarm_seconds)


def things_to_try(url: str, *, compare: bool) -> tuple[str, ...]:
    """Return lines that suggest what to open while the demo runs."""
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
    """Write the stream once the page can be opened, even if the estimators are not compiled yet."""
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
