"""Parent process of Spark's Python workers, which imports and compiles what they need before it forks them.

    python -m streamwatch.assembly.spark_workers pyspark.worker

Spark starts it once an executor instead of `pyspark.daemon` (`spark.python.daemon.module`). It must start no
threads, which a fork does not copy; therefore it opens no store, and imports neither pandas nor pyarrow.
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
from streamwatch.edge.sources.kafka.batches.opened import compiled_plain_batches
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
from streamwatch.settings import Settings
from streamwatch.spark import holders, processors

_NEEDED: Final = {
    "kafka": {"bootstrap_servers": "broker:9092"},
    "topics": {"predictions": ["predictions"], "labels": ["labels"]},
}
"""Settings without a default."""


def warm_up_workers() -> None:
    """Compile, or load from the cache, the functions that a worker calls under the default settings."""
    warm_up(monitors_spec(Settings.model_validate(_NEEDED)))
    warm_up_join()
    warm_up_commits()
    warm_up_predictions(())
    warm_up_merge()
    warm_up_buckets()
    compile_reader()
    compiled_scan()
    compiled_plain_batches()
    # Else a garbage collection in a worker would write to, and so copy, every page shared with the parent.
    gc.collect()
    gc.freeze()


def hold_buckets() -> None:
    """Start processes that hold the objects of buckets, on Linux, where sockets can be passed to them."""
    if sys.platform == "linux":
        processors.HOME.slots = holders.start_holders()


if __name__ == "__main__":
    keep_freed_memory()
    warm_up_workers()
    hold_buckets()
    manager()
