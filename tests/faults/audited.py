"""The daemon of `streamwatch run`, keeping an audit of what it consumed: one child process per life.

    python -m tests.faults.audited CONFIG FOLDER

This process imports everything, and compiles once what a daemon with these settings calls. Then a line on its
stdin begins a life: a child is forked that opens real state, reads real topics and serves. What happens is
told on stdout: `forked` with the child's PID, `opening`, `ended`. After another line nobody may use the PID
any more.
"""

from __future__ import annotations

import asyncio
import gc
import json
import mmap
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from streamwatch.assembly import specs
from streamwatch.assembly.alerts import build_deliveries
from streamwatch.assembly.build import build_daemon
from streamwatch.assembly.state import consume_loop_spec
from streamwatch.assembly.topics import build_topics
from streamwatch.assembly.warming import STEPS, warm_up_run
from streamwatch.core.join.cold.overflow import OverflowSpec
from streamwatch.core.join.cold.store import ColdSpec
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.ports import CommitBatch, Store
from streamwatch.daemon import State
from streamwatch.settings import Settings
from streamwatch.telemetry import Telemetry
from tests.faults.auditing import Audit
from tests.faults.crash_audit import COMMITTING, CONNECTING, OPENING, READING, SIZE, CrashMarker

COLD = "STREAMWATCH_TEST_COLD"
"""With 1 in the environment the join's table is small."""
LOADED_BY_THE_SOURCE = ("client", "batches read")
"""Steps of warming that a daemon leaves to its source of records."""
SMALL_RUNS = ColdSpec(block_entries=16, chunk_blocks=4, first_entries=128, fanout=3, many_entries=1_000)


class MarkingStore:
    """A store whose commits and flushes leave a trace that outlives the process."""

    def __init__(self, store: Store, marker: CrashMarker) -> None:
        self._store = store
        self._marker = marker
        self._committed = store.load().commits

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def commit(self, changes: CommitBatch) -> None:
        self._marker.phase = COMMITTING
        self._marker.begun = self._committed + 1
        self._store.commit(changes)
        self._committed += 1
        self._marker.phase = READING

    def flush(self) -> None:
        number = self._committed
        self._marker.flushing = 1
        self._store.flush()
        self._marker.flushed = max(self._marker.flushed, number)
        self._marker.flushing = 0


def audited(
    opening: Callable[[], State], folder: Path, life: int, marker: CrashMarker
) -> Callable[[], State]:
    """Opens state as `opening` does, and writes down from then on what the core takes."""
    opened = 0

    def open_state() -> State:
        nonlocal opened
        marker.phase = OPENING
        say("opening")
        state = opening()
        pipeline, checkpoint = state.checkpoint.pipeline, state.checkpoint
        path = folder / f"{life:05}-{opened:02}.audit"
        opened += 1
        audit = Audit(path, life, checkpoint.commits, pipeline)
        advance = pipeline.advance

        def advance_audited(events, found):
            marker.phase = READING
            step = advance(events, found)
            audit.batch(checkpoint.commits + 1, step.events)
            return step

        pipeline.advance = advance_audited
        if isinstance(pipeline, Pipeline):
            evaluate = state.processor._step

            def evaluate_audited(ready):
                marker.phase = READING
                records, step = evaluate(ready)
                audit.batch(checkpoint.commits + 1, records.events())
                return records, step

            state.processor._step = evaluate_audited
        marker.phase = CONNECTING
        return replace(state, store=MarkingStore(state.store, marker))

    return open_state


def live(settings: Settings, folder: Path, life: int) -> None:
    """One life, from the opening of state until it is killed or asked to stop."""
    log = (folder / f"{life:05}.log").open("w", buffering=1)
    os.dup2(log.fileno(), 2)
    with (folder / f"{life:05}.marker").open("w+b") as file:
        file.truncate(SIZE)
        marker = CrashMarker(mmap.mmap(file.fileno(), SIZE))
    telemetry = Telemetry("info", "json", log)
    topics = build_topics(settings)
    deliveries = build_deliveries(settings, telemetry)
    spec = consume_loop_spec(settings, topics, telemetry, deliveries)
    reading = replace(spec, open_state=audited(spec.open_state, folder, life, marker))
    daemon = build_daemon(settings, telemetry, topics=topics, reading=reading, deliveries=deliveries)
    asyncio.run(daemon.run())


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def serve(settings: Settings, folder: Path) -> None:
    warm_up_run(settings)
    for name in LOADED_BY_THE_SOURCE:
        STEPS[name]()
    gc.collect()
    gc.freeze()
    say("ready")
    for life, _ in enumerate(sys.stdin):
        threads = list(Path("/proc/self/task").iterdir())
        assert len(threads) == 1, f"a fork would lose all of {len(threads)} threads but one"
        pid = os.fork()
        if not pid:
            try:
                live(settings, folder, life)
                os._exit(0)
            except BaseException:  # noqa: BLE001 - the log shows it, and no child may go on as the parent
                traceback.print_exc()
                os._exit(1)
        say("forked", pid)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        say("ended")
        sys.stdin.readline()
        os.waitpid(pid, 0)


def table_of_few_entries() -> None:
    """Let nearly all entries of a compiled join lie outside its table, in small runs."""
    specs.overflow_spec = lambda _: OverflowSpec(300, 100, SMALL_RUNS)


if __name__ == "__main__":
    if os.environ.get(COLD) == "1":
        table_of_few_entries()
    serve(Settings(**json.loads(Path(sys.argv[1]).read_text())), Path(sys.argv[2]))
