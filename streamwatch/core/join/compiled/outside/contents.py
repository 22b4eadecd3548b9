"""Everything outside the table of a compiled join: entries in runs, their scores, and counts."""

from __future__ import annotations

from streamwatch.core.join.compiled.cold.entries import ColdEntries
from streamwatch.core.join.compiled.cold.spec import ColdSpec
from streamwatch.core.join.compiled.cold.store import ColdChanges, RunStore
from streamwatch.core.join.compiled.layout import NEVER_MS
from streamwatch.core.join.compiled.outside.scores import OutsideScores
from streamwatch.core.join.compiled.outside.table import WAITING_QUEUES, Table


class OutsideContents:
    """Entries in runs, the scores of the predictions among them, and the number of dedup entries.

    Parameters
    ----------
    store
        Store of the runs.
    spec
        Sizes of the runs.
    clean
        Whether to remove what was never committed.

    Raises
    ------
    ColdDamaged
        If the store's contents are not what was written.
    """

    __slots__ = ("cold", "scores", "settled")

    def __init__(self, store: RunStore, spec: ColdSpec, *, clean: bool) -> None:
        self.cold = ColdEntries(store, spec, clean=clean)
        self.scores = OutsideScores(store)
        self.settled: dict[int, int] = {}
        """Number of dedup entries by generation."""

    def changes(self) -> ColdChanges:
        """Changes of runs and scores for a commit."""
        changes = self.cold.changes()
        self.scores.add_changes(changes)
        return changes

    def drop_generations(self, floor: int) -> None:
        """Drop the dedup entries of generations before `floor`."""
        self.cold.floor = floor
        for generation in [generation for generation in self.settled if generation < floor]:
            del self.settled[generation]

    def update_oldest_ms(self, table: Table) -> None:
        """Tell the table the times of the oldest entries outside, by queue."""
        cold_ms = table.arrays.totals["cold_ms"][0]
        for queue in WAITING_QUEUES:
            oldest_ms = self.cold.oldest_ms(queue)
            cold_ms[queue] = NEVER_MS if oldest_ms is None else oldest_ms
