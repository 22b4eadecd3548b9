"""Fetched records of one topic → rows, in one compiled loop; a status tells which are left to others."""

from __future__ import annotations

from typing import Any, Final

from streamwatch.core.fetched import (
    FAULT,
    HEADER_COUNT,
    HEADERS,
    KEY,
    KEY_BYTES,
    OFFSET,
    TIMESTAMP,
    VALUE,
    VALUE_BYTES,
)
from streamwatch.core.jit import entry, hot, without_refcount
from streamwatch.core.records import LABEL, PREDICTION, SEPARATOR
from streamwatch.edge.decoders.scanner.contents import MAX_ID_BYTES, id_span, read_headers, time_ms
from streamwatch.edge.decoders.scanner.digest import MAX_BYTES, digest
from streamwatch.edge.decoders.scanner.inputs import (
    Plan,
    Tables,
    borrowed_plan,
    borrowed_tables,
    borrowed_template,
    borrowed_trace,
)
from streamwatch.edge.decoders.scanner.shape import Template, Trace, found
from streamwatch.edge.decoders.scanner.text import ABSENT, NULL, RAW, TEXT, UNUSUAL, same
from streamwatch.edge.decoders.scanner.tokens import MAX_TOKEN_BYTES, number_of

ORDINARY, UNUSUAL_RECORD, NEW_NAME = range(3)
"""Status of a record: its row says everything; it is left to others, be it for a name not met before."""
_UNKNOWN: Final = -1
_UNUSUAL: Final = -2
_NONE: Final = -3
_SLASH: Final = 47
_PERCENT: Final = 37
"""Bytes that are written otherwise where a text is one of several, as `joined_text` says."""


@hot
def _side(data: Any, plan: Plan, trace: Trace) -> int:
    """Side that the record's kind tells; -1 if it is not plain."""
    leaf = plan.kind
    start, stop = trace.start[leaf], trace.stop[leaf]
    if trace.kind[leaf] == TEXT:
        start += 1
        stop -= 1
    elif trace.kind[leaf] != RAW:
        return _UNKNOWN
    size = stop - start
    if size == plan.kind_sizes[0] and same(data, start, plan.kind_text, 0, size):
        return PREDICTION
    if size == plan.kind_sizes[1] and same(data, start, plan.kind_text, plan.kind_sizes[0], size):
        return LABEL
    return _UNKNOWN


@hot
def _show_names(plan: Plan, trace: Trace, side: int, span: Any) -> None:
    """Write down where the names of a record stand."""
    span[:] = 0
    leaf = plan.prediction if side == PREDICTION else plan.label
    if leaf >= 0 and trace.kind[leaf] > NULL:
        span[0], span[1] = trace.start[leaf], trace.stop[leaf]
    place = 2
    for leaf in plan.model:
        if trace.kind[leaf] > NULL:
            span[place], span[place + 1] = trace.start[leaf], trace.stop[leaf]
        place += 2
    if side == PREDICTION:
        for leaf in plan.segments:
            if trace.kind[leaf] > NULL:
                span[place], span[place + 1] = trace.start[leaf], trace.stop[leaf]
            place += 2


@hot
def _of_several(data: Any, leaves: Any, table: Any, trace: Trace, spare: Any, at: int) -> int:
    """Number of what several contents make together; -1 if it is new, `_UNUSUAL` if one is not plain.

    They are written to `spare` from `at` on, one behind the other.
    """
    end = at
    for leaf in leaves:
        kind = trace.kind[leaf]
        if kind > NULL:
            start, stop = trace.start[leaf], trace.stop[leaf]
            if stop == start or end - at + stop - start >= MAX_TOKEN_BYTES:
                return _UNUSUAL  # a value without a byte would be taken for none
            for j in range(start, stop):
                spare[end] = data[j]
                end += 1
        elif kind < 0 or end - at >= MAX_TOKEN_BYTES:
            return _UNUSUAL
        spare[end] = SEPARATOR
        end += 1
    return number_of(spare, at, end - at, table)


@hot
def _model(data: Any, plan: Any, tables: Any, trace: Any, spare: Any, at: int) -> int:
    """Number of the model that a record names; -1 if it is new, `_UNUSUAL` if it is not plain, `_NONE`."""
    named = 0
    for leaf in plan.model:
        named += trace.kind[leaf] > NULL
    if named == 0:
        return plan.model_number if plan.model_number >= 0 else _NONE
    if len(plan.model) > 1:
        return _of_several(data, plan.model, tables.models, trace, spare, at)
    leaf = plan.model[0]
    return number_of(data, trace.start[leaf], trace.stop[leaf] - trace.start[leaf], tables.models)


@hot
def _joined_id(data: Any, plan: Any, trace: Any, texts: Any, at: int) -> int:
    """Write an id made of several contents to `texts` from `at` on: its bytes, or UNUSUAL."""
    size = 0
    for leaf in plan.id:
        start, stop = id_span(data, trace.kind[leaf], trace.start[leaf], trace.stop[leaf])
        if start < 0 or size + stop - start >= MAX_ID_BYTES:
            return UNUSUAL
        for j in range(start, stop):
            if data[j] == _SLASH or data[j] == _PERCENT:
                return UNUSUAL
            texts[at + size] = data[j]
            size += 1
        texts[at + size] = _SLASH
        size += 1
    return size - 1


@hot
def _write_key(data: Any, plan: Plan, trace: Trace, start: int, stop: int, texts: Any, at: int) -> int:
    """Write prefix and id, which is one text or several, from `at` on: their bytes, or UNUSUAL."""
    prefix, size = len(plan.prefix), stop - start
    if len(plan.id) > 1:
        size = _joined_id(data, plan, trace, texts, at + prefix)
    if size < 0 or prefix + size > MAX_BYTES:
        return UNUSUAL
    for j in range(prefix):
        texts[at + j] = plan.prefix[j]
    for j in range(stop - start):
        texts[at + prefix + j] = data[start + j]
    return prefix + size


@hot
def _judged(  # noqa: C901, PLR0911, PLR0912 - compiled: a reason each
    data: Any, plan: Plan, tables: Tables, trace: Trace, row: Any, spare: Any, at: int
) -> tuple[int, int, int]:
    """Fill side, model, class, segments and time of a row; status, and span of an id of one text."""
    side = plan.side
    if side < 0:
        side = _side(data, plan, trace)
        if side < 0:
            return UNUSUAL_RECORD, 0, 0
    for leaf in plan.refused:
        if trace.kind[leaf] > NULL:
            return UNUSUAL_RECORD, 0, 0
    start = stop = 0
    if len(plan.id) == 1:
        leaf = int(plan.id[0])
        start, stop = id_span(data, trace.kind[leaf], trace.start[leaf], trace.stop[leaf])
        if start < 0:
            return UNUSUAL_RECORD, 0, 0
    stamp = -1
    leaf = plan.timestamp
    if leaf >= 0 and trace.kind[leaf] > NULL:
        stamp = time_ms(data, trace.kind[leaf], trace.start[leaf], trace.stop[leaf], plan.unit)
        if stamp < 0:
            return UNUSUAL_RECORD, 0, 0
    row["side"] = side
    model = _model(data, plan, tables, trace, spare, at)
    if model == _UNKNOWN:
        return NEW_NAME, 0, 0
    if model == _UNUSUAL or (model < 0 and side == PREDICTION):
        return UNUSUAL_RECORD, 0, 0
    named = plan.prediction_number if side == PREDICTION else plan.label_number
    leaf = plan.prediction if side == PREDICTION else plan.label
    if leaf >= 0:
        if trace.kind[leaf] <= NULL:
            return UNUSUAL_RECORD, 0, 0
        begin, size = trace.start[leaf], trace.stop[leaf] - trace.start[leaf]
        if side == PREDICTION:
            named = number_of(data, begin, size, tables.predictions)
        else:
            named = number_of(data, begin, size, tables.labels)
    if named < 0:
        return NEW_NAME, 0, 0
    segments = 0
    if side == PREDICTION and len(plan.segments) > 0:
        segments = _of_several(data, plan.segments, tables.segments, trace, spare, at)
        if segments < 0:
            return NEW_NAME if segments == _UNKNOWN else UNUSUAL_RECORD, 0, 0
    row["segments"] = segments
    row["timestamp_ms"] = stamp
    row["model"] = max(model, -1)
    row["class"] = named
    row["object"] = -1
    return ORDINARY, start, stop


@entry
def scan(  # noqa: PLR0913, PLR0917 - compiled: arrays, one loop
    data: Any,
    fetched: Any,
    plan: Plan,
    tables: Tables,
    template: Template,
    trace: Trace,
    rows: Any,
    texts: Any,
    status: Any,
    spans: Any,
    keep_texts: bool,  # noqa: FBT001 - compiled: by position
) -> tuple[int, int]:
    """Write the row of each ordinary record; how many are not, and how much was written to `texts`.

    Parameters
    ----------
    data, fetched
        As `core.fetched.FetchedRecords` has them.
    plan, tables
        Where contents are, and names met before.
    template, trace
        The shape of earlier values, and room for what is found; written to.
    rows, status
        As long as `fetched`; written to. Rows of records that are not ordinary hold offset and time only.
    texts
        Room for the texts of all keys, each of `prefix`, 128 bytes and the separator, and behind them for one
        token.
    spans
        int64, shape (n, 2 + 2 for each content of the model and each segment): start and end of the class,
        and of these as they are written, where a name is new; written to.
    keep_texts
        Whether they stay there; else each is written over the one before.
    """
    odd = 0
    used = 0
    data = without_refcount(data)
    fetched = without_refcount(fetched)
    rows = without_refcount(rows)
    texts = without_refcount(texts)
    status = without_refcount(status)
    spans = without_refcount(spans)
    plan = borrowed_plan(plan)
    tables = borrowed_tables(tables)
    template = borrowed_template(template)
    trace = borrowed_trace(trace)
    for i in range(len(fetched)):
        row = rows[i]
        row["record_ms"] = fetched[i, TIMESTAMP]
        row["offset"] = fetched[i, OFFSET]
        status[i] = UNUSUAL_RECORD
        odd += 1
        at = fetched[i, VALUE]
        size = fetched[i, VALUE_BYTES]
        if fetched[i, FAULT] != 0 or size < 2:
            continue
        if not found(data, at, at + size, plan.fields, template, trace):
            continue
        if plan.key >= 0:
            trace.kind[plan.key] = RAW if fetched[i, KEY_BYTES] >= 0 else ABSENT
            trace.start[plan.key] = fetched[i, KEY]
            trace.stop[plan.key] = fetched[i, KEY] + max(fetched[i, KEY_BYTES], 0)
        count = fetched[i, HEADER_COUNT]
        if count > 0 and not read_headers(data, fetched[i, HEADERS], count, plan, trace):
            continue
        judged, start, stop = _judged(data, plan, tables, trace, row, texts, used)
        if judged == NEW_NAME:
            _show_names(plan, trace, row["side"], spans[i])
        if judged != ORDINARY:
            status[i] = judged
            continue
        key_bytes = _write_key(data, plan, trace, start, stop, texts, used)
        if key_bytes < 0:
            continue
        row["id_low"], row["id_high"] = digest(texts, used, key_bytes)
        row["id_at"] = used
        row["id_bytes"] = key_bytes
        status[i] = ORDINARY
        odd -= 1
        if keep_texts:
            texts[used + key_bytes] = SEPARATOR
            used += key_bytes + 1
    return odd, used
