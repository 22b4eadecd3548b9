"""Parent of the Python workers of Spark, which has imported and loaded what they need before it forks them.

    python -m streamwatch.assembly.spark_workers pyspark.worker

Spark starts it instead of `pyspark.daemon`, once an executor (`spark.python.daemon.module`). It starts no
thread, for a fork would not have it; so it opens no store, and imports neither pandas nor pyarrow.
"""

from __future__ import annotations

import gc
import sys
from typing import Final

from pyspark.daemon import manager

import streamwatch.assembly.spark  # noqa: F401  # pyright: ignore[reportUnusedImport]
from streamwatch.assembly.specs import monitors_spec
from streamwatch.core.buckets.histories import warm_up_buckets
from streamwatch.core.estimators.warming import warm_up
from streamwatch.core.join.warming import warm_up_commits, warm_up_join
from streamwatch.core.merge.merge import warm_up_merge
from streamwatch.core.predictions.registers import warm_up_predictions
from streamwatch.edge.decoders.scanner.reader import compile_reader
from streamwatch.edge.process import keep_freed_memory
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
from streamwatch.edge.sources.kafka.batches.scanner import compiled_plain_batches
from streamwatch.settings import Settings
from streamwatch.spark import holders, processors

_NEEDED: Final = {
    "kafka": {"bootstrap_servers": "broker:9092"},
    "topics": {"predictions": ["predictions"], "labels": ["labels"]},
}
"""Settings without a default."""


def warm_up_workers() -> None:
    """Compile or load what a worker calls under the default settings; others may need a little more."""
    warm_up(monitors_spec(Settings.model_validate(_NEEDED)))
    warm_up_join()
    warm_up_commits()
    warm_up_predictions(())
    warm_up_merge()
    warm_up_buckets()
    compile_reader()
    compiled_scan()
    compiled_plain_batches()
    # A collection in a worker would write to every page that it shares with its parent, and copy it.
    gc.collect()
    gc.freeze()


def hold_buckets() -> None:
    """Let buckets be in processes of their own, where the system can hand sockets over."""
    if sys.platform == "linux":
        processors.HOME.slots = holders.start_holders()


if __name__ == "__main__":
    keep_freed_memory()
    warm_up_workers()
    hold_buckets()
    manager()
