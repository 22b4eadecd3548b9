"""Cost of bringing partitions into one sequence, per message: `add` and `release`, with polls of 500.

python -m tests.bench.merge
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np

from streamwatch.core.merge import Arrivals, Merge, MergeProgress, MergeSpec
from streamwatch.core.records.batch import LABEL, PREDICTION, ROW, RecordBatch
from streamwatch.core.records.events import Partition, Side
from streamwatch.core.records.vocabulary import Vocabulary

PARTITIONS = (1, 4, 32)
POLL = 500
MESSAGES = 400_000
GOAL_MICROSECONDS = 0.3
START_MS = 1_700_000_000_000


def polls(partitions: int, messages: int) -> list[dict[Partition, Arrivals]]:
    """Polls of so many records in all, spread over the partitions, whose times interleave."""
    names = [Partition(("predictions", "labels")[n % 2], n // 2) for n in range(partitions)]
    each = max(1, POLL // partitions)
    found: list[dict[Partition, Arrivals]] = []
    vocabulary = Vocabulary()
    for start in range(0, messages // partitions, each):
        poll: dict[Partition, Arrivals] = {}
        offsets = np.arange(start, start + each)
        for order, name in enumerate(names):
            stamps = START_MS + offsets * partitions + order
            rows = np.zeros(each, ROW)
            rows["id_low"] = rows["offset"] = offsets
            rows["record_ms"], rows["object"] = stamps, -1
            rows["side"] = PREDICTION if name.topic == "predictions" else LABEL
            records = RecordBatch(rows, None, (), vocabulary)
            poll[name] = Arrivals(offsets, stamps, np.ones(each, np.bool_), records)
        found.append(poll)
    return found


def seconds(given: Sequence[dict[Partition, Arrivals]]) -> tuple[float, int]:
    """CPU time of taking in and releasing all polls, and how many messages came out."""
    sides: dict[str, Side] = {"predictions": "prediction", "labels": "label"}
    merge = Merge(MergeSpec(), sides, MergeProgress())
    merge.set_partitions(list(given[0]))
    released = 0
    began = time.process_time()
    for number, poll in enumerate(given):
        merge.add(poll, number)
        released += len(merge.release(number, START_MS * 2))
    took = time.process_time() - began
    return took, released + len(merge.drain(START_MS * 2))


def main() -> None:
    """Print the cost for each number of partitions; exit code 1 where the goal is missed."""
    missed = False
    for partitions in PARTITIONS:
        given = polls(partitions, MESSAGES)
        best, released = min(seconds(given) for _ in range(3))
        cost = best / released * 1e6
        missed = missed or cost > GOAL_MICROSECONDS
        sys.stdout.write(f"{partitions:3d} partitions: {cost:.3f} us a message ({released:,} messages)\n")
    raise SystemExit(int(missed))


if __name__ == "__main__":
    main()
