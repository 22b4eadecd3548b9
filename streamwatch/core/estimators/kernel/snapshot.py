"""State of one model's estimators as bytes, independent of the model's row.

Each estimator has a section, named by its fingerprint (`section_names`). Equal states give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.estimators.fingerprints import fingerprint
from streamwatch.core.estimators.forgetting.adwin import FIRST_BLOCK_ROW, WINDOW
from streamwatch.core.estimators.forgetting.drift_weighted import LABEL_DRIFT, WEIGHTING
from streamwatch.core.estimators.forgetting.mechanisms import FADING
from streamwatch.core.estimators.kernel.layout import Layout, label_drifts_of, utility_index
from streamwatch.core.estimators.kernel.pools import Pools
from streamwatch.core.estimators.kernel.shadow import VERSION as SHADOW_VERSION
from streamwatch.core.estimators.kernel.shadow import shadow_words
from streamwatch.core.estimators.memory import HEADER, SLOT, true_class_shift
from streamwatch.core.estimators.recovery import RECOVERY, recovery_identity, watched_of
from streamwatch.core.estimators.recovery import VERSION as RECOVERY_VERSION
from streamwatch.core.estimators.verdicts.detector import COSTS
from streamwatch.core.estimators.verdicts.leads import EXTRA_COLUMNS, LABEL_COUNTS
from streamwatch.core.estimators.verdicts.state import PACE, VERDICT
from streamwatch.core.estimators.verdicts.state import VERSION as VERDICT_VERSION
from streamwatch.core.specs import LandmarkSpec, MonitorsSpec, UtilitySpec

# State of a model's shadow classifiers as plain values, independent of position and size of their block.


First: TypeAlias = tuple[float, int, int]
State: TypeAlias = tuple[float, First, bytes, bytes]
"""Unit; count and classes of the first outcome; indices of rows with counts; their counts and leaders."""


def _rows(pools: Pools, shadow: Any, classes: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """View a model's block as rows of counts plus leader.

    Also return the rows of its first `classes` classes.
    """
    span, start = int(shadow["span"]), int(shadow["start"])
    block = pools.shadows[start : start + shadow_words(span)].reshape(-1, span + 1)
    k = np.arange(classes)
    pairs = 1 + span + (k[:, None] * span + k[None, :]).ravel()
    return block, np.concatenate([[0], 1 + k, pairs])


def _first_leaders(classes: int) -> NDArray[np.int64]:
    """Leaders of rows without counts: class 0, the previous label, the prediction."""
    k = np.arange(classes)
    return np.concatenate([[0], k, np.repeat(k, classes)])


def shadow_state(pools: Pools, model: Any) -> State | None:
    """State from which `resume_shadow` continues; None if the shadow classifiers have stopped."""
    shadow, classes = model["shadow"][0], int(model["classes"])
    if shadow["stopped"]:
        return None
    first = float(shadow["first"]), int(shadow["first_truth"]), int(shadow["first_predicted"])
    if not classes:
        return float(shadow["unit"]), first, b"", b""
    block, rows = _rows(pools, shadow, classes)
    counts = block[rows, :classes]
    leaders = block[rows, int(shadow["span"])]
    written = np.flatnonzero((counts != 0.0).any(axis=1) | (leaders != _first_leaders(classes)))
    body = np.column_stack([counts[written], leaders[written]])
    return float(shadow["unit"]), first, written.astype(np.int32).tobytes(), body.tobytes()


def resume_shadow(pools: Pools, model: Any, most: int, state: State | None) -> None:
    """Continue from a state, in the block the model already owns; without a state they start empty."""
    shadow, classes = model["shadow"][0], int(model["classes"])
    if classes > most:
        shadow["stopped"] = 1
    elif state is not None and classes:
        unit, first, written, body = state
        block, rows = _rows(pools, shadow, classes)
        chosen = rows[np.frombuffer(written, np.int32)]
        values = np.frombuffer(body).reshape(-1, classes + 1)
        block[chosen, :classes] = values[:, :classes]
        block[chosen, int(shadow["span"])] = values[:, classes]
        shadow["unit"] = unit
        shadow["first"], shadow["first_truth"], shadow["first_predicted"] = first


def confusion(pools: Pools, row: int) -> NDArray[np.float64] | None:
    """Faded counts of (true, predicted) of the model in a row, in units of outcomes.

    Shape (K, K) by local class index, K the number of classes of the model; an outcome of age a counts
    .999^a. None before the first outcome, without shadow classifiers and once they have stopped.
    """
    model = pools.models[row]
    classes = int(model["classes"])
    if not classes or not len(model["shadow"]) or model["shadow"][0]["stopped"]:
        return None
    shadow = model["shadow"][0]
    block, rows = _rows(pools, shadow, classes)
    cube = block[rows[1 + classes :], :classes].reshape(
        classes, classes, classes
    )  # axes: predicted, previous, true
    counts = np.ascontiguousarray(cube.sum(axis=1).T)
    counts[int(shadow["first_truth"]), int(shadow["first_predicted"])] += shadow["first"]
    return counts / shadow["unit"]


# State of ADWIN windows as values, independent of where their blocks are.


SCALARS = ("large", "last_drift", "kept", "statistic", "threshold", "before", "after", "rows")


def window_state(pools: Pools, window: Any) -> list[Any]:
    """(scalars, losses of buckets by row, blocks of large buckets) of a window."""
    buckets = window["buckets"][: int(window["rows"])].tolist()
    losses = [window["losses"][r, :k].tolist() for r, k in enumerate(buckets)]
    blocks = [
        _block(pools, int(slot))
        for r, k in enumerate(buckets[FIRST_BLOCK_ROW:])
        for slot in window["blocks"][r, :k]
    ]
    return [[window[name].item() for name in SCALARS], losses, blocks]


def resume_window(
    pools: Pools, window: Any, scalars: list[Any], losses: list[Any], blocks: list[Any]
) -> None:
    """Restore an empty window from what `window_state` returned."""
    for name, value in zip(SCALARS, scalars, strict=True):
        window[name] = value
    slots = iter([_restore_block(pools, *block) for block in blocks])
    for r, row in enumerate(losses):
        window["buckets"][r] = len(row)
        window["losses"][r, : len(row)] = row
        if r >= FIRST_BLOCK_ROW:
            window["blocks"][r - FIRST_BLOCK_ROW, : len(row)] = [next(slots) for _ in row]


def _block(pools: Pools, slot: int) -> tuple[list[int], int, bytes, bytes]:
    """(repeats and flags, classes of the block, classes with counts, their counts) of one block."""
    first = slot * SLOT
    span = 1 << int(pools.blocks[first + 1])
    counts = pools.blocks[first + HEADER : first + HEADER + 3 * span].reshape(-1, 3)
    counted = np.flatnonzero(counts.any(axis=1)).astype(np.int32)
    sums = pools.blocks[[first, *range(first + 2, first + HEADER)]].tolist()
    return sums, span, counted.tobytes(), counts[counted].tobytes()


def _restore_block(pools: Pools, sums: list[int], span: int, counted: bytes, counts: bytes) -> int:
    slot = pools.claim_block(span)
    first = slot * SLOT
    pools.blocks[[first, *range(first + 2, first + HEADER)]] = sums
    block = pools.blocks[first + HEADER : first + HEADER + 3 * span].reshape(-1, 3)
    block[np.frombuffer(counted, np.int32)] = np.frombuffer(counts, np.int32).reshape(-1, 3)
    return slot


# Sections of a model's snapshot that hold its verdicts: one for each opponent.


def verdict_names(spec: MonitorsSpec, layout: Layout, utility: int) -> Iterator[str]:
    """Yield the section names of a model judged by the utility of this number, by opponent."""
    for judged in _judged(spec, layout, utility):
        yield fingerprint("verdict", judged, VERDICT, VERDICT_VERSION)


def verdict_sections(spec: MonitorsSpec, layout: Layout, model: Any) -> dict[str, bytes]:
    """Encode the verdicts in a model's record."""
    names = verdict_names(spec, layout, int(model["utility"]))
    return {name: model["pace"][j].tobytes() + model["verdicts"][j].tobytes() for j, name in enumerate(names)}


def restore_verdicts(spec: MonitorsSpec, layout: Layout, model: Any, sections: Mapping[str, bytes]) -> None:
    """Restore the verdicts whose sections are present."""
    for j, name in enumerate(verdict_names(spec, layout, int(model["utility"]))):
        if name in sections:
            model["pace"][j] = np.frombuffer(sections[name], PACE, 1)[0]
            model["verdicts"][j] = np.frombuffer(sections[name], VERDICT, 1, PACE.itemsize)[0]


def _judged(spec: MonitorsSpec, layout: Layout, utility: int) -> Iterator[object]:
    """Yield what the verdicts of a model judged by this utility depend on, by opponent."""
    by = list(layout.costs)[utility - COSTS] if utility >= COSTS else utility
    costs = (by.costs, by.other) if isinstance(by, UtilitySpec) else by
    for opponent in layout.opponents:
        yield opponent, costs, spec.verdict_outcomes, spec.confidence_delta


# Names of the sections of a model's snapshot: fingerprints of the estimators behind them.
#
# A fingerprint is of kind, parameters, record schema and version. A section is restored only into an
# estimator of the same fingerprint.


VERSION = 2
"""Incremented when the meaning of a section of `snapshot` changes."""
COLUMNS_VERSION = 3
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
    """Yield (section name, field of the model's record, index in the field), where that is a whole estimator.

    `detector_row` is the number of the detectors' parameters (see `ModelTable.add_model`).
    """
    detectors = spec.detectors_by_model[detector_row - 1].detectors if detector_row else spec.detectors
    for kind in KINDS:
        alike = (d for d in detectors if isinstance(d, kind.spec))
        for j, detector in enumerate(alike):
            yield fingerprint(kind.name, detector, kind.state, kind.version), kind.name, j
    for j, delta in enumerate(label_drifts_of(spec.drift_weighted)):
        yield fingerprint("label_drift", delta, LABEL_DRIFT, VERSION), "label_drift", j
    for j, drift_weighted in enumerate(spec.drift_weighted):
        yield fingerprint("drift_weighted", drift_weighted, WEIGHTING, VERSION), "drift_weighted", j
    if watched_of(spec) is not None:
        yield fingerprint("recovery", recovery_identity(spec), RECOVERY, RECOVERY_VERSION), "recovery", 0


MODEL = f"model/{VERSION}"
SHADOWS = f"shadow/{SHADOW_VERSION}"
LABELS_COUNTED = "labels/2"
HEADER_FIELDS = ("outcomes", "errors", "classes", "last", "last_missed")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def take_snapshot(spec: MonitorsSpec, layout: Layout, pools: Pools, row: int) -> dict[str, bytes]:
    """Encode all sections of the model in a row."""
    model = pools.models[row]
    classes = int(model["classes"])
    sections = {
        MODEL: _encode([int(model[name]) for name in HEADER_FIELDS]),
    }
    for column, name in enumerate(column_names(layout)):
        counts = _class_column(layout, pools, row, column)
        body: list[Any] = [model["totals"][:, column].tobytes(), counts[:classes].tobytes()]
        j = column - len(layout.fading)
        if j < 0:
            body.append(model["fading"][column].tobytes())
        elif j < len(layout.sliding):
            body.append(_recent(pools, row, int(model["totals"][0, column])))
        elif j - len(layout.sliding) < len(layout.windows):
            width = int(model["totals"][0, column])
            window = model["windows"][j - len(layout.sliding)]
            body += [int(model["pending"][j - len(layout.sliding)]), *window_state(pools, window)]
            body.append(_recent(pools, row, width - int(window["large"])))
        sections[name] = _encode(body)
    for name, field, j in record_names(spec, int(model["detector_row"])):
        sections[name] = model[field][j].tobytes()
    sections |= verdict_sections(spec, layout, model)
    if layout.opponents:
        counts = _label_counts(pools, row)[:classes]
        sections[LABELS_COUNTED] = _encode([model["labels"].tobytes(), counts.tobytes()])
    if layout.shadow_classes:
        sections[SHADOWS] = _encode(shadow_state(pools, model))
    return sections


def apply_snapshot(
    spec: MonitorsSpec, layout: Layout, pools: Pools, row: int, sections: Mapping[str, bytes]
) -> None:
    """Restore every estimator of an empty row whose section is present.

    Raises
    ------
    ValueError
        If the model has more classes than fit.
    """
    if MODEL not in sections:
        return
    header = dict(zip(HEADER_FIELDS, _decode(sections[MODEL]), strict=True))
    classes = header["classes"]
    if classes > layout.max_classes:
        most = layout.max_classes
        raise ValueError(f"a model with {classes} classes must fit max_classes, {most} with extras")
    if classes:
        pools.claim_span(row, classes)
    model = pools.models[row]
    for name, value in header.items():
        model[name] = value
    model["waiting"]["settled"] = header["outcomes"]
    last = header["last"] << true_class_shift(layout.ring)
    recent = [np.array([last], layout.ring)] if header["outcomes"] else []
    for column, name in enumerate(column_names(layout)):
        if name not in sections:
            continue
        totals, counts, *rest = _decode(sections[name])
        model["totals"][:, column] = np.frombuffer(totals)
        _class_column(layout, pools, row, column)[:classes] = np.frombuffer(counts).reshape(-1, 3)
        j = column - len(layout.fading)
        if j < 0:
            model["fading"][column] = np.frombuffer(rest[0], FADING)[0]
        elif rest:
            recent.append(np.frombuffer(rest[-1], layout.ring))
            if j >= len(layout.sliding):
                model["pending"][j - len(layout.sliding)] = rest[0]
                resume_window(pools, model["windows"][j - len(layout.sliding)], *rest[1:-1])
    for entries in sorted(recent, key=len):  # the longest last, as the oldest entry of each is a label only
        pools.rings[row, pools.rings.shape[1] - len(entries) :] = entries
    for name, field, j in record_names(spec, int(model["detector_row"])):
        if name in sections:
            model[field][j] = np.frombuffer(sections[name], model[field].dtype)[0]
    restore_verdicts(spec, layout, model, sections)
    if layout.opponents and LABELS_COUNTED in sections:
        labels, counts = _decode(sections[LABELS_COUNTED])
        model["labels"] = np.frombuffer(labels, LABEL_COUNTS)
        _label_counts(pools, row)[:classes] = np.frombuffer(counts).reshape(-1, 2)
    if layout.shadow_classes:
        resume_shadow(pools, model, layout.shadow_classes, _decode(sections.get(SHADOWS, _encode(None))))


def _label_counts(pools: Pools, row: int) -> NDArray[np.float64]:
    """View the labels counted for opponents and utility, shape (span, 2)."""
    start, span = int(pools.models["class_counts"][row]), int(pools.spans[row])
    return pools.class_counts[start : start + span, -EXTRA_COLUMNS:-1]


def _class_column(layout: Layout, pools: Pools, row: int, column: int) -> NDArray[np.float64]:
    """View the per-class counts of one mechanism, shape (span, 3)."""
    model = pools.models[row]
    start, span = int(model["class_counts"]), int(pools.spans[row])
    return pools.class_counts[start : start + span, column : 3 * layout.columns : layout.columns]


def _recent(pools: Pools, row: int, number: int) -> bytes:
    """Encode the last `number` outcomes of the ring, oldest first, preceded by the label before them."""
    model = pools.models[row]
    if int(model["outcomes"]) > number:
        number += 1
        labels_only = 1
    else:
        labels_only = 0
    newest_last = np.roll(pools.rings[row], -int(model["head"]))
    entries = newest_last[len(newest_last) - number :].copy()
    below = true_class_shift(entries.dtype)
    entries[:labels_only] = entries[:labels_only] >> below << below
    return entries.tobytes()
