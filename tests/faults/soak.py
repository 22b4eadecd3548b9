"""Half an hour and ten million events: memory, file descriptors and disk must not grow.

    python -m tests.faults.soak [--minutes 32] [--rate 1500] [--join-megabytes 200]
                                [--new-models] [--owners OWNERS.csv] [--picture docs/pictures/soak.png]

The daemon of `streamwatch run`, with its state on disk, reads what `streamwatch simulate` writes to Apache
Kafka (to librdkafka's mock cluster where that cannot be had). It first reads a backlog that fills the join's
table in memory twice over, and as many models as it has rows for but `SPARE`, so that what is preallocated is
touched, and its use later is no growth. It is looked at every five seconds, and with `--new-models` a model
that was never there comes as often; models that send nothing more retire after two horizons. After
warm-up, a third of the time, which is several horizons, the slope of its resident memory is fitted; its
limits come from the means of twenty stretches, since samples next to each other are alike. Exit code 1 where
the upper limit of the slope is above `GOAL_MB_PER_HOUR`, or file descriptors grew. With few
`--join-megabytes` most of what waits lies on disk. With `--owners`, the owners of memory are written down
once a minute (`tests.faults.memory_owners`), and the slope of each is told.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from urllib.request import urlopen

import msgspec
import numpy as np
from confluent_kafka import Producer
from rich.console import Console
from rich.progress import track
from scipy import stats

from tests.bench.end_to_end.broker import broker
from tests.integration.running import child, parsed

LOOK_SECONDS = 5.0
STRETCHES = 20
GOAL_MB_PER_HOUR = 5.0
TOPICS = ["soak-predictions", "soak-labels"]
MODELS = 200
SPARE = 50
"""Rows for models that come while those of the backlog have not retired."""
OUTCOMES = 100
"""Predictions, and labels, of each new model."""
FILL_SECONDS = 45.0
"""Record time of the backlog, within the horizon, so that all of it waits at once."""
ENTRIES_PER_MB = 12_500
PER_INSTANCE = 3
"""Predictions of an instance, one of each model of `streamwatch simulate`."""
SETTINGS = {
    "monitors.max_models": str(MODELS),
    "topics.predictions": TOPICS[0],
    "topics.labels": TOPICS[1],
    "join.horizon": "90s",
    "join.early_horizon": "30s",
    "kafka.start_from": "earliest",
}


@dataclass(frozen=True)
class Look:
    """What one look saw."""

    seconds: float
    resident_mb: float
    descriptors: int
    state_mb: float
    events: float
    pending: float
    outcomes: float


def look(pid: int, url: str, began: float) -> Look:
    """One look at a process and its /metrics."""
    with urlopen(f"{url}/metrics", timeout=10.0) as answer:  # noqa: S310 - the daemon's own address
        samples = parsed(answer.read().decode())

    def total(name: str) -> float:
        return sum(value for (found, _), value in samples.items() if found == name)

    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Look(
        time.monotonic() - began,
        pages * 4_096 / 1e6,
        sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
        total("state_bytes") / 1e6,
        total("predictions_accepted_total") + total("labels_accepted_total"),
        total("pending_predictions"),
        total("outcomes_total"),
    )


def slope(looks: Sequence[Look]) -> tuple[float, float, float]:
    """MB per hour and its 95 % limits, from the means of stretches."""
    stretches = [
        stretch
        for stretch in np.array_split(np.array([astuple(each) for each in looks]), STRETCHES)
        if len(stretch)
    ]
    means = np.array([stretch.mean(axis=0) for stretch in stretches])
    fitted = stats.linregress(means[:, 0] / 3_600.0, means[:, 1])
    margin = fitted.stderr * stats.t.ppf(0.975, len(means) - 2)
    return fitted.slope, fitted.slope - margin, fitted.slope + margin


class Newcomers:
    """Writes models that were never there: all that have room at first, then one at each `come`."""

    def __init__(self, servers: str) -> None:
        self._producer = Producer({"bootstrap.servers": servers})
        self._models = 0
        self.come(MODELS - SPARE)

    def come(self, models: int = 1) -> None:
        """Write predictions and labels of so many new models."""
        for _ in range(models):
            self._models += 1
            for number in range(OUTCOMES):
                made = f"new-{self._models}-{number}"
                event = {"id": made, "timestamp": time.time_ns() // 1_000_000}
                predicted = event | {"model": f"release-{self._models}", "prediction": "ab"[number % 2]}
                for topic, value in zip(TOPICS, (predicted, event | {"label": "a"}), strict=True):
                    self._producer.produce(topic, msgspec.json.encode(value), key=made)
            self._producer.flush()


def fill(command: Sequence[str], join_megabytes: int, folder: Path) -> None:
    """Write a backlog of twice what the join's table has room for, less than a horizon of record time."""
    instances = 2 * join_megabytes * ENTRIES_PER_MB // PER_INSTANCE
    asked = ["-n", str(instances), "--rate", str(instances / FILL_SECONDS), "--flat-out"]
    with (folder / "fill.log").open("wb") as log:
        subprocess.run([*command, *asked], stdout=log, stderr=log, check=True)


def watch(
    minutes: float, rate: float, join_megabytes: int, folder: Path, *, new_models: bool, owners: Path | None
) -> list[Look]:
    """Run everything for so long."""
    with ExitStack() as stack:
        servers, kind = stack.enter_context(broker(embedded=False, topics=TOPICS, partitions=4))
        console = Console()
        console.print(f"broker: {kind}")
        overrides = {"kafka.bootstrap_servers": servers, **SETTINGS}
        overrides["state.join_memory_megabytes"] = str(join_megabytes)
        changed = [f"{key}={value}" for key, value in overrides.items()]
        module = ["tests.faults.memory_owners", str(owners.resolve())] if owners else ["streamwatch"]
        daemon = stack.enter_context(
            child(folder, *changed, module=module, environment={"PYTHONPATH": str(Path.cwd())})
        )
        url = daemon.url()
        command = [sys.executable, "-m", "streamwatch", "simulate", "-b", servers, "--predictions", TOPICS[0]]
        command += ["--labels", TOPICS[1], "--delay", "10", "--drift-every", "20000"]
        fill(command, join_megabytes, folder)
        newcomers = Newcomers(servers)
        command += ["--rate", str(rate)]
        with (folder / "simulate.log").open("wb") as log:
            writer = subprocess.Popen(command, stdout=log, stderr=log)
        stack.callback(writer.kill)
        began, looks = time.monotonic(), list[Look]()
        for number in track(range(int(minutes * 60 / LOOK_SECONDS)), "soaking", console=console):
            time.sleep(max(0.0, began + (number + 1) * LOOK_SECONDS - time.monotonic()))
            assert writer.poll() is None, (folder / "simulate.log").read_text()[-2_000:]
            assert daemon.process.poll() is None, daemon.log[-2_000:]
            if new_models:
                newcomers.come()
            looks.append(look(daemon.process.pid, url, began))
        return looks


def tell_owners(owners: Path, console: Console) -> None:
    """Say by how much each owner's memory grew in an hour, after warm-up."""
    with owners.open() as lines:
        rows = list(csv.DictReader(lines))
    steady = rows[len(rows) // 3 :]
    if len(steady) < 3:
        return
    hours = [float(row["seconds"]) / 3_600.0 for row in steady]
    for name in rows[0]:
        values = [float(row[name]) for row in steady]
        if name != "seconds":
            fitted = stats.linregress(hours, values)
            margin = fitted.stderr * stats.t.ppf(0.975, len(steady) - 2)
            console.print(f"{name}: {values[-1]:,.1f}, {fitted.slope:+,.2f} ± {margin:,.2f} an hour")


def draw(looks: Sequence[Look], picture: Path, title: str) -> None:
    """The plot: resident memory, size of state, what waits."""
    import matplotlib as mpl  # noqa: PLC0415 - only where a plot is asked for

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    minutes = [each.seconds / 60 for each in looks]
    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(9.2, 6.0), dpi=120)
    for axis, values, label in (
        (axes[0], [each.resident_mb for each in looks], "resident MB"),
        (axes[1], [each.state_mb for each in looks], "state on disk MB"),
        (axes[2], [each.pending for each in looks], "predictions waiting"),
    ):
        axis.plot(minutes, values, color="#1f6feb", linewidth=1.2)
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
    axes[0].set_title(title, fontsize=10, loc="left")
    axes[2].set_xlabel("minutes")
    figure.tight_layout()
    figure.savefig(picture)


def main() -> int:
    """Soak, tell, and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=32.0)
    parser.add_argument(
        "--rate", type=float, default=1_500.0, help="instances a second: three predictions and a label each"
    )
    parser.add_argument(
        "--join-megabytes", type=int, default=200, help="state.join_memory_megabytes of the daemon"
    )
    parser.add_argument("--new-models", action="store_true", help="a new model every five seconds")
    parser.add_argument("--owners", type=Path, default=None, help="owners of memory as CSV")
    parser.add_argument("--picture", type=Path, default=None)
    parser.add_argument("--table", type=Path, default=None, help="every look as CSV")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        looks = watch(
            arguments.minutes,
            arguments.rate,
            arguments.join_megabytes,
            Path(folder),
            new_models=arguments.new_models,
            owners=arguments.owners,
        )
    if arguments.table:
        with arguments.table.open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow([field.name for field in fields(Look)])
            writer.writerows(astuple(each) for each in looks)
    steady = looks[len(looks) // 3 :]
    middle, low, high = slope(steady)
    descriptors = {each.descriptors for each in steady}
    title = (
        f"{looks[-1].events / 1e6:.1f} M events in {looks[-1].seconds / 60:.0f} min: "
        f"{middle:+.1f} MB/h ({low:+.1f} to {high:+.1f}), {min(descriptors)} to {max(descriptors)} files"
    )
    Console().print(title)
    if arguments.owners:
        tell_owners(arguments.owners, Console())
    if arguments.picture:
        draw(looks, arguments.picture, title)
    grew = np.polyfit([each.seconds for each in steady], [each.descriptors for each in steady], 1)[0] * 3_600
    return int(high > GOAL_MB_PER_HOUR or grew > 1.0)


if __name__ == "__main__":
    sys.exit(main())
