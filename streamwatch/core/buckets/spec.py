"""Cut of a stream into buckets: the same for every reader and bucket, for the life of a state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamwatch.core.events import Side
from streamwatch.core.specs import JoinSpec, MonitorsSpec


@dataclass(frozen=True, slots=True)
class BucketsSpec:
    """Everything that readers and buckets are made from.

    `RowReader(spec, digests)`, `IdBucket(number, spec)` and `ModelBucket(number, spec)` are made with it.

    Raises
    ------
    ValueError
        If predictions may be revised: what was known at a revision has no place among what buckets send.
    """

    sides: Mapping[str, Side]
    """Side of each topic, in the order of the settings."""
    join: JoinSpec = field(default_factory=JoinSpec)
    """Rules of the join; `max_pending`, `max_labels`, `max_dedup_entries` and `max_reordered` are of all
    buckets together, `max_models` is of each."""
    monitors: MonitorsSpec = field(default_factory=MonitorsSpec)
    """Estimators of every model."""
    id_buckets: int = 4
    """Buckets of ids, at least 1; fixed for the life of a state."""
    model_buckets: int = 3
    """Buckets of models, at least 1; fixed for the life of a state."""
    max_future_ms: int = 300_000
    """As in `MergeSpec`."""
    start_ms: int | None = None
    """As `Pipeline.start_ms`."""

    def __post_init__(self) -> None:
        if self.join.conflicts != "first":
            raise ValueError(f"conflicts of buckets must be 'first', got {self.join.conflicts!r}")
