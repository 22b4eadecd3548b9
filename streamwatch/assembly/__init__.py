"""Composition root: the only place that knows both the settings and all classes."""

from __future__ import annotations

from streamwatch.assembly import specs
from streamwatch.assembly.build import (
    REFUSALS,
    build_daemon,
    build_from_document,
    build_telemetry,
    build_topics,
)
from streamwatch.assembly.checks import check_all
from streamwatch.assembly.finding import Finding

__all__ = [
    "REFUSALS",
    "Finding",
    "build_daemon",
    "build_from_document",
    "build_telemetry",
    "build_topics",
    "check_all",
    "specs",
]
