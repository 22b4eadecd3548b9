"""Protocol of a register, and its kind: specification, series and constructor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.names import Batch, Details, Slice
from streamwatch.core.metrics import Metric
from streamwatch.core.metrics.series import Sample


class Register(Protocol):
    """State of every model, by row, outside the kernel's table.

    The state of a row must depend only on that model's outcomes and their order: not on how they were cut
    into batches, nor on when the state was saved and restored.
    """

    @property
    def section(self) -> str:
        """Name of its section in a model's snapshot: kind, parameters and version (see `fingerprint`).

        If a snapshot has no section of this name, the register starts empty.
        """
        ...

    @property
    def title(self) -> str:
        """Description of the section, used to report which estimators continue and which start empty."""
        ...

    def observe(self, batch: Batch) -> None:
        """Evaluate outcomes of several models, in order, with scores if given.

        Assumed outcomes are included.
        """
        ...

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        ...

    def snapshots(self, rows: NDArray[np.int64]) -> Sequence[bytes]:
        """Encode the states of some rows, one of each; the same outcomes give the same bytes."""
        ...

    def restore(self, row: int, state: bytes) -> None:
        """Set a cleared row to a snapshot; raises ValueError for bytes that are not one."""
        ...

    def series(self, chosen: Sequence[Slice]) -> Mapping[str, Sequence[Sample]]:
        """Samples of some models, by name of a metric of this kind; undefined values give no sample."""
        ...

    def details(self, chosen: Sequence[Slice]) -> Details:
        """Read the details of some models for the API that are not single numbers.

        Returns a function from a model's index among these to JSON values under the kind's name, or none. It
        is called on request, from any thread, after later outcomes, which must not change what it returns.
        """
        ...


@dataclass(frozen=True, slots=True)
class RegisterKind:
    """Kind of register; everything else about registers is derived from the list `registers.KINDS`."""

    name: str
    """Unique among kinds."""
    spec: type[Any]
    """Frozen dataclass of the parameters, all with valid defaults.

    An instance in `MonitorsSpec.registers` requests a register.
    """
    metrics: tuple[Metric, ...]
    """Metrics of its series, each with a `model` label.

    To stay within `monitors.max_series`, a scrape leaves the last ones out first, except for those in
    `metrics.NEEDED`.
    """
    build: Callable[[Any, int], Register]
    """Build an empty register: (specification, capacity in rows) → register."""
