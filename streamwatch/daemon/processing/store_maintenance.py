"""Merges runs of the join's entries outside its table, in a thread, while reading goes on."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from streamwatch.core.join.compiled.cold.merging import Merge
from streamwatch.core.join.compiled.cold.store import RunStore
from streamwatch.core.join.compiled.outside.work import Work
from streamwatch.core.pipelines.column_pipeline import ColumnPipeline
from streamwatch.edge.stores.errors import damage_named


class StoreMaintenance:
    """One merge after the other, as they fall due; now and then the disk of what was merged is freed.

    Parameters
    ----------
    pipeline
        Whose entries they are.
    runs
        What keeps them.
    directory
        Of the state, for errors.
    """

    def __init__(self, pipeline: ColumnPipeline, runs: RunStore, directory: Path) -> None:
        self._pipeline = pipeline
        self._runs = runs
        self._directory = directory
        self._thread = ThreadPoolExecutor(1, "maintenance")
        self._merge: Merge | None = None
        self._running: Future[None] | None = None

    def schedule_next(self) -> None:
        """Use the work that has ended, and start what is due next; between two batches.

        Raises
        ------
        StateDamaged
            If a run is not what was written.
        StateFailed
            If the disk failed.
        """
        running = self._running
        if running is not None:
            if not running.done():
                return
            merge, self._merge, self._running = self._merge, None, None
            with damage_named(self._directory):
                running.result()
            if merge is not None:
                self._pipeline.finish_merge(merge)
        self._merge = merge = self._pipeline.plan_merge()
        if merge is not None:
            self._running = self._thread.submit(merge.run)
        elif ranges := self._runs.reclaimable(self._pipeline.entries_outside):
            self._running = self._thread.submit(self._runs.reclaim, ranges)

    async def run_in_thread(self, work: Work) -> None:
        """Run work in a thread that evaluation waits for; being cancelled waits for its end, too.

        Raises
        ------
        StateDamaged
            If what it read is not what was written.
        StateFailed
            If the disk failed.
        """
        doing = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            with damage_named(self._directory):
                await asyncio.shield(doing)
        except asyncio.CancelledError:
            await asyncio.wait({doing})
            raise

    async def stop(self, seconds: float | None) -> bool:
        """Cancel what is running, and wait at most so long for its end; whether it has ended."""
        if self._merge is not None:
            self._merge.cancelled = True
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._running is None or self._running.done():
            return True
        waiting = asyncio.wrap_future(self._running)
        done, _ = await asyncio.wait({waiting}, timeout=seconds)
        if done and not waiting.cancelled():
            waiting.exception()  # whoever stops it does so for another reason
        return bool(done)
