"""Parent of Spark's Python workers: has what they need, and nothing that a fork would miss."""

import subprocess
import sys
from textwrap import dedent

import pytest

pytestmark = pytest.mark.usefixtures("spark_installed")


def test_warmed_without_a_thread_and_without_what_starts_threads() -> None:
    code = """
        import sys
        import threading
        from streamwatch.assembly import spark_workers

        spark_workers.warm_up_workers()
        print(threading.active_count(), "pandas" in sys.modules, "pyarrow" in sys.modules)
    """
    command = [sys.executable, "-c", dedent(code)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == [
        "1",
        "False",
        "False",
    ]


def test_worker_forked_from_it_computes_the_same() -> None:
    code = """
        import os
        import sys
        from streamwatch.assembly import spark_workers
        from streamwatch.core.estimators.set import EstimatorSet
        from streamwatch.core.records.events import Outcome
        from streamwatch.core.specs import MonitorsSpec

        def settings_of():
            monitors = EstimatorSet(MonitorsSpec())
            monitors.fold([Outcome("m", "a", "ab"[n % 3 == 0], event_ms=n, delay_ms=0) for n in range(500)])
            return monitors.snapshot("m")

        before = settings_of()
        spark_workers.warm_up_workers()
        if (child := os.fork()) == 0:
            os._exit(settings_of() != before)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    subprocess.run([sys.executable, "-c", dedent(code)], check=True)


def test_parent_has_loaded_all_that_buckets_and_reading_call_under_the_default_settings() -> None:
    code = """
        from dataclasses import replace
        from random import Random

        from numba.core.dispatcher import Dispatcher

        from streamwatch.assembly import spark_workers
        from streamwatch.assembly.job_settings import buckets_spec
        from streamwatch.edge.sources.kafka.batches.opened import compiled_plain_batches
        from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
        from streamwatch.settings import load
        from tests.core.buckets.cluster import Cluster
        from tests.core.buckets.logs import SIDES, a_log

        spark_workers.warm_up_workers()
        compiled = Dispatcher.compile

        def noted(self, signature):
            print(self.py_func.__module__, self.py_func.__name__)
            return compiled(self, signature)

        Dispatcher.compile = noted
        needed = ["kafka.bootstrap_servers=broker:9092", "topics.predictions=p", "topics.labels=l"]
        spec = replace(buckets_spec(load(None, needed, environ={})), sides=SIDES)
        Cluster(spec, Random(1), rebuilds=0.5).run(a_log(Random(1), 2_000), 4, ended=False)
        compiled_scan()
        compiled_plain_batches()
    """
    command = [sys.executable, "-c", dedent(code)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""
