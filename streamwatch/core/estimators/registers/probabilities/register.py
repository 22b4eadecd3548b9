"""Register of probabilities: snapshots and measures of models that predict with scores; cheap for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.dependence import DEPENDENCE
from streamwatch.core.estimators.entries import fingerprint
from streamwatch.core.estimators.forgetting.mechanisms import LIMIT
from streamwatch.core.estimators.names import Batch, Details, Slice
from streamwatch.core.estimators.registers.probabilities import METRICS, ProbabilitiesSpec
from streamwatch.core.estimators.registers.probabilities.observe import (
    ALPHA,
    BINS,
    BRIER,
    HITS,
    LOG_LOSS,
    MEAN_SCORE,
    NEGATIVES,
    POSITIVES,
    SQUARES,
    STATE,
    SUMS,
    THRESHOLDS,
    VERSION,
    WEIGHT,
    Floats,
    ModelState,
    empty,
    observe,
)
from streamwatch.core.metrics.series import Sample
from streamwatch.core.ranges import MOST_COUNTED, require, require_all, require_equal

# State of one model's probabilities as bytes; equal states give equal bytes.


_RINGS: Final = ("head", "auc_head")
"""Fields with the start of a ring; left out, as snapshots hold rings from the oldest entry on."""
_WINDOW: Final = ("n", "errors", "unchecked", "rows")


class _Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """Numbers of `STATE` in order, without those in `_RINGS`, and arrays as bytes."""

    counts: list[int]
    faded: list[float]
    landmark: bytes
    fading: bytes
    windows: list[tuple[list[int], list[int], bytes, bytes, bytes]]
    """Per mechanism: fields `_WINDOW`, buckets per row, losses and sums per bucket, dependence."""
    ring: bytes
    labels: bytes
    scores: bytes
    reliability: bytes
    curve: bytes


_ENCODER = msgspec.msgpack.Encoder()
_NAME: Final = "probabilities"
_LEAST_UNIT: Final = 1e-300
_MOST: Final = LIMIT * MOST_COUNTED * 1_024.0
"""Largest sum of losses, which are below 1,024 each, in the largest unit."""
_DECODER = msgspec.msgpack.Decoder(_Snapshot)
_FADED: Final = ("unit", "total")
_COUNTS = tuple(name for name in STATE.names or () if name not in {*_RINGS, *_FADED})


def latest(ring: NDArray[Any], head: int, held: int) -> NDArray[Any]:
    """Contents of a ring, oldest first; `head` is the position of the next entry."""
    return np.roll(ring, -head, axis=0)[len(ring) - held :]


def encode(kept: ModelState) -> bytes:
    """Encode a state."""
    state = kept.state[0]
    classes = int(state["classes"])
    auc_head, auc_held = int(state["auc_head"]), int(state["auc_held"])
    return _ENCODER.encode(
        _Snapshot(
            [int(state[name]) for name in _COUNTS],
            [float(state[name]) for name in _FADED],
            kept.landmark.tobytes(),
            kept.fading.tobytes(),
            [_window_state(window) for window in kept.windows],
            latest(kept.ring, int(state["head"]), int(state["held"])).tobytes(),
            latest(kept.labels, auc_head, auc_held).tobytes(),
            np.ascontiguousarray(latest(kept.scores, auc_head, auc_held)[:, :classes]).tobytes(),
            kept.reliability.tobytes(),
            kept.curve[:classes].tobytes(),
        )
    )


def decode(snapshot: bytes, spec: ProbabilitiesSpec) -> ModelState:
    """Decode a state encoded under the same specification; raises ValueError if it does not fit."""
    read = _DECODER.decode(snapshot)
    kept = empty(spec)
    state = kept.state
    for name, value in zip((*_COUNTS, *_FADED), (*read.counts, *read.faded), strict=True):
        state[name] = value
    classes = int(state["classes"][0])
    held, auc_held = int(state["held"][0]), int(state["auc_held"][0])
    limits = (classes, spec.max_auc_classes), (held, len(kept.ring)), (auc_held, len(kept.labels))
    if not all(0 <= number <= most for number, most in limits):
        raise ValueError("the state of probabilities must fit their settings")
    kept.make_room(classes, spec.max_auc_classes)
    kept.landmark[:] = np.frombuffer(read.landmark)
    kept.fading[:] = np.frombuffer(read.fading).reshape(kept.fading.shape)
    for window, saved in zip(kept.windows, read.windows, strict=True):
        _restore_window(window, *saved)
    kept.ring[:held] = np.frombuffer(read.ring).reshape(held, SUMS)
    kept.labels[:auc_held] = np.frombuffer(read.labels, np.int32)
    require_all(_NAME, "label", kept.labels[:auc_held], -1, classes - 1)
    kept.scores[:auc_held, :classes] = np.frombuffer(read.scores).reshape(auc_held, classes)
    kept.reliability[:] = np.frombuffer(read.reliability).reshape(kept.reliability.shape)
    kept.curve[:classes] = np.frombuffer(read.curve).reshape(classes, THRESHOLDS, 2)
    _require_sums(kept)
    state["head"] = held % max(1, len(kept.ring))
    state["auc_head"] = auc_held % max(1, len(kept.labels))
    return kept


def _require_sums(kept: ModelState) -> None:
    """Raise ValueError unless all sums are sums of weights or of losses."""
    require(_NAME, "unit", kept.state["unit"][0], _LEAST_UNIT, _MOST)
    of_windows = kept.windows["sums"]
    for sums in (kept.landmark, kept.fading, kept.ring, of_windows, kept.reliability, kept.curve):
        require_all(_NAME, "sum", sums, 0.0, _MOST)
    weighed = kept.fading[kept.fading[:, WEIGHT] > 0.0]
    require_all(_NAME, "sum of squares", weighed[:, SQUARES], _LEAST_UNIT, _MOST)


def _window_state(window: np.void) -> tuple[list[int], list[int], bytes, bytes, bytes]:
    buckets = window["buckets"][: int(window["rows"])].tolist()
    used = [(r, k) for r, number in enumerate(buckets) for k in range(number)]
    rows, columns = [r for r, _ in used], [k for _, k in used]
    numbers = [int(window[name]) for name in _WINDOW]
    of_buckets = [window[name][rows, columns].tobytes() for name in ("losses", "sums")]
    return numbers, buckets, of_buckets[0], of_buckets[1], window["dependence"].tobytes()


def _restore_window(
    window: np.void, numbers: list[int], buckets: list[int], losses: bytes, sums: bytes, dependence: bytes
) -> None:
    window["dependence"][:] = np.frombuffer(dependence, DEPENDENCE)
    for name, value in zip(_WINDOW, numbers, strict=True):
        window[name] = value
    most_rows, most = window["losses"].shape[0], window["losses"].shape[1] - 1  # one is free for a new bucket
    if not len(buckets) == int(window["rows"]) <= most_rows or not all(0 <= n <= most for n in buckets):
        raise ValueError(
            f"expected up to {most} buckets in up to {most_rows} rows of a window, got {buckets}"
        )
    window["buckets"][: len(buckets)] = buckets
    used = [(r, k) for r, number in enumerate(buckets) for k in range(number)]
    rows, columns = [r for r, _ in used], [k for _, k in used]
    of_buckets = np.frombuffer(losses, np.int32)
    require_all(_NAME, "losses of a bucket", of_buckets, 0, 1 << np.array(rows, np.int64))
    require_equal(_NAME, "outcomes of a window", int(window["n"]), sum(1 << r for r in rows))
    require(_NAME, "errors of a window", window["errors"], 0, int(window["n"]))
    if buckets:
        require(_NAME, "number of the oldest buckets", buckets[-1], 1, most)
    window["losses"][rows, columns] = of_buckets
    window["sums"][rows, columns] = np.frombuffer(sums).reshape(len(used), SUMS)


# Measures of one model's scores: losses, calibration, area under the curve, threshold curves.
#
# Undefined values are NaN: losses, and errors of bins, below a weight of 0.05 outcomes; an area if the
# window does not have a label of the class and one of another.


PRESENT: Final = 0.05
"""Least weight in outcomes for a value to be defined."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Losses under one mechanism."""

    n_eff: float
    """Effective sample size (Σw)²/Σw² of the outcomes whose scores were usable; 0 below a weight of 0.05."""
    log_loss: float
    """Mean of −ln s_y."""
    brier: float
    """Mean of Σ_k (s_k − 1[y=k])²."""


def losses(kept: ModelState, spec: ProbabilitiesSpec) -> list[Losses]:
    """Losses under each mechanism, in the order of `spec.mechanisms`."""
    found = [_losses(kept.landmark, kept.landmark[WEIGHT])] if spec.landmark else []
    found += [_losses(sums, sums[SQUARES]) for sums in kept.fading]
    ring = latest(kept.ring, int(kept.state["head"][0]), int(kept.state["held"][0]))
    for size in spec.sizes:
        sums = ring[-size:].sum(axis=0)
        found.append(_losses(sums, sums[WEIGHT]))
    for window in kept.windows:
        sums = np.zeros(SUMS)
        for r in range(int(window["rows"])):
            sums += window["sums"][r, : int(window["buckets"][r])].sum(axis=0)
        found.append(_losses(sums, sums[WEIGHT]))
    return found


def _losses(sums: Floats, squares: float) -> Losses:
    weight = float(sums[WEIGHT])
    if weight < PRESENT:
        return Losses(0.0, np.nan, np.nan)
    return Losses(weight**2 / float(squares), float(sums[LOG_LOSS]) / weight, float(sums[BRIER]) / weight)


@dataclass(frozen=True, slots=True)
class Reliability:
    """Bins of the reliability diagram, each array (BINS,); faded by `observe.ALPHA`."""

    weight: Floats
    """Number of outcomes whose ŷ had a score in the bin."""
    mean_score: Floats
    hit_share: Floats
    """Share of hits; it and `mean_score` are NaN where the weight is below 0.05."""

    @property
    def error(self) -> float:
        """Expected calibration error, Σ(n_b/n)·|mean score − hit share|; NaN if no bin has enough weight."""
        used = self.weight >= PRESENT
        if not used.any():
            return np.nan
        gaps = np.abs(self.mean_score[used] - self.hit_share[used])
        return float((self.weight[used] * gaps).sum() / self.weight[used].sum())


def reliability(kept: ModelState) -> Reliability:
    """Compare the score of ŷ with the share of hits, binned by that score."""
    bins = kept.reliability / float(kept.state["unit"][0])
    weight = bins[:, WEIGHT]
    used = np.where(weight >= PRESENT, weight, np.nan)
    return Reliability(weight, bins[:, MEAN_SCORE] / used, bins[:, HITS] / used)


def areas(kept: ModelState) -> Floats:
    """Area under the ROC curve of each class against the rest, over the window; ties count half.

    Shape (classes,), by local index; NaN for a class without a label of its own or of another in the window.
    The share of pairs of a label of the class and one of another in which the first has the higher score
    (Mann, Whitney 1947; over a window: Brzezinski, Stefanowski 2017).
    """
    head, held = int(kept.state["auc_head"][0]), int(kept.state["auc_held"][0])
    classes = int(kept.state["classes"][0])
    labels = latest(kept.labels, head, held)
    found = np.full(classes, np.nan)
    if not held:
        return found
    scores = latest(kept.scores, head, held)
    for k in range(classes):
        own = labels == k
        positives, negatives = np.sort(scores[own, k]), np.sort(scores[~own, k])
        if len(positives) and len(negatives):
            below = np.searchsorted(negatives, positives, "left")
            up_to = np.searchsorted(negatives, positives, "right")
            found[k] = int((below + up_to).sum()) / (2 * len(positives) * len(negatives))
    return found


def mean_area(kept: ModelState) -> float:
    """Mean of the defined areas of the classes; NaN if there are none."""
    found = areas(kept)
    return float(found[~np.isnan(found)].mean()) if (~np.isnan(found)).any() else np.nan


@dataclass(frozen=True, slots=True)
class ThresholdCurve:
    """Precision and recall of one class if it were predicted from a given score on.

    Each array (THRESHOLDS,), for the thresholds j/100; faded by `observe.ALPHA`.
    """

    precision: Floats
    """NaN where fewer than 0.05 outcomes have such a score."""
    recall: Floats
    """NaN with fewer than 0.05 labels of the class."""


def threshold_curve(kept: ModelState, k: int) -> ThresholdCurve:
    """Curve of the class with local index k."""
    counts = kept.curve[k] / float(kept.state["unit"][0])
    above = counts[::-1].cumsum(axis=0)[::-1]
    predicted = above[:, NEGATIVES] + above[:, POSITIVES]
    own = float(above[0, POSITIVES])
    precision = np.full(THRESHOLDS, np.nan)
    np.divide(above[:, POSITIVES], predicted, out=precision, where=predicted >= PRESENT)
    recall = above[:, POSITIVES] / own if own >= PRESENT else np.full(THRESHOLDS, np.nan)
    return ThresholdCurve(precision, recall)


# JSON document of a model's probabilities for the API: both diagrams, and areas by class.


_DIGITS = 6


def document(kept: ModelState, classes: Sequence[str]) -> Mapping[str, object]:
    """Build the document of a state; undefined values are null.

    `classes` are the names of the model's classes by local index.
    """
    state = kept.state[0]
    diagram = reliability(kept)
    known = classes[: int(state["classes"])]
    by_class = areas(kept).tolist()
    curves = {name: threshold_curve(kept, k) for k, name in enumerate(known)}
    return {
        "scored_outcomes": int(state["scored"]),
        "alpha": ALPHA,
        "calibration_error": _number(diagram.error),
        "reliability": [
            {"from": j / BINS, "to": (j + 1) / BINS, "outcomes": w, "mean_score": s, "hit_share": h}
            for j, (w, s, h) in enumerate(
                zip(
                    _numbers(diagram.weight),
                    _numbers(diagram.mean_score),
                    _numbers(diagram.hit_share),
                    strict=True,
                )
            )
        ],
        "auc": _number(mean_area(kept)),
        "auc_outcomes": int(state["auc_held"]),
        "auc_by_class": {name: _number(area) for name, area in zip(known, by_class, strict=True)},
        "thresholds": [j / THRESHOLDS for j in range(THRESHOLDS)],
        "curves": {
            name: {"precision": _numbers(curve.precision), "recall": _numbers(curve.recall)}
            for name, curve in curves.items()
        },
    }


def _number(value: float) -> float | None:
    return round(value, _DIGITS) if value == value else None  # noqa: PLR0124 - false for NaN


def _numbers(values: Floats) -> list[float | None]:
    return [_number(value) for value in np.asarray(values).tolist()]


# Register of probabilities: measures of every model that predicts with scores; cheap for others.


_UNUSABLE: Final = ("invalid", "label_absent")


class Probabilities:
    """Measures of probabilities of up to `capacity` models; memory is used by models with scores only."""

    __slots__ = ("_adwins", "_alphas", "_kept", "_losses", "_scored", "_spec")

    def __init__(self, spec: ProbabilitiesSpec, capacity: int) -> None:
        self._spec = spec
        self._kept: dict[int, ModelState] = {}
        self._scored = np.zeros(capacity, np.bool_)
        self._alphas = np.array(spec.alphas, np.float64)
        adwins = [(*numbers, dependence == "followed") for *numbers, dependence in spec.windows]
        self._adwins = np.array(adwins, np.float64).reshape(-1, 4)
        self._losses = np.zeros(SUMS)

    @property
    def section(self) -> str:
        """Name of the register's section in a model's snapshot."""
        return fingerprint("probabilities", self._spec, None, VERSION)

    @property
    def title(self) -> str:
        """Description of the section."""
        return "log loss, Brier score, calibration, area under the curve and threshold curves"

    def observe(self, batch: Batch) -> None:
        """Evaluate outcomes of several models, in order."""
        scores = batch.scores
        if not len(scores.offsets) and not self._kept:
            return
        if len(scores.offsets):
            self._scored[batch.rows[np.diff(scores.offsets) > 0]] = True
        chosen = np.flatnonzero(self._scored[batch.rows])
        if not len(chosen):
            return
        offsets = scores.offsets if len(scores.offsets) else np.zeros(len(batch.rows) + 1, np.int64)
        chosen = chosen[np.argsort(batch.rows[chosen], kind="stable")]
        rows = batch.rows[chosen]
        begins = np.flatnonzero(np.diff(rows, prepend=-1))
        highest = _highest(batch)
        for positions in np.split(chosen, begins[1:]):
            kept = self._kept_of(int(batch.rows[positions[0]]))
            kept.make_room(int(highest[positions].max()) + 1, self._spec.max_auc_classes)
            observe(
                kept.state,
                kept.landmark,
                kept.fading,
                kept.windows,
                kept.ring,
                kept.labels,
                kept.scores,
                kept.reliability,
                kept.curve,
                self._alphas,
                self._adwins,
                self._losses,
                positions,
                batch.true_class,
                batch.predicted_class,
                offsets,
                scores.classes,
                scores.values,
            )

    def clear(self, row: int) -> None:
        """Reset a row."""
        self._kept.pop(row, None)
        self._scored[row] = False

    def snapshots(self, rows: NDArray[np.int64]) -> Sequence[bytes]:
        """Encode the states of some rows, empty for a model without scores.

        The same outcomes give the same bytes.
        """
        return [encode(self._kept[row]) if row in self._kept else b"" for row in rows.tolist()]

    def restore(self, row: int, state: bytes) -> None:
        """Set a cleared row to a snapshot; raises ValueError for bytes that are not one."""
        if state:
            self._kept[row] = decode(state, self._spec)
            self._scored[row] = True

    def series(self, chosen: Sequence[Slice]) -> Mapping[str, Sequence[Sample]]:
        """Samples of some models."""
        samples: dict[str, list[Sample]] = {metric.name: [] for metric in METRICS}
        for each in chosen:
            kept = self._kept.get(each.row)
            if kept is None:
                continue
            model, state = each.model, kept.state[0]
            samples["scored_outcomes_total"].append(((model,), float(state["scored"])))
            samples["scores_unnormalized_total"].append(((model,), float(state["unnormalised"])))
            for reason in _UNUSABLE:
                samples["scores_unusable_total"].append(((model, reason), float(state[reason])))
            for name, found in zip(self._spec.mechanisms, losses(kept, self._spec), strict=True):
                key = (name, model)
                _put(samples["log_loss"], key, found.log_loss)
                _put(samples["brier_score"], key, found.brier)
                _put(samples["scored_effective_sample_size"], key, found.n_eff)
            _put(samples["calibration_error_ratio"], (model,), reliability(kept).error)
            _put(samples["auc_ratio"], (model,), mean_area(kept))
        return samples

    def details(self, chosen: Sequence[Slice]) -> Details:
        """Diagrams of models under the key `probabilities`; empty for a model without scores."""
        return [self._details(one) for one in chosen].__getitem__

    def _details(self, one: Slice) -> Mapping[str, object]:
        kept = self._kept.get(one.row)
        return {} if kept is None else {"probabilities": document(kept, list(one.classes))}

    def _kept_of(self, row: int) -> ModelState:
        kept = self._kept.get(row)
        if kept is None:
            kept = self._kept[row] = empty(self._spec)
        return kept


def _highest(batch: Batch) -> NDArray[np.int32]:
    """Highest local class among label and scores of each outcome with scores; −1 for the others."""
    highest = np.full(len(batch.rows), -1, np.int32)
    offsets, classes, _ = batch.scores
    if len(offsets):
        scored = np.flatnonzero(np.diff(offsets))
        named = np.maximum.reduceat(classes, offsets[scored]) if len(scored) else classes[:0]
        highest[scored] = np.maximum(named, batch.true_class[scored])
    return highest


def _put(samples: list[Sample], key: tuple[str, ...], value: float) -> None:
    if value == value:  # noqa: PLR0124 - false for NaN
        samples.append((key, value))
