"""What a report is made of: documents shaped as those of the API, of a replay or of a running daemon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Document: TypeAlias = Mapping[str, Any]
"""JSON of the API (docs/reference/api.md)."""


class ReportError(Exception):
    """A report cannot be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Source:
    """Everything that is told, from one moment."""

    name: str
    """Of the recording, or the daemon's URL."""
    made_ms: int
    versions: Mapping[str, str]
    models: Mapping[str, Document]
    """`metrics` and `details` of every model, as in `/api/v1/models/{model}`."""
    histories: Mapping[str, Document]
    """As in `/api/v1/models/{model}/history`."""
    alarms: Sequence[Document]
    """As in `/api/v1/alarms`: the newest first."""
    comparisons: Sequence[Document]
    stream: Document
    """Numbers of no model."""
    notes: Sequence[str]
    """What was read, and what could not be."""
    settings: str | None
    """YAML; None where they are not known."""
    now_s: float | None = None
    """When a daemon published it; None for a replay."""
