"""Specification of the partitioning into buckets; the same for every reader and bucket of a state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamwatch.core.events import Side
from streamwatch.core.specs import JoinSpec, MonitorsSpec


@dataclass(frozen=True, slots=True)
class BucketsSpec:
    """Specification from which readers and buckets are built.

    It is an argument of `RowReader(spec, digests)`, `IdBucket(number, spec)` and `ModelBucket(number, spec)`.

    Raises
    ------
    ValueError
        If predictions may be revised, as what buckets send has no place for the label known at a revision.
    """

    sides: Mapping[str, Side]
    """Kind of events of each topic, in the order of the settings."""
    join: JoinSpec = field(default_factory=JoinSpec)
    """Rules of the join.

    `max_pending`, `max_labels`, `max_dedup_entries` and `max_reordered` apply to all buckets together,
    `max_models` to each.
    """
    monitors: MonitorsSpec = field(default_factory=MonitorsSpec)
    """Estimators of every model."""
    id_buckets: int = 4
    """Number of id buckets, at least 1; fixed for the life of a state."""
    model_buckets: int = 3
    """Number of model buckets, at least 1; fixed for the life of a state."""
    max_future_ms: int = 300_000
    """As in `MergeSpec`."""
    start_ms: int | None = None
    """As in `Pipeline.start_ms`."""

    def __post_init__(self) -> None:
        if self.join.conflicts != "first":
            raise ValueError(f"conflicts of buckets must be 'first', got {self.join.conflicts!r}")
