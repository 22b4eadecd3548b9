"""Compiling of the functions that `streamwatch run` calls, before they are needed, or loading from the cache.

    python -m streamwatch.assembly.warming        (the second process: reads names of steps, a line each)

If nothing has been compiled yet, a second process compiles beside the first. Each takes the next step that
neither has begun; functions compiled by one are loaded from the cache by the other. Estimators are compiled
by the first process, as they depend on the settings, except for verdicts by cohorts, which the second
compiles before all else.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from streamwatch.assembly import specs
from streamwatch.assembly.publishing import transactions_spec
from streamwatch.assembly.topics import topics_by_name
from streamwatch.core.buckets.histories import warm_up_buckets
from streamwatch.core.estimators.warming import WarmUpResult, warm_up, warm_up_cohorts
from streamwatch.core.jit.observers import observers
from streamwatch.core.jit.shipped import SHIPPED
from streamwatch.core.join.warming import (
    warm_up_commits,
    warm_up_join,
    warm_up_order,
    warm_up_overflow,
)
from streamwatch.core.merge.merge import warm_up_merge
from streamwatch.core.predictions.registers import warm_up_predictions
from streamwatch.core.publishing.outcome_lines import warm_up_lines
from streamwatch.edge.decoders.formats import KINDS
from streamwatch.edge.decoders.scanner.reader import compile_reader
from streamwatch.edge.sources.kafka.batches.opened import compiled_plain_batches
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
from streamwatch.edge.sources.kafka.record_batches import warm_up_batches
from streamwatch.history.outcome_rows.lines import warm_up_rows
from streamwatch.settings import Settings

STEPS: Final[dict[str, Callable[[], object]]] = {
    "cohorts": warm_up_cohorts,
    "join": warm_up_join,
    "reader": compile_reader,
    "order": warm_up_order,
    "commits": warm_up_commits,
    "lines": warm_up_lines,
    "batches read": compiled_plain_batches,
    "client": compiled_scan,
    "batches written": warm_up_batches,
    "buckets": warm_up_buckets,
    "overflow": warm_up_overflow,
    "merge": warm_up_merge,
    "rows": warm_up_rows,
}
"""Compiling steps that do not depend on settings, by name.

The first step is needed by the first process soonest, and the join by a step that it may take (`overflow`),
which would compile it again. The second process takes steps from the first on, the first process from the
last on once it has compiled the estimators: the longest are early, and short ones where the two meet.
"""


def warm_up_run(settings: Settings, *, everything: bool = False) -> WarmUpResult:
    """Compile or load estimators, join, merge and readers as a daemon with these settings needs them.

    Parameters
    ----------
    settings
        Settings of the daemon.
    everything
        Whether to take all steps, including those for other kinds of state, orders of outcomes, Spark's
        buckets and files of outcomes, to fill the cache for later uses.

    Returns
    -------
    WarmUpResult
        Result of the estimators.
    """
    fresh = nothing_is_compiled()
    waiting = deque(name for name in STEPS if everything or _is_needed(name, settings, fresh=fresh))
    with _second_process(waiting if fresh else deque()) as compiled_there:
        result = warm_up(specs.monitors_spec(settings))
        warm_up_predictions(specs.join_spec(settings).prediction_registers)
        for name in {topic.format.type for topic in topics_by_name(settings.topics).values()} & KINDS.keys():
            if (of_format := KINDS[name].warm_up) is not None:
                of_format()
        _take(waiting)
    _take(waiting)  # what the second process gave back
    if not everything:
        _take(deque(compiled_there))
    return result


def _take(waiting: deque[str]) -> None:
    """Execute steps from the right until none is left."""
    while (name := _next(waiting.pop)) is not None:
        STEPS[name]()


def _next(pop: Callable[[], str]) -> str | None:
    """Take the next step; None if the other process has taken the last."""
    try:
        return pop()
    except IndexError:
        return None


def _is_needed(name: str, settings: Settings, *, fresh: bool) -> bool:
    """Return whether a daemon with these settings calls functions that the step compiles.

    The source of records loads its functions from the cache when it starts; they need a step only if nothing
    is compiled yet (`fresh`).
    """
    if name in ("client", "batches read"):
        return fresh
    if name == "cohorts":  # if compiled, they are loaded with the other estimators
        return fresh and settings.monitors.cohort_verdicts
    if name == "order":
        return specs.join_spec(settings).order == "prediction_time"
    if name in ("commits", "overflow"):
        return specs.store_kind(settings).durable
    if name in ("lines", "batches written"):
        return transactions_spec(settings) is not None
    return name not in ("buckets", "rows")


def nothing_is_compiled() -> bool:
    """Return whether the cache of compiled functions is writable, and it and the installation have none."""
    from streamwatch.core.jit.cache import cache_directory, kernel_hash  # noqa: PLC0415 - it loads numba

    directory = cache_directory()
    if directory is None or not os.access(directory, os.W_OK):
        return False
    return not (SHIPPED / f"kernel-{kernel_hash()}").is_dir() and not any(Path(directory).glob("*.nbc"))


@contextmanager
def _second_process(waiting: deque[str]) -> Generator[list[str]]:
    """Let a second process execute steps from the left while this process executes its own.

    Yields a list of the names of steps that the second process has finished, complete at the end of the
    context; a step that it did not finish is put back into `waiting`. Without steps or a second processor no
    process is started.
    """
    done: list[str] = []
    if not waiting or not sys.executable or _processors() == 1:
        yield done
        return
    command = [sys.executable, "-P", "-m", __spec__.name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own interpreter
        assert process.stdin is not None  # noqa: S101 - they were asked for
        assert process.stdout is not None  # noqa: S101
        functions: list[str] = []
        thread = threading.Thread(
            target=_hand_out, args=(waiting, done, functions, process.stdin, process.stdout), daemon=True
        )
        thread.start()
        try:
            yield done
        except BaseException:
            process.kill()
            raise
        finally:
            thread.join()
    for function in functions:
        for observer in observers:
            observer(function, True)


def _hand_out(
    waiting: deque[str], done: list[str], functions: list[str], steps: IO[str], answers: IO[str]
) -> None:
    """Send the second process one step after another; if it fails, its reason is on stderr."""
    with suppress(BrokenPipeError), steps:
        while (name := _next(waiting.popleft)) is not None:
            answer = ""
            try:
                steps.write(f"{name}\n")
                steps.flush()
                answer = answers.readline()
            finally:
                if not answer:
                    waiting.append(name)
            if not answer:
                return
            functions += json.loads(answer)
            done.append(name)


def _processors() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compile_steps(steps: Iterable[str], answer: Callable[[str], object]) -> None:
    """Execute each named step, and answer with the names of the functions compiled by it, as a JSON list."""
    compiled: list[str] = []

    def observe(function: str, done: bool) -> None:  # noqa: FBT001 - as jit calls it
        if done:
            compiled.append(function)

    observers.append(observe)
    try:
        for step in steps:
            STEPS[step.strip()]()
            answer(json.dumps(compiled))
            compiled.clear()
    finally:
        observers.remove(observe)


def end_with(parent: int, every_seconds: float = 0.5) -> None:
    """End this process once its parent is gone, even during a step of half a minute; run in a thread."""
    while os.getppid() == parent:
        time.sleep(every_seconds)
    os._exit(1)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # at Ctrl-C the first process ends this one
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    compile_steps(sys.stdin, lambda line: print(line, flush=True))  # noqa: T201 - this is the answer
    os._exit(0)  # the first process waits for this one, and freeing what the compiler has made takes a second
