"""A compiled join with a table of a few entries: most of what it knows lies outside."""

from __future__ import annotations

from collections import Counter

from streamwatch.core.join.activity import used_entries
from streamwatch.core.join.cold.block import entries_of
from streamwatch.core.join.cold.finding import read_living
from streamwatch.core.join.cold.overflow import Overflow, OverflowSpec
from streamwatch.core.join.counters import PENDING
from streamwatch.core.pipeline.pipeline import Pipeline
from tests.core.join.cold.cold_model import SMALL, CutRuns, rows_of
from tests.core.join.durable_streams import DurableJoined


class ColdJoined(DurableJoined):
    """Entries leave the table and come back all the time; merges end, or are given up, when chance says."""

    def __init__(self, spec, digests, start_ms, chance):
        self.chance, self.runs, self.merge = chance, CutRuns(), None
        self.limits = OverflowSpec(chance.choice([0, 1, 3, 8, 20]), chance.choice([2, 3, 10]), SMALL)
        self.seen = Counter()
        super().__init__(spec, digests, start_ms)
        self.restart()
        self.pipeline.join.start_ms = start_ms

    @property
    def overflow(self):
        return self.pipeline.join._overflow

    def restart(self):
        """Begin anew from the last commit; of what was written since, chance says how much is there."""
        start_ms = self.pipeline.join.start_ms
        self.runs.cut(self.chance.randint(0, 30))
        self.merge = None
        overflow = Overflow(self.runs, self.limits)
        self.pipeline = self.shelf.restored(Pipeline(self.spec, self.monitors, self.digests, overflow))
        self.pipeline.join.start_ms = start_ms

    def commit(self):
        super().commit()
        self.runs.commit(self.pipeline.join.run_changes())

    def keep_up(self):
        """Begin a merge, end one, or forget one."""
        if self.merge is None:
            self.merge = self.pipeline.join.plan_merge()
            self.seen["merges"] += self.merge is not None
        elif self.chance.random() < 0.5:
            self.merge.run()
            self.pipeline.join.finish_merge(self.merge)
            self.merge = None

    def look(self):
        """Count what lies where."""
        totals = self.pipeline.join.arrays.totals[0]
        for queue in range(3):
            self.seen[f"outside {queue}"] += int(totals["cold"][queue])
            self.seen[f"front {queue}"] += int(totals["front"][queue])
            assert totals["cold"][queue] == self.overflow.contents.cold.alive(queue)
        self.seen["outside 3"] += sum(self.overflow.contents.settled.values())
        assert totals["used"] == len(used_entries(self.pipeline.join.arrays))


def alive_outside(pipeline, runs):
    """What is alive outside the table, as `join_stream.alive` gives what is in it."""
    join, rows = pipeline.join, []
    cold, models, classes = join._overflow.contents.cold, join.models.names, join.classes.names
    cold.floor = int(join.arrays.totals["floor"][0])
    for run in cold._runs.values():
        for part in read_living(runs, run, run.dead, cold.floor, 4):
            entries = entries_of(part.words)
            for row in rows_of(entries):
                low, high, _, _, _, model, predicted, true, _, state, _ = row
                rows.append(
                    (
                        high.to_bytes(8, "big") + low.to_bytes(8, "big"),
                        models[model] if model >= 0 else "",
                        state,
                        "" if predicted < 0 else classes[predicted],
                        "" if true < 0 or state == PENDING else classes[true],
                    )
                )
    return rows
