"""Series of the process, under the names every client library gives."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import counter, gauge

PROCESS: Final = (
    counter("process_cpu_seconds_total", "CPU time this process has used."),
    gauge("process_resident_memory_bytes", "Resident memory of this process."),
    gauge("process_start_time_seconds", "Start of this process, in seconds since the epoch."),
    gauge("process_open_fds", "File descriptors this process holds open."),
    gauge("python_info", "Always 1; the labels are the interpreter.", "implementation", "version"),
)
"""Exported without the prefix, as every client library exports them."""
