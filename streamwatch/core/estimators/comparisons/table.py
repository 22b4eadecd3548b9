"""Table of comparisons: one row per pair of models, updated in batches, read on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.comparisons.measures import Sums
from streamwatch.core.estimators.comparisons.observe import (
    BALANCED,
    CHALLENGER_WRONG,
    CHAMPION_WRONG,
    FADED,
    LATEST,
    TALLY,
    VERSION,
    PairArrays,
    observe,
)
from streamwatch.core.estimators.entries import fingerprint
from streamwatch.core.estimators.verdicts.readout import Verdicts, read_verdicts
from streamwatch.core.estimators.verdicts.state import PACE, VERDICT, verdict_parameters
from streamwatch.core.estimators.verdicts.state import VERSION as VERDICT_VERSION
from streamwatch.core.ranges import LARGEST, require_all, require_steps
from streamwatch.core.specs import (
    FadingSpec,
    ForgettingSpec,
    LandmarkSpec,
    MonitorsSpec,
    SlidingSpec,
    UtilitySpec,
)

Integers: TypeAlias = NDArray[np.int64]

LANDMARK = f"pairs/{VERSION}"
_NAME = "comparisons"
_LEAST = 8
_BY_ROW = PairArrays._fields.index("counts")
"""Number of the arrays that have an entry for each row, which come first."""
_encode = msgspec.msgpack.Encoder().encode
_decode_landmark = msgspec.msgpack.Decoder(tuple[int, bytes]).decode
_decode_sliding = msgspec.msgpack.Decoder(tuple[bytes, bytes]).decode
_decode_verdict = msgspec.msgpack.Decoder(tuple[bytes, bytes, bytes, bytes]).decode


class ComparisonTable:
    """Sums and verdicts of pairs of models; rows are numbered densely, and freed rows are used again.

    An ADWIN window follows the loss of a single model and cannot be used here. The mechanisms of a comparison
    are the landmark, fading and sliding ones.
    """

    def __init__(self, spec: MonitorsSpec) -> None:
        self.forgetting: tuple[ForgettingSpec, ...] = tuple(
            f for f in spec.forgetting if isinstance(f, LandmarkSpec | FadingSpec | SlidingSpec)
        )
        self._spec = spec
        self._fading = [f for f in self.forgetting if isinstance(f, FadingSpec)]
        self._sliding = [f for f in self.forgetting if isinstance(f, SlidingSpec)]
        self._free: list[int] = []
        self._used = 0
        self._arrays = PairArrays(
            latest=np.zeros(0, LATEST),
            landmark=np.zeros(0, TALLY),
            faded=np.zeros((0, len(self._fading)), FADED),
            windows=np.zeros((0, len(self._sliding)), TALLY),
            rings=np.zeros((0, max((f.size for f in self._sliding), default=1)), np.uint8),
            paces=np.zeros(0, PACE),
            verdicts=np.zeros(0, VERDICT),
            balanced=np.zeros(0, BALANCED),
            counts=np.zeros((1, 0), np.float64),
            alphas=np.array([f.alpha for f in self._fading], np.float64),
            sizes=np.array([f.size for f in self._sliding], np.int64),
            parameters=verdict_parameters(spec.verdict_outcomes, spec.confidence_delta).reshape(1),
        )

    def add_row(self, *, balanced: bool) -> int:
        """Allocate an empty row; `balanced` if it is judged by the balanced utility."""
        if self._free:
            row = self._free.pop()
        else:
            row = self._used
            self._used += 1
            if row == len(self._arrays.latest):
                self._grow(max(_LEAST, 2 * row))
        self._arrays.balanced[row]["counted"] = balanced
        return row

    def remove(self, row: int) -> None:
        """Clear and free a row."""
        for array in self._arrays[:_BY_ROW]:
            array[row] = np.zeros((), array.dtype)
        self._arrays.counts[:, row] = 0.0
        self._free.append(row)

    def fold(
        self,
        rows: Integers,
        bits: NDArray[np.uint8],
        leads: NDArray[np.float64],
        true_class: Integers,
        event_ms: Integers,
    ) -> None:
        """Evaluate pairs of outcomes in order; arrays as in `observe`."""
        if not len(rows):
            return
        self._make_room(int(true_class.max()) + 1)
        observe(self._arrays, rows, bits, leads, true_class, event_ms)

    def pairs(self, rows: Integers) -> Integers:
        """Number of pairs of each comparison, int64 (m,)."""
        return self._arrays.landmark["pairs"][rows]

    def last_seconds(self, rows: Integers) -> NDArray[np.float64]:
        """Event time in seconds of each comparison's last pair, float64 (m,)."""
        return self._arrays.latest["event_ms"][rows] / 1000.0

    def sums(self, rows: Integers, forgetting: int) -> Sums:
        """Sums of m comparisons under mechanism number `forgetting`, each (m,)."""
        spec = self.forgetting[forgetting]
        if isinstance(spec, FadingSpec):
            found = self._arrays.faded[rows, self._fading.index(spec)]
            weight, variance = found["weight"], found["variance"]
            squares = np.where(found["squares"] > 0, found["squares"], np.nan)
        else:
            slides = isinstance(spec, SlidingSpec)
            found = (
                self._arrays.windows[rows, self._sliding.index(spec)]
                if slides
                else self._arrays.landmark[rows]
            )
            weight = found["pairs"].astype(np.float64)
            squares = np.where(weight > 0, weight, np.nan)
            variance = found["n01"] + found["n10"]
        return Sums(
            weight,
            weight * weight / squares,
            found["champion"].astype(np.float64),
            found["challenger"].astype(np.float64),
            found["n01"].astype(np.float64),
            found["n10"].astype(np.float64),
            variance.astype(np.float64),
        )

    def verdicts(self, rows: Integers) -> Verdicts:
        """Verdicts on m challengers, each array (1, m); steps are counted in pairs."""
        threshold = float(self._arrays.parameters["threshold"][0])
        steps, records = self._arrays.paces["steps"][rows][None, :], self._arrays.verdicts[rows][None, :]
        return read_verdicts(steps, records, self._spec.confidence_delta, threshold)

    def snapshot(self, row: int, utility: UtilitySpec) -> dict[str, bytes]:
        """Encode the state of a comparison, one section per estimator; equal states give equal bytes."""
        latest = self._arrays.latest[row]
        landmark = [int(latest["event_ms"]), self._arrays.landmark[row].tobytes()]
        sections = {LANDMARK: _encode(landmark)}
        for j, spec in enumerate(self._fading):
            sections[_named("fading", spec)] = self._arrays.faded[row, j].tobytes()
        newest_last = np.roll(self._arrays.rings[row], -int(latest["head"]))
        for j, spec in enumerate(self._sliding):
            window = self._arrays.windows[row, j]
            recent = newest_last[len(newest_last) - int(window["pairs"]) :]
            sections[_named("sliding", spec)] = _encode([window.tobytes(), recent.tobytes()])
        balanced = self._arrays.balanced[row]
        counts = self._arrays.counts[: int(balanced["classes"]), row]
        judged = (self._arrays.paces[row], self._arrays.verdicts[row], balanced, counts)
        sections[self.verdict_section(utility)] = _encode([each.tobytes() for each in judged])
        return sections

    def restore(self, row: int, utility: UtilitySpec, sections: Mapping[str, bytes]) -> None:
        """Restore the estimators of an empty row from the sections present.

        Raises
        ------
        ValueError
            If a section is not of the length it must have.
        """
        if LANDMARK in sections:
            event_ms, landmark = _decode_landmark(sections[LANDMARK])
            self._arrays.latest[row]["event_ms"] = event_ms
            self._arrays.landmark[row] = _record(landmark, TALLY)
        for j, spec in enumerate(self._fading):
            if (section := sections.get(_named("fading", spec))) is not None:
                self._arrays.faded[row, j] = _record(section, FADED)
        for j, spec in enumerate(self._sliding):
            if (section := sections.get(_named("sliding", spec))) is not None:
                window, recent = _decode_sliding(section)
                self._arrays.windows[row, j] = _record(window, TALLY)
                if not int(self._arrays.windows[row, j]["pairs"]) == len(recent) <= spec.size:
                    raise ValueError(f"expected the pairs of a sliding window, got {len(recent)}")
                pairs = np.frombuffer(recent, np.uint8)
                require_all(_NAME, "pair", pairs, 0, CHAMPION_WRONG | CHALLENGER_WRONG)
                self._arrays.rings[row, self._arrays.rings.shape[1] - len(recent) :] = pairs
        if (section := sections.get(self.verdict_section(utility))) is not None:
            pace, verdict, balanced, counts = _decode_verdict(section)
            self._arrays.paces[row] = _record(pace, PACE)
            self._arrays.verdicts[row] = _record(verdict, VERDICT)
            require_steps(_NAME, self._arrays.paces[row], self._arrays.verdicts[row], LARGEST)
            self._arrays.balanced[row] = _record(balanced, BALANCED)
            counted = np.frombuffer(counts, np.float64)
            if len(counted) != int(self._arrays.balanced[row]["classes"]):
                raise ValueError(f"expected a count of each class of a comparison, got {len(counted)}")
            self._make_room(len(counted))
            self._arrays.counts[: len(counted), row] = counted

    def verdict_section(self, utility: UtilitySpec) -> str:
        """Name of the section of a verdict by this utility."""
        return fingerprint("verdict", self._judged(utility), VERDICT, (VERSION, VERDICT_VERSION))

    def _judged(self, utility: UtilitySpec) -> object:
        """Settings that a verdict depends on."""
        by = (utility.kind, utility.costs, utility.other)
        return by, self._spec.verdict_outcomes, self._spec.confidence_delta

    def _make_room(self, classes: int) -> None:
        """Make room in `counts` for this many classes."""
        counts = self._arrays.counts
        if classes > len(counts):
            larger = _enlarged(counts, (1 << (classes - 1).bit_length(), counts.shape[1]))
            self._arrays = self._arrays._replace(counts=larger)

    def _grow(self, rows: int) -> None:
        arrays = self._arrays
        by_row = [_enlarged(array, (rows, *array.shape[1:])) for array in arrays[:_BY_ROW]]
        counts = _enlarged(arrays.counts, (len(arrays.counts), rows))
        names = PairArrays._fields[:_BY_ROW]
        self._arrays = arrays._replace(counts=counts, **dict(zip(names, by_row, strict=True)))


def comparison_bytes(spec: MonitorsSpec) -> int:
    """Memory of one comparison in bytes without cohorts, all classes counted for the balanced utility."""
    fading = sum(isinstance(f, FadingSpec) for f in spec.forgetting)
    sizes = [f.size for f in spec.forgetting if isinstance(f, SlidingSpec)]
    records = LATEST.itemsize + TALLY.itemsize + PACE.itemsize + VERDICT.itemsize + BALANCED.itemsize
    sums = fading * FADED.itemsize + len(sizes) * TALLY.itemsize + max(sizes, default=1)
    return records + sums + 8 * (1 << spec.max_classes.bit_length())


def _record(body: bytes, kind: np.dtype[np.void]) -> np.void:
    """Read one record; raises ValueError for another number of bytes."""
    if len(body) != kind.itemsize:
        raise ValueError(f"expected {kind.itemsize} bytes of a comparison, got {len(body)}")
    return np.frombuffer(body, kind)[0]


def _named(kind: str, spec: ForgettingSpec) -> str:
    return fingerprint(kind, spec, FADED if kind == "fading" else TALLY, VERSION)


def _enlarged(array: NDArray[Any], shape: Sequence[int]) -> NDArray[Any]:
    larger = np.zeros(shape, array.dtype)
    larger[tuple(slice(0, length) for length in array.shape)] = array
    return larger
