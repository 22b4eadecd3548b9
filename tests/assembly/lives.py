"""A state on disk under settings that change from one start to the next, fed without Kafka."""

from __future__ import annotations

import asyncio
import copy
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamwatch.assembly.state import HostClocks, state_opening
from streamwatch.assembly.topics import build_topics
from streamwatch.core.metrics.series import Report
from streamwatch.core.ports import PartitionState, Poll
from streamwatch.core.records.events import Partition
from streamwatch.daemon import MERGE, POSITIONS, SourcePositions, State
from streamwatch.daemon.source_positions import encoded_progress
from streamwatch.settings import Settings
from streamwatch.telemetry import Telemetry

START_MS = 1_700_000_000_000

DOCUMENT: dict[str, Any] = {
    "kafka": {"bootstrap_servers": ["none:0"]},
    "topics": {"predictions": ["predictions"], "labels": ["labels"]},
}
"""What settings have to say; everything else has its default."""


def with_value(document: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Set one key; `topics.labels.mapping.classes` is that of the only topic of labels."""
    changed = copy.deepcopy(dict(document))
    steps = key.split(".")
    node: Any = changed
    for at, step in enumerate(steps[:-1]):
        if step == "mappings":
            break
        inner = node.setdefault(step, {})
        if not isinstance(inner, dict | list):
            inner = node[step] = {}
        if isinstance(inner, list) and at < len(steps) - 1:
            if isinstance(inner[0], str):
                inner[0] = {"name": inner[0]}
            inner = inner[0]
        node = inner
    node[steps[-1]] = value
    return changed


@dataclass(frozen=True)
class Row:
    """A record."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    value: bytes
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    timestamp_type: int = 1
    fault: str | None = None


@dataclass
class Life:
    """A state that was opened under some settings, and what was reported of it.

    Parameters
    ----------
    document
        Settings, without the directory of the state.
    directory
        Of the state.
    discard
        As with `run --discard`.
    """

    document: Mapping[str, Any]
    directory: Path
    log: io.StringIO = field(default_factory=io.StringIO)
    discard: bool = False

    def __post_init__(self) -> None:
        state = {"directory": str(self.directory), **self.document.get("state", {})}
        self.settings = Settings(**{**self.document, "state": state})
        self.now_ms = 0
        telemetry = Telemetry("debug", "json", stream=self.log)
        self.topics = build_topics(self.settings)
        clocks = HostClocks(lambda: START_MS + 10**9, lambda: self.now_ms / 1_000)
        self.telemetry = telemetry
        self.state: State = state_opening(
            self.settings, self.topics, telemetry, clocks=clocks, discard=self.discard
        )()
        for event in self.state.events:
            telemetry.emit(event)

    def events(self, name: str) -> list[dict[str, Any]]:
        """What was logged under a name."""
        lines = [json.loads(line) for line in self.log.getvalue().splitlines()]
        return [line for line in lines if line["event"] == name]

    def feed(self, rows: Sequence[Row]) -> None:
        """Take in records, and everything that they let go."""
        processor = self.state.processor
        by_partition: dict[Partition, list[Row]] = {}
        for row in (row for row in rows if row.topic in self.topics):
            by_partition.setdefault(Partition(row.topic, row.partition), []).append(row)
        ends = {Partition(topic, 0): processor.positions.get(Partition(topic, 0), 0) for topic in self.topics}
        ends |= {partition: part[-1].offset + 1 for partition, part in by_partition.items()}

        def stands() -> dict[Partition, PartitionState]:
            self.now_ms += 600_000
            return {
                p: PartitionState(end, end, caught_up=True, at_end_ms=self.now_ms) for p, end in ends.items()
            }

        async def receive() -> None:
            for records in (by_partition, {}):
                await processor.receive(Poll(records, stands()))
                while processor.has_ready:
                    await processor.make_room()
                    processor.evaluate()
                    while (work := processor.take_work()) is not None:
                        work()

        asyncio.run(receive())
        assert processor.held_records == 0

    def commit(self) -> None:
        """Make durable what was taken in."""
        processor = self.state.processor
        processor.settle()
        sections = {
            POSITIONS: SourcePositions(dict(processor.positions)).encode(),
            MERGE: encoded_progress(processor.progress),
        }
        self.state.store.commit(self.state.checkpoint.changes(sections))

    def report(self) -> Report:
        """What is shown."""
        slices = self.state.processor.report_in_slices()
        while True:
            try:
                next(slices)
            except StopIteration as end:
                return end.value

    def value(self, name: str, *labels: str) -> float | None:
        """A sample of the report; None if there is none."""
        for family in self.report().families:
            if family.name == name:
                return dict(family.samples).get(labels)
        return None

    def close(self) -> None:
        """End it; what was not committed is lost."""
        self.state.store.close()


def stream(start: int, stop: int, *, model: str = "m", wrong: int = 5, waiting: int = 3) -> list[Row]:
    """Predictions and labels of these numbers; every `wrong`-th is wrong, the last `waiting` have no label.

    Record offsets are the numbers, so streams have to follow one another.
    """
    rows: list[Row] = []
    for n in range(start, stop):
        at_ms = START_MS + 2_000 * n
        truth = "ab"[n % 3 == 0]
        predicted = truth if n % wrong else "ba"[n % 3 == 0]
        made = {"id": f"i{n}", "model": model, "prediction": predicted, "scores": {"a": 0.25, "b": 0.75}}
        rows.append(Row("predictions", 0, n, at_ms, json.dumps({**made, "country": "x"}).encode()))
        if n < stop - waiting:
            label = {"id": f"i{n}", "label": truth}
            rows.append(Row("labels", 0, n, at_ms + 1_000, json.dumps(label).encode()))
    return rows
