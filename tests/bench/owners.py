"""Where the daemon's CPU and memory go: by function on its event loop, and by kind of memory at the end.

    python -m tests.bench.owners [--scenario many] [--share 1] [--disk]

Reads the messages of a scenario of `tests.bench.peers` once, in this process. CPU is that of the event
loop's thread, per message and including what a function calls, so lines overlap. Memory is what is resident
when every message has been shown: by kind of mapping, and how much of the heap is free.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import functools
import json
import os
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamwatch.core.estimators.index import ColumnIndex
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.past import Pasts
from streamwatch.core.estimators.registers.cohorts.register import Cohorts
from streamwatch.core.estimators.registers.late_labels.register import LateLabels
from streamwatch.core.estimators.registers.probabilities.register import Probabilities
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join.durable.held_log import HeldLog
from streamwatch.core.join.held_scores import HeldScores
from streamwatch.core.join.join import CompiledJoin
from streamwatch.core.join.prediction_order import PredictionOrder
from streamwatch.core.merge.merge import Merge
from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.pipeline.journal import Journal
from streamwatch.daemon.batch_processor import BatchProcessor
from streamwatch.daemon.merged_records import MergedRecords
from streamwatch.demo.simulate import create_topics
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.stores.rocksdb.store import RocksStore
from streamwatch.edge.web.routes.history import HistoryExporter
from tests.bench.end_to_end import daemon as running
from tests.bench.end_to_end.broker import broker
from tests.bench.peers.filling import fill
from tests.bench.peers.payloads import PAYLOAD
from tests.bench.peers.scenarios import SCENARIOS

OWNERS: tuple[tuple[type, str], ...] = (
    (JsonDecoder, "decode_batch"),
    (Merge, "add"),
    (MergedRecords, "next_turn"),
    (BatchProcessor, "evaluate"),
    (CompiledJoin, "take"),
    (PredictionOrder, "put"),
    (HeldLog, "note_released"),
    (HeldScores, "add_rows"),
    (HeldScores, "take"),
    (EstimatorSet, "fold_models"),
    (ColumnIndex, "indexed"),
    (ModelTable, "fold"),
    (EstimatorSet, "_observe_batch"),
    (Cohorts, "observe"),
    (LateLabels, "observe"),
    (Pasts, "observe"),
    (Probabilities, "observe"),
    (Checkpoint, "changes"),
    (Journal, "close"),
    (CompiledJoin, "changes"),
    (HeldLog, "write"),
    (EstimatorSet, "_encoded"),
    (RocksStore, "commit"),
    (BatchProcessor, "report_in_slices"),
    (EstimatorSet, "families_in_slices"),
    (HistoryExporter, "observe"),
)
"""Functions that are timed."""


class Spent:
    """CPU and calls of one function since the last `reset`."""

    def __init__(self, owner: type, name: str) -> None:
        self.name = f"{owner.__name__}.{name}"
        self.reset()
        function: Callable[..., Any] = owner.__dict__[name]
        setattr(owner, name, self._sliced(function) if name.endswith("in_slices") else self._timed(function))

    def reset(self) -> None:
        """Begin anew."""
        self.seconds, self.calls = 0.0, 0

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*given: Any, **named: Any) -> Any:
            began = time.thread_time()
            try:
                return function(*given, **named)
            finally:
                self.calls, self.seconds = self.calls + 1, self.seconds + time.thread_time() - began

        return timed

    def _sliced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def sliced(*given: Any) -> Generator[None, None, Any]:
            slices, self.calls = function(*given), self.calls + 1
            while True:
                began = time.thread_time()
                try:
                    next(slices)
                except StopIteration as end:
                    return end.value
                finally:
                    self.seconds += time.thread_time() - began
                yield

        return sliced


class Heap(ctypes.Structure):
    """`struct mallinfo2` of <malloc.h>; all in bytes but the numbers of blocks."""

    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks")),
        *((name, ctypes.c_size_t) for name in ("fsmblks", "uordblks", "fordblks", "keepcost")),
    ]


def resident_by_kind() -> dict[str, float]:
    """Resident megabytes by kind of mapping, the largest first; of the heap also what is free in it."""
    found: dict[str, float] = {}
    kind = ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first = line.split(maxsplit=1)[0]
        if not first.endswith(":"):
            path = line.split(maxsplit=5)[5] if len(line.split(maxsplit=5)) > 5 else "anonymous"
            kind = path if path.startswith("[") or path == "anonymous" else f"file {Path(path).name}"
        elif first in {"Rss:", "AnonHugePages:"}:
            name = kind if first == "Rss:" else "(of these in huge pages)"
            found[name] = found.get(name, 0.0) + int(line.split()[1]) / 1_000
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = Heap
    heap = library.mallinfo2()
    found["(free in the C library's heaps)"] = heap.fordblks / 1e6
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", default="many", choices=[each.name for each in SCENARIOS])
    parser.add_argument("--share", type=float, default=1.0, help="of the messages of the scenario")
    parser.add_argument("--disk", action="store_true", help="state on disk instead of in memory")
    arguments = parser.parse_args()
    [scenario] = [each for each in SCENARIOS if each.name == arguments.scenario]
    scenario = replace(scenario, messages=round(arguments.share * scenario.messages))
    os.environ |= {running.SETTINGS: json.dumps(scenario.settings), PAYLOAD: scenario.payload}
    spent = [Spent(owner, name) for owner, name in OWNERS]
    memory: dict[str, float] = {}
    emit = running.Stopwatch.emit

    def begun(watch: running.Stopwatch, event: Any) -> None:
        emit(watch, event)
        if watch.started.is_set():
            running.Stopwatch.emit = emit  # type: ignore[method-assign]
            for each in spent:
                each.reset()

    resident = running.resident_bytes

    def ended() -> int:
        memory.update(resident_by_kind())
        return resident()

    running.Stopwatch.emit = begun  # type: ignore[method-assign]
    running.resident_bytes = ended
    with broker(embedded=False, topics=[], partitions=1) as (servers, _):
        made = f"{scenario.name}-{time.time_ns():x}"
        topics = (f"{made}-predictions", f"{made}-labels")
        asyncio.run(create_topics(servers, topics, partitions=scenario.partitions))
        messages, events = fill(servers, topics, scenario)
        task = running.durable if arguments.disk else running.daemon
        found = asyncio.run(task(servers, list(topics), events))
    print(f"{1e6 * found['cpu'] / messages:.2f} µs a message in all, {found['rss'] / 1e6:.0f} MB resident")
    for each in sorted(spent, key=lambda each: -each.seconds):
        if each.calls:
            own = f"{1e6 * each.seconds / messages:7.3f} µs {each.seconds / found['cpu']:6.1%}"
            print(f"{own} {each.calls:6} calls of {1e3 * each.seconds / each.calls:8.2f} ms  {each.name}")
    for kind, megabytes in list(memory.items())[:12]:
        print(f"{megabytes:7.1f} MB {kind}")


if __name__ == "__main__":
    main()
