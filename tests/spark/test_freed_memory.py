"""A worker uses the memory of its last task again."""

import platform
import subprocess
import sys
from textwrap import dedent

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs the GNU C library")


def test_freed_memory_is_used_again_without_a_page_fault() -> None:
    code = """
        import resource
        import numpy as np
        from streamwatch.spark.freed_memory import keep_freed_memory

        def faults_of_a_task():
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            arrays = [np.ones(2_000_000) for _ in range(4)]
            del arrays
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

        assert keep_freed_memory()
        print(faults_of_a_task(), faults_of_a_task(), faults_of_a_task())
    """
    # Huge pages would make few faults of many bytes.
    command = [sys.executable, "-c", dedent(code)]
    environment = {"NUMPY_MADVISE_HUGEPAGE": "0"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    first, *later = map(int, done.stdout.split())
    assert first > 0
    assert max(later) < first / 20
