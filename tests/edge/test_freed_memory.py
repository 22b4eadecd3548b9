"""Freed memory is used again, or given back, as a process asks for."""

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
        from streamwatch.edge.process import keep_freed_memory

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


def test_freed_memory_is_given_back() -> None:
    code = """
        from pathlib import Path
        from streamwatch.edge.process import return_freed_memory

        def resident_pages():
            return int(Path("/proc/self/statm").read_text().split()[1])

        kept = []
        freed = []
        for _ in range(2_000):
            freed.append(bytes(50_000))
            kept.append(bytes(2_000))
        full = resident_pages()
        freed.clear()
        after = resident_pages()
        assert return_freed_memory()
        print(full - after, full - resident_pages())
    """
    done = subprocess.run([sys.executable, "-c", dedent(code)], capture_output=True, text=True, check=True)
    by_itself, asked_for = map(int, done.stdout.split())
    freed_pages = 2_000 * 50_000 // 4_096
    assert by_itself < freed_pages / 2
    assert asked_for > freed_pages * 0.8
