"""Parent of the Python workers of Spark, which has imported and loaded what they need before it forks them.

    python -m streamwatch.assembly.spark_workers pyspark.worker

Spark starts it in place of `pyspark.daemon`, once an executor (`spark.python.daemon.module`). It starts no
thread, for a fork would not have it; so it opens no store, and imports neither pandas nor pyarrow.
"""

from __future__ import annotations

from pyspark.daemon import manager

import streamwatch.assembly.spark  # noqa: F401  # pyright: ignore[reportUnusedImport]
from streamwatch.core.buckets.columns.warming import warm_up_buckets
from streamwatch.core.estimators.warming import warm_up
from streamwatch.core.join.compiled.warming import warm_up_commits, warm_up_join
from streamwatch.core.merge.warming import warm_up_merge
from streamwatch.core.predictions.warming import warm_up_predictions
from streamwatch.core.specs import MonitorsSpec
from streamwatch.edge.decoders.scanner.reader import compile_reader


def warm_up_workers() -> None:
    """Compile or load what a worker calls under the default settings; others may need a little more."""
    warm_up(MonitorsSpec())
    warm_up_join()
    warm_up_commits()
    warm_up_predictions(())
    warm_up_merge()
    warm_up_buckets()
    compile_reader()


if __name__ == "__main__":
    warm_up_workers()
    manager()
