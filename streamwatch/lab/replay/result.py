"""Counts of what a replay read, and the estimates at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamwatch.core.events import Alarm
from streamwatch.core.series import Family
from streamwatch.lab.recordings.lines import BadLine


@dataclass(slots=True)
class ReplayResult:
    """Counts of what was read, and the estimates at its end."""

    source: str
    lines: int = 0
    outcomes: int = 0
    pending: int = 0
    """Predictions still waiting for a label when the recording ended."""
    bad: Counter[str] = field(default_factory=Counter[str])
    """Lines that could not be used, by reason."""
    first_bad: list[BadLine] = field(default_factory=list[BadLine])
    alarms: list[Alarm] = field(default_factory=list[Alarm])
    families: Sequence[Family] = ()
    details: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])
    """Of each model what is no number, as in the API."""
    trace_rows: int = 0
    seconds: float = 0.0
    """Time of reading and evaluating."""
    compile_seconds: float = 0.0
    """Time before that: loading the estimators, or compiling them."""
