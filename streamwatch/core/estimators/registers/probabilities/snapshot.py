"""State of one model's probabilities as bytes; equal states give equal bytes."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.dependence import DEPENDENCE
from streamwatch.core.estimators.forgetting.mechanisms import LIMIT
from streamwatch.core.estimators.registers.probabilities.observe import (
    SQUARES,
    STATE,
    SUMS,
    THRESHOLDS,
    WEIGHT,
    ModelState,
    empty,
)
from streamwatch.core.estimators.registers.probabilities.spec import ProbabilitiesSpec
from streamwatch.core.ranges import MOST_COUNTED, require, require_all, require_equal

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
