"""Parent of Spark's Python workers: has what they need, and nothing that a fork would miss."""

import subprocess
import sys
from textwrap import dedent

import pytest

pytestmark = pytest.mark.usefixtures("spark_installed")


def test_warmed_without_a_thread_and_without_what_starts_threads() -> None:
    said = """
        import sys
        import threading
        from streamwatch.assembly import spark_workers

        spark_workers.warm_up_workers()
        print(threading.active_count(), "pandas" in sys.modules, "pyarrow" in sys.modules)
    """
    command = [sys.executable, "-c", dedent(said)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == [
        "1",
        "False",
        "False",
    ]


def test_worker_forked_from_it_computes_the_same() -> None:
    said = """
        import os
        import sys
        from streamwatch.assembly import spark_workers
        from streamwatch.core.estimators.set import EstimatorSet
        from streamwatch.core.events import Outcome
        from streamwatch.core.specs import MonitorsSpec

        def told():
            monitors = EstimatorSet(MonitorsSpec())
            monitors.fold([Outcome("m", "a", "ab"[n % 3 == 0], event_ms=n, delay_ms=0) for n in range(500)])
            return monitors.snapshot("m")

        before = told()
        spark_workers.warm_up_workers()
        if (child := os.fork()) == 0:
            os._exit(told() != before)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    subprocess.run([sys.executable, "-c", dedent(said)], check=True)
