"""Series of the process, under the names every client library gives."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import counter, gauge

PROCESS: Final = (
    counter("process_cpu_seconds_total", "CPU time used by the process."),
    gauge("process_resident_memory_bytes", "Resident memory of the process."),
    gauge("process_start_time_seconds", "Start time of the process, in seconds since the epoch."),
    gauge("process_open_fds", "Open file descriptors of the process."),
    gauge(
        "python_info",
        "Python implementation and version, as labels. The value is always 1.",
        "implementation",
        "version",
    ),
)
"""Exported without the prefix, as every client library exports them."""
