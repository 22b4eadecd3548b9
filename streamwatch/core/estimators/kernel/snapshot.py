"""States of models' estimators as bytes, independent of the models' rows; taken of many models at once.

Each estimator has a section, named by its fingerprint (`section_names`). Equal states give equal bytes.

A section is the records of its estimator as they lie in memory, one after the other, little-endian. The
length of a part that has no fixed one stands in the part, or before it:

    model          `HEADER_FIELDS`, eight bytes each
    mechanism      its totals; agreed, missed and false counts of each class; then, of fading, its record;
                   of a sliding window, its outcomes; of an ADWIN window, `_window_pieces` and its outcomes
    label counts   `MAJORITY_COUNTED` or `BALANCED_COUNTED` record, then a count of each class
    shadow         see `_shadow_pieces`; empty once they have stopped
    verdict        `PACE` record, then `VERDICT` record
    any other      the record of the estimator

Numpy encodes all chosen models at once, and Python only cuts out the bytes of each: a daemon of many models
takes snapshots at every commit.

No compiled function uses this module, so changes here recompile nothing (`jit.cache`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.estimators.detectors.kind import MOST
from streamwatch.core.estimators.entries import fingerprint
from streamwatch.core.estimators.forgetting.adwin import FIRST_BLOCK_ROW, PER_ROW, ROWS, WINDOW
from streamwatch.core.estimators.forgetting.drift_weighted import CLOCK, LABEL_DRIFT, WEIGHTING
from streamwatch.core.estimators.forgetting.mechanisms import FADING
from streamwatch.core.estimators.kernel.layout import Layout, Records, label_drifts_of, utility_index
from streamwatch.core.estimators.kernel.pools import Pools, opaque, taken
from streamwatch.core.estimators.kernel.shadow import VERSION as SHADOW_VERSION
from streamwatch.core.estimators.kernel.shadow import shadow_words
from streamwatch.core.estimators.memory import FLAGS, HEADER, SLOT, SUMS, N, true_class_shift
from streamwatch.core.estimators.recovery import RECOVERY, recovery_identity, watched_of
from streamwatch.core.estimators.recovery import VERSION as RECOVERY_VERSION
from streamwatch.core.estimators.verdicts.detector import BALANCED, COSTS
from streamwatch.core.estimators.verdicts.leads import EXTRA_COLUMNS
from streamwatch.core.estimators.verdicts.state import PACE, VERDICT
from streamwatch.core.estimators.verdicts.state import VERSION as VERDICT_VERSION
from streamwatch.core.ranges import MOST_COUNTED, require, require_all, require_equal, require_steps
from streamwatch.core.specs import LandmarkSpec, MonitorsSpec, UtilitySpec

# Cutting the bytes of many models, which lie one after another, into those of each.


Integers: TypeAlias = NDArray[np.int64]
Pieces: TypeAlias = list[bytes]
"""Bytes of each of the chosen models."""


def _equal(values: NDArray[Any]) -> Pieces:
    """Bytes of each entry of an array (m, …)."""
    body, number = (values if values.dtype.names is None else opaque(values)).tobytes(), len(values)
    size = len(body) // number
    if not size:
        return [b""] * number
    return [body[start : start + size] for start in range(0, len(body), size)]


def _ragged(values: NDArray[Any], counts: Integers) -> Pieces:
    """Cut an array into successive runs, `counts[i]` entries long, and return the bytes of each."""
    body = values.tobytes()
    each = values[:1].nbytes if len(values) else 0
    ends: list[int] = (np.cumsum(counts) * each).tolist()
    return [body[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _ranges(starts: Integers, counts: Integers) -> Integers:
    """Concatenate the ranges [starts[i], starts[i] + counts[i])."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


class _Reader:
    """Reads the arrays of a section one after another.

    Parameters
    ----------
    name
        Name of the section, for errors.
    body
        Bytes of the section.
    """

    def __init__(self, name: str, body: bytes) -> None:
        self._name = name
        self._body = body
        self._at = 0

    def array(self, dtype: Any, count: int) -> NDArray[Any]:
        """Read `count` entries; raises ValueError if there are fewer."""
        size = count * np.dtype(dtype).itemsize
        if count < 0 or self._at + size > len(self._body):
            raise ValueError(
                f"section {self._name} must have {self._at + size} bytes or more, got {len(self._body)}"
            )
        self._at += size
        return np.frombuffer(self._body, dtype, count, self._at - size)

    def rest(self, dtype: Any) -> NDArray[Any]:
        """Read the rest; raises ValueError if it is not a whole number of entries."""
        left, each = len(self._body) - self._at, np.dtype(dtype).itemsize
        if left % each:
            raise ValueError(f"section {self._name} must end with entries of {each} bytes, got {left} bytes")
        return self.array(dtype, left // each)

    def end(self) -> None:
        """Raise ValueError unless everything was read."""
        if self._at != len(self._body):
            raise ValueError(f"section {self._name} must have {self._at} bytes, got {len(self._body)}")


# State of a model's shadow classifiers, independent of position and size of their block.


def _rows(pools: Pools, shadow: Any, classes: int) -> tuple[NDArray[np.float64], Integers]:
    """View a model's block as rows of counts plus leader.

    Also return the rows of its first `classes` classes.
    """
    span, start = int(shadow["span"]), int(shadow["start"])
    block = pools.shadows[start : start + shadow_words(span)].reshape(-1, span + 1)
    return block, _rows_of(span, classes)


def _rows_of(span: int, classes: int) -> Integers:
    """Rows of the first `classes` classes, in a block for `span`."""
    k = np.arange(classes)
    pairs = 1 + span + (k[:, None] * span + k[None, :]).ravel()
    return np.concatenate([[0], 1 + k, pairs])


def _first_leaders(classes: int) -> Integers:
    """Leaders of rows without counts: class 0, the previous label, the prediction."""
    k = np.arange(classes)
    return np.concatenate([[0], k, np.repeat(k, classes)])


_SHADOW_HEAD: Final = np.dtype(
    [("unit", "f8"), ("first", "f8"), ("first_truth", "i8"), ("first_predicted", "i8")]
)


def _shadow_pieces(pools: Pools, chosen: Records) -> Pieces:
    """Encode head; indices (i4) of rows with counts; their counts (f8) of each class; their leaders (f8).

    Empty if the shadow classifiers of a model have stopped.
    """
    shadow = chosen["shadow"][:, 0]
    heads = np.zeros(len(chosen), _SHADOW_HEAD)
    for name in _SHADOW_HEAD.names or ():
        heads[name] = shadow[name]
    goes_on = shadow["stopped"] == 0
    pieces = [head if there else b"" for head, there in zip(_equal(heads), goes_on.tolist(), strict=True)]
    for classes, span, members in _alike(chosen["classes"], shadow):
        words = shadow["start"][members, None] + np.arange(shadow_words(span))
        blocks = pools.shadows[words].reshape(len(members), -1, span + 1)[:, _rows_of(span, classes)]
        counts, leaders = blocks[:, :, :classes], blocks[:, :, span]
        written = (counts != 0.0).any(axis=2) | (leaders != _first_leaders(classes))
        numbers = written.sum(axis=1)
        indices = _ragged(np.nonzero(written)[1].astype(np.int32), numbers)
        bodies = _ragged(np.concatenate([counts, leaders[:, :, None]], axis=2)[written], numbers)
        for member, index, body in zip(members.tolist(), indices, bodies, strict=True):
            pieces[member] += index + body
    return pieces


def _resume_shadow(pools: Pools, model: Any, most: int, section: bytes | None) -> None:
    """Restore shadow classifiers into the model's block; without a section they start empty."""
    shadow, classes = model["shadow"][0], int(model["classes"])
    if classes > most:
        shadow["stopped"] = 1
    elif section and classes:
        reader = _Reader(SHADOWS, section)
        head = reader.array(_SHADOW_HEAD, 1)[0]
        block, rows = _rows(pools, shadow, classes)
        written = (len(section) - _SHADOW_HEAD.itemsize) // (4 + 8 * (classes + 1))
        indices = reader.array(np.int32, written)
        values = reader.array(np.float64, written * (classes + 1)).reshape(-1, classes + 1)
        reader.end()
        require_all(SHADOWS, "row", indices, 0, len(rows) - 1)
        require_all(SHADOWS, "leader", values[:, classes], 0, classes - 1)
        for name in ("first_truth", "first_predicted"):
            require(SHADOWS, name, head[name], 0, classes - 1)
        chosen = rows[indices]
        block[chosen, :classes] = values[:, :classes]
        block[chosen, int(shadow["span"])] = values[:, classes]
        for name in _SHADOW_HEAD.names or ():
            shadow[name] = head[name]


def confusions(pools: Pools, rows: Integers) -> list[NDArray[np.float64] | None]:
    """Faded counts of (true, predicted) of the models in some rows, in units of outcomes.

    Shape (K, K) by local class index, K the number of classes of the model; an outcome of age a counts
    .999^a. None before the first outcome, without shadow classifiers and once they have stopped.
    """
    found: list[NDArray[np.float64] | None] = [None] * len(rows)
    if not pools.models["shadow"].shape[1]:
        return found
    shadow = pools.models["shadow"][rows, 0]
    for classes, span, members in _alike(pools.models["classes"][rows], shadow):
        words = shadow["start"][members, None] + np.arange(shadow_words(span))
        pairs = _rows_of(span, classes)[1 + classes :]
        cubes = pools.shadows[words].reshape(len(members), -1, span + 1)[:, pairs, :classes]
        # axes: model, predicted, previous, true
        counts = cubes.reshape(-1, classes, classes, classes).sum(axis=2).transpose(0, 2, 1).copy()
        of = shadow[members]
        counts[np.arange(len(members)), of["first_truth"], of["first_predicted"]] += of["first"]
        counts /= of["unit"][:, None, None]
        for member, own in zip(members.tolist(), counts, strict=True):
            found[member] = own
    return found


def _alike(counts: NDArray[Any], shadow: Records) -> Iterator[tuple[int, int, Integers]]:
    """Group models by number of classes and span of the block; yield both, and the models' positions.

    Those without classes, or whose shadow classifiers have stopped, are left out.

    Parameters
    ----------
    counts
        Number of classes of each model, (m,).
    shadow
        Records of their shadow classifiers, (m,).
    """
    sizes = np.stack([counts, shadow["span"]], axis=1).astype(np.int64)
    counted = (shadow["stopped"] == 0) & (sizes[:, 0] > 0)
    for classes, span in np.unique(sizes[counted], axis=0).tolist():
        yield classes, span, np.flatnonzero(counted & (sizes == (classes, span)).all(axis=1))


# State of ADWIN windows, independent of where their blocks are.


_SCALARS: Final = np.dtype(
    [
        ("pending", "i8"),  # outcomes since the last check
        *((name, WINDOW[name]) for name in ("large", "last_drift", "kept")),
        *((name, WINDOW[name]) for name in ("statistic", "threshold", "before", "after", "dependence")),
        ("rows", "i8"),
    ]
)
_BLOCK_HEAD: Final = np.dtype(
    [
        ("sums", "i4", (HEADER - 1,)),  # repeats, and the sums of the flags
        ("span", "i4"),  # number of classes
        ("counted", "i4"),  # number of classes with counts
    ]
)


def _window_pieces(pools: Pools, chosen: Records, window: int) -> list[Pieces]:
    """Encode scalars; buckets of each row in use (i4); losses of each bucket (i4); blocks of large buckets.

    Of the blocks first all heads, then classes with counts (i4), then their agreed, missed and false counts.
    """
    windows = chosen["windows"][:, window]
    scalars = np.zeros(len(windows), _SCALARS)
    scalars["pending"] = chosen["pending"][:, window]
    for name in (_SCALARS.names or ())[1:]:
        scalars[name] = windows[name]
    used = np.arange(ROWS) < windows["rows"][:, None]
    buckets = np.where(used, windows["buckets"][:, :ROWS], 0)
    filled = np.arange(PER_ROW + 1) < buckets[:, :, None]
    large = filled[:, FIRST_BLOCK_ROW:]
    return [
        _equal(scalars),
        _ragged(buckets[used], windows["rows"].astype(np.int64)),
        _ragged(windows["losses"][filled], filled.sum(axis=(1, 2))),
        *_block_pieces(pools, windows["blocks"][large], large.sum(axis=(1, 2))),
    ]


def _block_pieces(pools: Pools, slots: NDArray[np.int32], numbers: Integers) -> list[Pieces]:
    """Encode `numbers[i]` blocks of each model i: heads, classes with counts, and counts of these."""
    first = slots.astype(np.int64) * SLOT
    heads = np.zeros(len(slots), _BLOCK_HEAD)
    heads["sums"] = pools.blocks[first[:, None] + [0, *range(2, HEADER)]]
    heads["span"] = 1 << pools.blocks[first + 1]
    spans = heads["span"].astype(np.int64)
    cells = pools.blocks[_ranges(first + HEADER, 3 * spans)].reshape(-1, 3)
    counted = cells.any(axis=1)
    classes = _ranges(np.zeros_like(spans), spans)[counted].astype(np.int32)
    of_block = np.repeat(np.arange(len(slots)), spans)[counted]
    heads["counted"] = np.bincount(of_block, minlength=len(slots))
    model = np.repeat(np.arange(len(numbers)), numbers)
    of_model = np.bincount(model[of_block], minlength=len(numbers))
    return [_ragged(heads, numbers), _ragged(classes, of_model), _ragged(cells[counted], of_model)]


def _require_buckets(name: str, buckets: Integers, losses: NDArray[np.int32]) -> None:
    """Raise ValueError unless rows of buckets, without empty ones at their end, have losses that fit.

    `losses` are those of each bucket, row by row.
    """
    require(name, "number of rows", len(buckets), 0, ROWS)
    require_all(name, "number of buckets", buckets, 0, PER_ROW)
    if len(buckets):
        require(name, "number of the oldest buckets", buckets[-1], 1, PER_ROW)
    require_all(name, "losses", losses, 0, np.repeat(1 << np.arange(len(buckets)), buckets))


def _resume_window(pools: Pools, model: Any, window: int, width: int, name: str, reader: _Reader) -> int:
    """Restore an empty ADWIN window from its section; return the number of outcomes that are in no block."""
    scalars = reader.array(_SCALARS, 1)[0]
    into = model["windows"][window]
    model["pending"][window] = scalars["pending"]
    for field in (_SCALARS.names or ())[1:]:
        into[field] = scalars[field]
    buckets = reader.array(np.int32, int(scalars["rows"])).astype(np.int64)
    losses = reader.array(np.int32, int(np.clip(buckets, 0, PER_ROW).sum()))
    _require_buckets(name, buckets, losses)
    held = buckets << np.arange(len(buckets))
    require_equal(name, "outcomes in blocks", int(scalars["large"]), int(held[FIRST_BLOCK_ROW:].sum()))
    require(name, "outcomes since the last check", scalars["pending"], 0, pools.rings.shape[1])
    require_equal(name, "outcomes in buckets", int(held.sum() + scalars["pending"]), width)
    into["buckets"][: len(buckets)] = buckets
    filled = np.zeros((ROWS, PER_ROW + 1), np.bool_)
    filled[: len(buckets)] = np.arange(PER_ROW + 1) < buckets[:, None]
    into["losses"][filled] = losses
    large = filled[FIRST_BLOCK_ROW:]
    heads = reader.array(_BLOCK_HEAD, int(large.sum()))
    most = max(2, 1 << (int(model["classes"]) - 1).bit_length())
    spans = heads["span"].astype(np.int64)
    require_all(name, "span of a block", spans, 1, most)
    require_all(name, "classes of a block", heads["counted"], 0, spans)
    total = int(heads["counted"].sum())
    classes, counts = reader.array(np.int32, total), reader.array(np.int32, 3 * total).reshape(-1, 3)
    require_all(name, "class of a block", classes, 0, np.repeat(spans, heads["counted"]) - 1)
    slots: list[int] = []
    end = 0
    for head in heads:
        span, start, end = int(head["span"]), end, end + int(head["counted"])
        slots.append(pools.claim_block(span))
        first = slots[-1] * SLOT
        pools.blocks[[first, *range(first + 2, first + HEADER)]] = head["sums"]
        block = pools.blocks[first + HEADER : first + HEADER + 3 * span].reshape(-1, 3)
        block[classes[start:end]] = counts[start:end]
    into["blocks"][large] = slots
    return width - int(scalars["large"])


# Sections of a model's snapshot that hold its verdicts: one for each opponent.


def verdict_names(spec: MonitorsSpec, layout: Layout, utility: int) -> Iterator[str]:
    """Yield the section names of a model judged by the utility of this number, by opponent."""
    by = list(layout.costs)[utility - COSTS] if utility >= COSTS else utility
    costs = (by.costs, by.other) if isinstance(by, UtilitySpec) else by
    for opponent in layout.opponents:
        judged = opponent, costs, spec.verdict_outcomes, spec.confidence_delta
        yield fingerprint("verdict", judged, VERDICT, VERDICT_VERSION)


# Names of the sections of a model's snapshot: fingerprints of the estimators behind them.
#
# A fingerprint is of kind, parameters, record schema and version. A section is restored only into an
# estimator of the same fingerprint.


VERSION = 3
"""Incremented when the meaning of a section changes that has no version of its own."""
COLUMNS_VERSION = 4
"""Incremented when the meaning of a mechanism's totals, or of the outcomes stored with them, changes."""


def section_names(spec: MonitorsSpec, layout: Layout) -> dict[str, str]:
    """Describe the estimator behind each section in words, by section name."""
    shown = [spec.name for spec in (*layout.fading, *layout.sliding, *layout.windows)]
    shown += ["landmark"] * bool(layout.landmark)
    names = dict(zip(column_names(layout), shown, strict=True))
    for group, whose in enumerate(["", *(f" of {each.models}" for each in spec.detectors_by_model)]):
        for kind in KINDS:
            alike = [f"{d.name}{whose}" for d in spec.detectors if isinstance(d, kind.spec)]
            own = (name for name, field, _ in record_names(spec, group) if field == kind.name)
            names = dict(zip(own, alike, strict=True)) | names
    drift_weightings = (name for name, field, _ in record_names(spec) if field == "drift_weighted")
    names |= dict(
        zip(drift_weightings, (f"drift-weighted {w.name}" for w in spec.drift_weighted), strict=True)
    )
    for name, field, _ in record_names(spec):
        if field == "recovery":
            names[name] = f"recovery of the error of {layout.fading[0].name}"
    for u in dict.fromkeys(spec.utilities) or (UtilitySpec(),):
        for opponent, name in zip(
            layout.opponents, verdict_names(spec, layout, utility_index(layout, u)), strict=True
        ):
            names[name] = f"verdict {opponent} by {u.kind}"
    return names


def column_names(layout: Layout) -> Iterator[str]:
    """Yield the section name of every column, in their order."""
    for f in layout.fading:
        yield fingerprint("fading", f, FADING, COLUMNS_VERSION)
    for s in layout.sliding:
        yield fingerprint("sliding", s, layout.ring, COLUMNS_VERSION)
    for w in layout.windows:
        yield fingerprint("adwin", w, WINDOW, (COLUMNS_VERSION, layout.ring.str))
    if layout.landmark:
        yield fingerprint("landmark", LandmarkSpec(), None, COLUMNS_VERSION)


def record_names(spec: MonitorsSpec, detector_row: int = 0) -> Iterator[tuple[str, str, int]]:
    """Yield (section name, field of the model's record, index in it) of estimators stored in one such entry.

    `detector_row` is the number of the detectors' parameters (see `ModelTable.add_model`).
    """
    detectors = spec.detectors_by_model[detector_row - 1].detectors if detector_row else spec.detectors
    for kind in KINDS:
        alike = (d for d in detectors if isinstance(d, kind.spec))
        for j, detector in enumerate(alike):
            yield fingerprint(kind.name, detector, kind.state, kind.version), kind.name, j
    for j, watched in enumerate(label_drifts_of(spec.drift_weighted)):
        yield fingerprint("label_drift", watched, LABEL_DRIFT, VERSION), "label_drift", j
    for j, drift_weighted in enumerate(spec.drift_weighted):
        yield fingerprint("drift_weighted", drift_weighted, WEIGHTING, VERSION), "drift_weighted", j
    if watched_of(spec) is not None:
        yield fingerprint("recovery", recovery_identity(spec), RECOVERY, RECOVERY_VERSION), "recovery", 0


MODEL = f"model/{VERSION}"
SHADOWS = f"shadow/{SHADOW_VERSION}"
MAJORITY_LABELS = "labels/majority/4"
MAJORITY_COUNTED = np.dtype([("leader", "i8"), ("majority_unit", "f8")])
"""What is stored of the labels counted for the majority, beside the counts by class; see `LABEL_COUNTS`."""
BALANCED_LABELS = "labels/balanced/4"
BALANCED_COUNTED = np.dtype([("balanced_unit", "f8")])
"""The same for the balanced utility."""
HEADER_FIELDS = ("outcomes", "errors", "classes", "last", "last_missed")


def _label_counts(layout: Layout, utility: int) -> Iterator[tuple[str, np.dtype[np.void], int]]:
    """Yield (section name, record, column of class rows) of the labels counted for verdicts.

    Labels that neither an opponent nor the utility of this number needs are not counted: there is no
    section of them, so that they are counted anew once they are needed again.
    """
    if layout.parameters["counts_majority"][0]:
        yield MAJORITY_LABELS, MAJORITY_COUNTED, -EXTRA_COLUMNS
    if layout.opponents and utility == BALANCED:
        yield BALANCED_LABELS, BALANCED_COUNTED, 1 - EXTRA_COLUMNS


class _Names:
    """Names of the sections of models with one utility and one row of detectors' parameters."""

    def __init__(self, spec: MonitorsSpec, layout: Layout, utility: int, detector_row: int) -> None:
        self.columns = tuple(column_names(layout))
        self.records = tuple(record_names(spec, detector_row))
        self.verdicts = tuple(verdict_names(spec, layout, utility))
        self.labels = tuple(_label_counts(layout, utility))
        self.all = (
            MODEL,
            *self.columns,
            *(name for name, _, _ in self.records),
            *self.verdicts,
            *(name for name, *_ in self.labels),
            *([SHADOWS] if layout.shadow_classes else ()),
        )
        """All section names, in the order in which `Sections` yields their pieces."""


class Sections:
    """Encodes and restores the sections of models; section names are built once, from settings only.

    Parameters
    ----------
    spec, layout, pools
        Configuration, layout and arrays of the table.
    """

    def __init__(self, spec: MonitorsSpec, layout: Layout, pools: Pools) -> None:
        self._spec = spec
        self._layout = layout
        self._pools = pools
        self._names: dict[tuple[int, int], _Names] = {}

    def _names_of(self, utility: int, detector_row: int) -> _Names:
        names = self._names.get((utility, detector_row))
        if names is None:
            names = _Names(self._spec, self._layout, utility, detector_row)
            self._names[utility, detector_row] = names
        return names

    def take(self, rows: Integers) -> list[dict[str, bytes]]:
        """Encode all sections of the models in some rows, (m,)."""
        models = self._pools.models
        kinds = np.stack([models["utility"][rows], models["detector_row"][rows]], axis=1)
        found: list[dict[str, bytes]] = [{}] * len(rows)
        for utility, detector_row in np.unique(kinds, axis=0).tolist():
            members = np.flatnonzero((kinds == (utility, detector_row)).all(axis=1))
            names = self._names_of(utility, detector_row)
            pieces = self._pieces(rows[members], names)
            taken = map(dict, map(zip, repeat(names.all), zip(*pieces, strict=True)))
            for member, sections in zip(members.tolist(), taken, strict=True):
                found[member] = sections
        return found

    def _pieces(self, rows: Integers, names: _Names) -> Iterator[Pieces]:
        """Yield the pieces of every section, in the order of the names."""
        pools, layout = self._pools, self._layout
        chosen = taken(pools.models, rows)
        classes = chosen["classes"].astype(np.int64)
        cells = pools.class_counts[_ranges(chosen["class_counts"], classes)]
        yield _equal(np.stack([chosen[name].astype(np.int64) for name in HEADER_FIELDS], axis=1))
        for column in range(layout.columns):
            yield _together(self._column(rows, chosen, cells, column))
        for _, field, j in names.records:
            yield _equal(chosen[field][:, j])
        for j in range(len(names.verdicts)):
            yield _together([_equal(chosen["pace"][:, j]), _equal(chosen["verdicts"][:, j])])
        for _, record, column in names.labels:
            stored = np.zeros(len(rows), record)
            for name in record.names or ():
                stored[name] = chosen["labels"][:, 0][name]
            yield _together([_equal(stored), _ragged(cells[:, column], classes)])
        if layout.shadow_classes:
            yield _shadow_pieces(pools, chosen)

    def _column(
        self, rows: Integers, chosen: Records, cells: NDArray[np.float64], column: int
    ) -> list[Pieces]:
        """Encode the state of the mechanism with this column."""
        layout = self._layout
        counts = _ragged(
            cells[:, column : 3 * layout.columns : layout.columns], chosen["classes"].astype(np.int64)
        )
        pieces = [_equal(chosen["totals"][:, column, :SUMS]), counts]
        width = chosen["totals"][:, column, N]
        j = column - len(layout.fading)
        if j < 0:
            pieces.append(_equal(chosen["fading"][:, column]))
        elif j < len(layout.sliding):
            pieces.append(self._recent(rows, chosen, width.astype(np.int64)))
        elif (window := j - len(layout.sliding)) < len(layout.windows):
            pieces += _window_pieces(self._pools, chosen, window)
            small = width.astype(np.int64) - chosen["windows"]["large"][:, window]
            pieces.append(self._recent(rows, chosen, small))
        return pieces

    def _recent(self, rows: Integers, chosen: Records, numbers: Integers) -> Pieces:
        """Encode the last `numbers[i]` outcomes of each ring, oldest first, after the label before them."""
        rings = self._pools.rings
        size = rings.shape[1]
        preceded = chosen["outcomes"] > numbers
        counts = numbers + preceded
        indices = _ranges(chosen["head"] - counts, counts) % size
        entries = rings.reshape(-1)[np.repeat(rows * size, counts) + indices]
        labels_only = (np.cumsum(counts) - counts)[preceded]
        below = true_class_shift(entries.dtype)
        entries[labels_only] = entries[labels_only] >> below << below
        return _ragged(entries, counts)

    def restore(self, row: int, sections: Mapping[str, bytes]) -> None:
        """Restore every estimator of an empty row whose section is present; none without the section `MODEL`.

        Raises
        ------
        ValueError
            If the model has more classes than fit, or a section has another length than it must have, or
            numbers out of their range.
        """
        if MODEL not in sections:
            return
        layout, pools = self._layout, self._pools
        reader = _Reader(MODEL, sections[MODEL])
        header = dict(zip(HEADER_FIELDS, reader.array(np.int64, len(HEADER_FIELDS)).tolist(), strict=True))
        reader.end()
        classes, outcomes = header["classes"], header["outcomes"]
        if classes > layout.max_classes:
            most = layout.max_classes
            raise ValueError(f"a model with {classes} classes must fit max_classes, {most} with extras")
        require(MODEL, "classes", classes, int(outcomes > 0), layout.max_classes)
        require(MODEL, "outcomes", outcomes, 0, MOST_COUNTED)
        require(MODEL, "errors", header["errors"], 0, outcomes)
        require(MODEL, "last label", header["last"], 0, max(classes - 1, 0))
        require(MODEL, "last error", header["last_missed"], 0, 1)
        if classes:
            pools.claim_span(row, classes)
        model = pools.models[row]
        for name, value in header.items():
            model[name] = value
        model["waiting"]["settled"] = outcomes
        last = header["last"] << true_class_shift(layout.ring)
        recent = [np.array([last], layout.ring)] if outcomes else []
        names = self._names_of(int(model["utility"]), int(model["detector_row"]))
        start = int(model["class_counts"])
        cells = pools.class_counts[start : start + classes]
        for column, name in enumerate(names.columns):
            if name not in sections:
                continue
            reader = _Reader(name, sections[name])
            model["totals"][column, :SUMS] = reader.array(np.float64, SUMS)
            counts = reader.array(np.float64, 3 * classes).reshape(-1, 3)
            cells[:, column : 3 * layout.columns : layout.columns] = counts
            j = column - len(layout.fading)
            if j < 0:
                model["fading"][column] = reader.array(FADING, 1)[0]
            elif j < len(layout.sliding) + len(layout.windows):
                width = int(model["totals"][column, N])
                require(name, "outcomes", width, 0, outcomes)
                if (window := j - len(layout.sliding)) >= 0:
                    width = _resume_window(pools, model, window, width, name, reader)
                recent.append(_recent_of(reader, name, layout, width + (outcomes > width), classes))
            reader.end()
        # the longest last: the oldest entry of each has a label only, and must not overwrite an outcome
        for entries in sorted(recent, key=len):
            pools.rings[row, pools.rings.shape[1] - len(entries) :] = entries
        for name, field, j in names.records:
            if name in sections:
                record = _one(name, sections[name], model[field].dtype)
                _require_record(name, record)
                model[field][j] = record
        for j, name in enumerate(names.verdicts):
            if name in sections:
                reader = _Reader(name, sections[name])
                model["pace"][j] = reader.array(PACE, 1)[0]
                model["verdicts"][j] = reader.array(VERDICT, 1)[0]
                reader.end()
                require_steps(name, model["pace"][j], model["verdicts"][j], outcomes)
        for name, record, column in names.labels:
            if name not in sections:
                continue
            reader = _Reader(name, sections[name])
            stored = reader.array(record, 1)[0]
            cells[:, column] = reader.array(np.float64, classes)
            reader.end()
            labels = model["labels"][0]
            for field in record.names or ():
                labels[field] = stored[field]
            if record is MAJORITY_COUNTED:
                require(name, "leader", int(stored["leader"]), 0, classes)
                if stored["leader"]:
                    labels["most"] = cells[stored["leader"] - 1, column]
        if layout.shadow_classes:
            _resume_shadow(pools, model, layout.shadow_classes, sections.get(SHADOWS))


def _recent_of(reader: _Reader, name: str, layout: Layout, number: int, classes: int) -> NDArray[Any]:
    """Read the last outcomes of a window, and the label before them; raise ValueError for other numbers."""
    entries = reader.rest(layout.ring)
    require_equal(name, "number of latest outcomes", len(entries), number)
    require(name, "number of latest outcomes", number, 0, layout.ring_size)
    below = true_class_shift(layout.ring)
    wide = entries.astype(np.int64)
    require_all(name, "label", wide >> below, 0, classes - 1)
    require_all(name, "prediction", (wide >> FLAGS) & ((1 << (below - FLAGS)) - 1), 0, classes - 1)
    return entries


def _require_record(name: str, record: np.void) -> None:
    """Raise ValueError unless the numbers of an estimator's record that lead to memory fit."""
    fields = record.dtype.names or ()
    if "ring" in fields:
        require(name, "position in the ring of losses", record["head"], 0, MOST - 1)
    if "signals" in fields:
        for signal in record["signals"]:
            require(name, "number of rows", signal["rows"], 0, ROWS)
            buckets = signal["buckets"][: signal["rows"]].astype(np.int64)
            require_all(name, "number of buckets", signal["buckets"], 0, PER_ROW)
            filled = np.arange(PER_ROW + 1) < buckets[:, None]
            _require_buckets(name, buckets, signal["losses"][: len(buckets)][filled])
            require_equal(
                name, "values in buckets", int(signal["n"]), int((buckets << np.arange(len(buckets))).sum())
            )
            require(name, "values since the last check", signal["waiting"], 0, CLOCK - 1)


def _together(pieces: Sequence[Pieces]) -> Pieces:
    """Concatenate the pieces of each model."""
    return list(map(b"".join, zip(*pieces, strict=True)))


def _one(name: str, section: bytes, dtype: np.dtype[Any]) -> Any:
    reader = _Reader(name, section)
    found = reader.array(dtype, 1)[0]
    reader.end()
    return found
