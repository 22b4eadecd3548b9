"""The job with the real buckets, as a process that a test can hold: `python -m tests.spark.held_job`.

    python -m tests.spark.held_job FOLDER MASTER TRIGGER [SETTING …]

While there is a file FOLDER/hold, the sink stands still at the moment that the file names, and says so in
FOLDER/held: `sent`, all results of a batch are with the brokers and its transaction is open; `written`, the
transaction is over and Spark does not know yet. Bases are begun after kilobytes, not megabytes, so that kills
meet them, too.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aiokafka import AIOKafkaProducer

from streamwatch.assembly.job_settings import buckets_spec
from streamwatch.assembly.spark import SettingsBuckets, job_spec
from streamwatch.settings import load
from streamwatch.spark import job, sink
from streamwatch.spark.processors import ResultRow

REBASE_BYTES = 20_000
PAUSE_SECONDS = 0.01


class Hold:
    """Stands still where the file says.

    Parameters
    ----------
    folder
        Where the files are.
    """

    def __init__(self, folder: Path) -> None:
        self._asked = folder / "hold"
        self._held = folder / "held"
        self.batch = -1
        """That is being written."""

    def asked(self, moment: str) -> bool:
        """Tell whether to stand still at this moment; once it is not, the mark of it goes."""
        if self._asked.exists() and self._asked.read_text() == moment:
            if not self._held.exists():
                fresh = self._held.with_suffix(".new")
                fresh.write_text(f"{moment} {self.batch}")
                fresh.rename(self._held)
            return True
        self._held.unlink(missing_ok=True)
        return False


def held_classes(hold: Hold) -> tuple[type[AIOKafkaProducer], type[sink.ResultsSink]]:
    """Producer and sink that stand still."""

    class HeldProducer(AIOKafkaProducer):
        """Stands still before it commits a transaction."""

        async def commit_transaction(self) -> None:
            """Wait, then commit."""
            await self.flush()
            while hold.asked("sent"):  # noqa: ASYNC110  # another process says so
                await asyncio.sleep(PAUSE_SECONDS)
            await super().commit_transaction()

    class HeldSink(sink.ResultsSink):
        """Stands still after a batch is written."""

        def write(self, rows: Sequence[ResultRow]) -> None:
            """Write, then wait."""
            if rows:
                hold.batch = rows[0].batch
            super().write(rows)
            while rows and hold.asked("written"):
                time.sleep(PAUSE_SECONDS)

    return HeldProducer, HeldSink


def main() -> None:
    """Run the job until it has read what there is, or until it is stopped."""
    folder, master, trigger, *overrides = sys.argv[1:]
    assert trigger in {"continuously", "available now"}
    sink.AIOKafkaProducer, job.ResultsSink = held_classes(Hold(Path(folder)))  # type: ignore[misc]
    settings = load(None, [f"spark.checkpoint={folder}/checkpoint", *overrides], environ={})
    spec = job_spec(settings, SettingsBuckets(settings, buckets_spec(settings)))
    spec = replace(
        spec,
        ids=replace(spec.ids, rebase_bytes=REBASE_BYTES),
        models=replace(spec.models, rebase_bytes=REBASE_BYTES),
    )
    session = job.session(spec, master)
    session.sparkContext.setLogLevel("ERROR")
    query = job.start(spec, session, "available now" if trigger == "available now" else "continuously")
    query.awaitTermination()
    session.stop()


if __name__ == "__main__":
    main()
