"""What a kind of register brings: its specification, its series, and how one is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from streamwatch.core.estimators.names import Batch, Classes
from streamwatch.core.estimators.samples import Sample, Slice
from streamwatch.core.metrics import Metric


class Register(Protocol):
    """Something kept of every model row beside the kernel's table.

    What it keeps of a row must depend on that model's outcomes and their order only: not on how they were
    cut into batches, nor on when the state was written and read.
    """

    @property
    def section(self) -> str:
        """Name of its section in a model's snapshot: kind, parameters and version (see `fingerprint`).

        A section of another name is not resumed: the register then begins empty.
        """
        ...

    @property
    def title(self) -> str:
        """The section in words, for what a start says of estimators that go on or begin anew."""
        ...

    def observe(self, batch: Batch) -> None:
        """Take in outcomes of several models, in order; assumed ones are among them, and scores if given."""
        ...

    def clear(self, row: int) -> None:
        """Forget a row, before it is used and after its model has retired."""
        ...

    def snapshot(self, row: int) -> bytes:
        """State of a row, canonical: the same outcomes give the same bytes."""
        ...

    def restore(self, row: int, state: bytes) -> None:
        """Set a cleared row to a snapshot; raises ValueError for bytes that are none."""
        ...

    def series(self, chosen: Sequence[Slice]) -> Mapping[str, Sequence[Sample]]:
        """Samples of some models, by the name of a metric of its kind; what is undefined has no sample."""
        ...

    def details(self, row: int, classes: Classes) -> Mapping[str, object]:
        """Give what is no single number, for the API: JSON values under keys of its own; empty without any.

        A model that predicts in folds has none.
        """
        ...


@dataclass(frozen=True, slots=True)
class RegisterKind:
    """One kind of register; `registers.KINDS` lists them all, and everything else follows from that list."""

    name: str
    """Unique among kinds."""
    spec: type[Any]
    """Frozen dataclass of what an operator may choose; one in `MonitorsSpec.registers` asks for a register.
    Its defaults must make a valid one."""
    metrics: tuple[Metric, ...]
    """Families of series, each with a `model` label. The last ones are left out first to stay within
    `monitors.max_series`, after `metrics.DISPENSABLE` and before what is needed most."""
    build: Callable[[Any, int], Register]
    """(specification, capacity in rows) → an empty register."""
