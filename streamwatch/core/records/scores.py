"""`ScoreLists`: scores of predictions, concatenated in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ScoreLists:
    """Scores of n predictions; a prediction's number is its position here.

    Attributes
    ----------
    ends
        int64, shape (n,): index at which the scores of each prediction end, and those of the next begin.
    classes
        int32: number of each score's class, in the order of the prediction's list.
    values
        float64, as long as `classes`.
    beside
        int32, shape (n,): further number of each prediction. In decoded records it is that of
        `core.records.events.sampling_of`, 0 without a probability; in the join and in outcomes it is the
        number of the prediction's segments, -1 without any.
    """

    ends: NDArray[np.int64]
    classes: NDArray[np.int32]
    values: NDArray[np.float64]
    beside: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.ends)

    def sizes(self, numbers: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of scores of each of the predictions with these numbers."""
        return self.ends[numbers] - np.where(numbers > 0, self.ends[numbers - 1], 0)

    def by_class(self, numbers: NDArray[np.integer], names: Sequence[str]) -> list[dict[str, float]]:
        """Return the scores of the predictions with these numbers, by name of the class."""
        if not len(numbers):
            return []
        chosen = self.only(numbers)
        stops: list[int] = chosen.ends.tolist()
        named = list(map(names.__getitem__, chosen.classes.tolist()))
        values: list[float] = chosen.values.tolist()
        return [
            dict(zip(named[start:stop], values[start:stop], strict=True))
            for start, stop in zip([0, *stops], stops, strict=False)
        ]

    def only(self, numbers: NDArray[np.integer]) -> Self:
        """Copy the scores of the predictions with these numbers; in the copy, these are numbered in order."""
        if len(numbers) and (np.diff(numbers) == 1).all():
            return self._between(int(numbers[0]), int(numbers[-1]) + 1)
        sizes = self.sizes(numbers)
        ends = np.cumsum(sizes)
        at = np.arange(int(sizes.sum())) + np.repeat(self.ends[numbers] - ends, sizes)
        return type(self)(ends, self.classes[at], self.values[at], self.beside[numbers])

    def _between(self, first: int, last: int) -> Self:
        """Copy the scores of the predictions from number `first` to before `last`."""
        start = int(self.ends[first - 1]) if first else 0
        ends = self.ends[first:last] - start
        some = slice(start, start + int(ends[-1]))
        beside = self.beside[first:last].copy()
        return type(self)(ends, self.classes[some].copy(), self.values[some].copy(), beside)

    def followed_by(self, others: ScoreLists) -> ScoreLists:
        """Concatenate these scores and others, whose predictions are numbered from `len(self)` on."""
        return joined_lists([self, others])


NO_LISTS: Final = ScoreLists(
    np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.float64), np.empty(0, np.int32)
)


def joined_lists(parts: Sequence[ScoreLists]) -> ScoreLists:
    """Concatenate parts; the predictions of each are numbered on from those of the part before."""
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        return parts[0] if parts else NO_LISTS
    starts = np.cumsum([0, *(len(part.classes) for part in parts)]).tolist()
    return ScoreLists(
        np.concatenate([part.ends + start for part, start in zip(parts, starts, strict=False)]),
        np.concatenate([part.classes for part in parts]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.beside for part in parts]),
    )


def lists_of(scores: Sequence[Mapping[int, float]], beside: Sequence[int] | NDArray[np.int32]) -> ScoreLists:
    """Build columns from scores by number of the class, one mapping a prediction; slow for many."""
    return ScoreLists(
        np.cumsum([len(each) for each in scores], dtype=np.int64),
        np.array([number for each in scores for number in each], np.int32),
        np.array([score for each in scores for score in each.values()], np.float64),
        np.array(beside, np.int32),
    )
