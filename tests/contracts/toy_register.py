"""A register as somebody might add it: how many errors a model made in a row, at most; and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.names import Batch, Details, Slice
from streamwatch.core.estimators.registers import RegisterKind
from streamwatch.core.metrics import Metric
from streamwatch.core.metrics.series import Sample


@dataclass(frozen=True, slots=True)
class LongestRunSpec:
    """Errors in a row."""

    at_least: int = 1


class LongestRun:
    """Longest run of errors of every row."""

    def __init__(self, spec: LongestRunSpec, capacity: int) -> None:
        self._at_least = spec.at_least
        self._runs = [(0, 0)] * capacity
        self.section = f"toy_longest_run({spec.at_least})"
        self.title = "longest run of errors"

    def observe(self, batch: Batch) -> None:
        """Count errors in a row."""
        right = (batch.true_class == batch.predicted_class).tolist()
        for row, hit in zip(batch.rows.tolist(), right, strict=True):
            now, longest = self._runs[row]
            now = 0 if hit else now + 1
            self._runs[row] = now, max(now, longest)

    def clear(self, row: int) -> None:
        """Forget a row."""
        self._runs[row] = 0, 0

    def snapshots(self, rows: NDArray[np.int64]) -> Sequence[bytes]:
        """Both numbers."""
        return [msgspec.msgpack.encode(self._runs[row]) for row in rows.tolist()]

    def restore(self, row: int, state: bytes) -> None:
        """Take both numbers."""
        self._runs[row] = msgspec.msgpack.decode(state, type=tuple[int, int])

    def series(self, chosen: Sequence[Slice]) -> Mapping[str, Sequence[Sample]]:
        """One sample a model whose run is long enough."""
        longest = [((one.model,), float(self._runs[one.row][1])) for one in chosen]
        return {"toy_longest_run": [sample for sample in longest if sample[1] >= self._at_least]}

    def details(self, chosen: Sequence[Slice]) -> Details:
        """The run now."""
        return [{"toy_run": self._runs[one.row][0]} if one.classes else {} for one in chosen].__getitem__


class Forgetful(LongestRun):
    """One that does not forget a model that retires, and counts batches."""

    def clear(self, row: int) -> None:
        """Forget nothing."""

    def observe(self, batch: Batch) -> None:
        """Count batches."""
        for row in set(batch.rows.tolist()):
            self._runs[row] = 0, self._runs[row][1] + 1


METRIC = Metric("toy_longest_run", "gauge", "Most errors in a row", ("model",))
LONGEST_RUN = RegisterKind("toy_longest_run", LongestRunSpec, (METRIC,), LongestRun)
FORGETFUL = RegisterKind("toy_longest_run", LongestRunSpec, (METRIC,), Forgetful)
