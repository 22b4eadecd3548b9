"""State of one model's estimators as bytes, independent of the model's row.

Each estimator has a section, named by its fingerprint (`section_names`). Equal states give equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.forgetting.mechanisms import FADING
from streamwatch.core.estimators.kernel.layout import Layout
from streamwatch.core.estimators.kernel.pools import Pools
from streamwatch.core.estimators.kernel.section_names import VERSION, column_names, record_names
from streamwatch.core.estimators.kernel.shadow import VERSION as SHADOW_VERSION
from streamwatch.core.estimators.kernel.shadow_state import resume_shadow, shadow_state
from streamwatch.core.estimators.kernel.verdict_sections import restore_verdicts, verdict_sections
from streamwatch.core.estimators.kernel.window_state import resume_window, window_state
from streamwatch.core.estimators.memory.ring import true_class_shift
from streamwatch.core.estimators.verdicts.opponents import EXTRA_COLUMNS, LABEL_COUNTS
from streamwatch.core.specs import MonitorsSpec

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
