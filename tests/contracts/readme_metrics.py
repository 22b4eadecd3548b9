"""The README's table of metrics, made from the families themselves.

python -m tests.contracts.readme_metrics            print it
python -m tests.contracts.readme_metrics --write    put it between the markers in README.md
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from streamwatch.core.alarm_book import AlarmBook
from streamwatch.core.alarm_rules import AlarmsSpec
from streamwatch.core.checkpoint import Checkpoint, Resumed
from streamwatch.core.events import Fingerprint, Partition, Side
from streamwatch.core.monitors import Monitors
from streamwatch.core.pipeline import Pipeline
from streamwatch.core.ports import Poll
from streamwatch.core.series import PREFIX, Family
from streamwatch.core.specs import JoinSpec, MonitorsSpec, TimeSpec
from streamwatch.daemon import CommitSpec, Intake, Places, State
from streamwatch.daemon.commits import Commits
from streamwatch.daemon.delivery import Deliveries, DeliverySpec
from streamwatch.daemon.vitals import Vitals
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
from streamwatch.telemetry import Telemetry

README = Path(__file__).parents[2] / "README.md"
DECAY = "decay is per outcome, not per second"
BEGIN, END = "<!-- metrics:begin -->", "<!-- metrics:end -->"


@dataclass
class QuietFeed:
    """A source that has nothing to say."""

    up: bool = True
    assigned: bool = True
    losses: Mapping[str, int] = field(default_factory=dict[str, int])
    records_lost: Mapping[str, int] = field(default_factory=dict[str, int])
    fingerprint_unverifiable: int = 0

    async def start(
        self, positions: Mapping[Partition, int], fingerprints: Mapping[Partition, Fingerprint]
    ) -> None:
        del positions, fingerprints

    async def rewind(
        self, positions: Mapping[Partition, int], fingerprints: Mapping[Partition, Fingerprint]
    ) -> None:
        del positions, fingerprints

    def fingerprints(self) -> Mapping[Partition, Fingerprint]:
        return {}

    def durable(self, positions: Mapping[Partition, int]) -> None:
        del positions

    def count_from(
        self, losses: Mapping[str, int], records_lost: Mapping[str, int], unverifiable: int
    ) -> None:
        del losses, records_lost, unverifiable

    async def poll(self) -> Poll:
        return Poll()

    def pause(self, partitions: frozenset[Partition]) -> None:
        del partitions

    async def stop(self) -> None:
        pass


def families_of_models() -> Sequence[Family]:
    """What the estimators say of each model."""
    return Monitors(MonitorsSpec(max_models=1, max_classes=2)).families()


def families_of_the_join() -> Sequence[Family]:
    """What the join says."""
    spec = MonitorsSpec(max_models=1, max_classes=2)
    sides: Mapping[Partition, Side] = {Partition("events", 0): "both"}
    return Pipeline(JoinSpec(), TimeSpec(), Monitors(spec), sides).join_families()


def families_of_the_daemon() -> Sequence[Family]:
    """What the daemon says of itself."""
    return Vitals(QuietFeed(), Telemetry(stream=io.StringIO())).families()


def families_of_alarms() -> Sequence[Family]:
    """What becomes of alarms."""
    telemetry = Telemetry(stream=io.StringIO())
    deliveries = Deliveries((), DeliverySpec(), telemetry.emit)
    return [*AlarmBook(AlarmsSpec(), "").families(), *deliveries.families()]


def families_of_the_state() -> Sequence[Family]:
    """What is said of commits and of the state on disk."""
    monitors = Monitors(MonitorsSpec(max_models=1, max_classes=2))
    pipeline = Pipeline(JoinSpec(), TimeSpec(), monitors, {})
    checkpoint = Checkpoint(pipeline, monitors, MonitorsSpec(max_models=1, max_classes=2), 1)
    with TemporaryDirectory() as folder:
        store = RocksStore.open(RocksSpec(Path(folder) / "state", 1_000, 1_000))
        intake = Intake(checkpoint, store, {}, Telemetry(stream=io.StringIO()), lambda: 0)
        state = State(store, checkpoint, intake, Places(), Resumed())
        families = Commits(state, Places, CommitSpec(), lambda _: None).families()
        store.close()
    return families


def every_family() -> list[Family]:
    """All that a scrape can hold, without samples of models."""
    return [family for _, families in sections() for family in families]


def sections() -> Sequence[tuple[str, Sequence[Family]]]:
    """All families, by what they are about."""
    return (
        ("Per model", families_of_models()),
        ("Alarms and their delivery", families_of_alarms()),
        ("Join of predictions and labels", families_of_the_join()),
        ("State and its commits", families_of_the_state()),
        ("The daemon itself", families_of_the_daemon()),
    )


def table() -> str:
    """The tables, one per section."""
    lines = [f"All names start with `{PREFIX}`. Under a `forgetting`, decay is per outcome, not per second."]
    for title, families in sections():
        lines += ["", f"**{title}**", "", "| metric | type | labels | meaning |", "|---|---|---|---|"]
        lines += _rows(families)
    return "\n".join(lines) + "\n"


def _rows(families: Iterable[Family]) -> list[str]:
    return [
        f"| `{family.name}` | {family.kind} | {', '.join(f'`{label}`' for label in family.labels)} "
        f"| {_cell(family.help)} |"
        for family in families
    ]


def _cell(text: str) -> str:
    for stated_above in (f"; {DECAY})", f" ({DECAY})"):
        text = text.replace(stated_above, ")" if stated_above.startswith(";") else "")
    text = text.removesuffix(".")
    for special in ("\\", "|", "*", "_", "<"):
        text = text.replace(special, "\\" + special)
    return text


def with_table(readme: str, new: str) -> str:
    """The README with the table between its markers replaced."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"README.md needs the lines {BEGIN} and {END} where the table of metrics goes")
    return f"{before}{BEGIN}\n{new}{END}{after}"


def main(arguments: Sequence[str]) -> None:
    """Print the table, or write it."""
    if "--write" in arguments:
        README.write_text(with_table(README.read_text(encoding="utf-8"), table()), encoding="utf-8")
    else:
        sys.stdout.write(table())


if __name__ == "__main__":
    main(sys.argv[1:])
