"""Fetched records of one topic → rows, in one compiled loop; a status marks the records that are left."""

# pyright: reportPossiblyUnboundVariable=false
# (variables of a record are set before the first of its events is read)
from __future__ import annotations

from typing import Any, Final

import numpy as np

from streamwatch.core.jit import entry, hot
from streamwatch.core.records.batch import LABEL, PREDICTION, SEPARATOR, SEVERAL
from streamwatch.core.records.fetched import (
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
from streamwatch.edge.decoders.scanner.contents import (
    MAX_ID_BYTES,
    NAMED,
    NEW,
    ScoreRoom,
    id_span,
    judged_scores,
    read_headers,
    sampling_at,
    time_ms,
    without_affixes,
)
from streamwatch.edge.decoders.scanner.plan import (
    Plan,
    Tables,
)
from streamwatch.edge.decoders.scanner.shape import Template, Trace, choose_element, found, names_differ
from streamwatch.edge.decoders.scanner.text import (
    ABSENT,
    MAX_BYTES,
    NULL,
    RAW,
    SCORES,
    TEXT,
    UNUSUAL,
    WIDE,
    digest,
    same,
)
from streamwatch.edge.decoders.scanner.tokens import MAX_TOKEN_BYTES, number_of

ORDINARY, UNUSUAL_RECORD, NEW_NAME = range(3)
"""Status of a record: its row is complete; it is left as unusual; it is left for a name not met before."""
_UNKNOWN: Final = -1
_UNUSUAL: Final = -2
_NONE: Final = -3
_HASH: Final = 35
"""Byte (#) between the id of a record and the index of its element."""
_SLASH: Final = 47
_PERCENT: Final = 37
"""Bytes (/ and %) that `joined_text` escapes in the parts of a text."""


@hot
def _side(data: Any, plan: Plan, trace: Trace) -> int:
    """Return the side by the content of the kind rule; -1 if it is neither side's text."""
    leaf = plan.kind
    start, stop = trace.start[leaf], trace.stop[leaf]
    if trace.kind[leaf] == TEXT or trace.kind[leaf] == WIDE:
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
def _rule(plan: Any, side: int) -> Any:
    return plan.of_predictions if side == PREDICTION else plan.of_labels


@hot
def _show_names(plan: Plan, trace: Trace, side: int, span: Any) -> None:
    """Write start and end of an event's names to a row of `spans`."""
    span[:] = 0
    leaf = plan.prediction if side == PREDICTION else plan.label
    if leaf >= 0 and trace.kind[leaf] > NULL and _rule(plan, side).rule == NAMED:
        span[0], span[1] = trace.start[leaf], trace.stop[leaf]
    column = 2
    for leaf in plan.model:
        if trace.kind[leaf] > NULL:
            span[column], span[column + 1] = trace.start[leaf], trace.stop[leaf]
        column += 2
    if plan.fold >= 0:
        if side == PREDICTION and trace.kind[plan.fold] > NULL:
            span[column], span[column + 1] = trace.start[plan.fold], trace.stop[plan.fold]
        column += 2
    if side == PREDICTION:
        for leaf in plan.segments:
            if trace.kind[leaf] > NULL:
                span[column], span[column + 1] = trace.start[leaf], trace.stop[leaf]
            column += 2
        leaf = plan.fields.scored
        if leaf >= 0 and trace.kind[leaf] == SCORES:
            span[-2], span[-1] = trace.start[leaf], trace.stop[leaf]


@hot
def _of_several(data: Any, leaves: Any, table: Any, trace: Trace, spare: Any, at: int) -> int:
    """Return the number of a name of several contents; -1 if it is new, `_UNUSUAL` if one is not plain.

    Its token is written to `spare` from `at` on.
    """
    end = at
    for leaf in leaves:
        kind = trace.kind[leaf]
        if kind > NULL:
            start, stop = trace.start[leaf], trace.stop[leaf]
            if stop == start or end - at + stop - start >= MAX_TOKEN_BYTES:
                return _UNUSUAL  # an empty text would have the token of an absent one
            for j in range(start, stop):
                spare[end] = data[j]
                end += 1
        elif kind < 0 or end - at >= MAX_TOKEN_BYTES:
            return _UNUSUAL
        spare[end] = SEPARATOR
        end += 1
    return number_of(spare, at, end - at, table)


@hot
def _model(data: Any, plan: Any, tables: Any, trace: Any, side: int, spare: Any, at: int) -> int:
    """Return the number of the model or fold; -1 if new, `_UNUSUAL` if not plain, `_NONE` if absent."""
    if side == PREDICTION and plan.fold >= 0 and trace.kind[plan.fold] > NULL:
        return _of_several(data, plan.model_of_fold, tables.folds, trace, spare, at)
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
    """Write a joined id to `texts` from `at` on; return its bytes, or UNUSUAL."""
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
def _write_number(number: int, texts: Any, at: int) -> int:
    """Write `#` and a number to `texts` from `at` on; return their bytes."""
    size, rest = 2, number // 10
    while rest > 0:
        size += 1
        rest //= 10
    texts[at] = _HASH
    for i in range(at + size - 1, at, -1):
        texts[i] = np.uint8(48 + number % 10)
        number //= 10
    return size


@hot
def _write_key(  # noqa: PLR0913, PLR0917 - compiled: scalars
    data: Any, plan: Plan, trace: Trace, start: int, stop: int, number: int, texts: Any, at: int
) -> int:
    """Write prefix and id (from `start` to `stop`, or joined) to `texts`; return their bytes, or UNUSUAL.

    If `number` is not negative, it is the index of an element, and is appended to the id as `#<index>`.
    """
    prefix, size = len(plan.prefix), stop - start
    if len(plan.id) > 1:
        size = _joined_id(data, plan, trace, texts, at + prefix)
    if size < 0 or prefix + size > MAX_BYTES:
        return UNUSUAL
    for j in range(prefix):
        texts[at + j] = plan.prefix[j]
    for j in range(stop - start):
        texts[at + prefix + j] = data[start + j]
    if number >= 0:
        size += _write_number(number, texts, at + prefix + size)
        if size > MAX_ID_BYTES or prefix + size > MAX_BYTES:
            return UNUSUAL
    return prefix + size


@hot
def _elements(plan: Plan, trace: Trace, side: int) -> int:
    """Return the number of elements that are events, or UNUSUAL; 0 where the record is one event."""
    arrays = plan.arrays_of_predictions if side == PREDICTION else plan.arrays_of_labels
    if arrays == 0:
        return 0
    scored = plan.fields.scored
    if 0 <= scored < plan.fields.shared and trace.kind[scored] > NULL:
        return UNUSUAL  # elements share scores
    count = -1
    for array in range(len(trace.counts) - 1):
        found = trace.counts[array]
        if arrays >> array & 1 and found >= 0:
            if count >= 0 and found != count:
                return UNUSUAL
            count = found
    return count if count > 0 else UNUSUAL


@hot
def _content(trace: Any, leaf: int) -> tuple[int, int, int]:
    """Return kind, start and end of a leaf; ABSENT for -1."""
    return (trace.kind[leaf], trace.start[leaf], trace.stop[leaf]) if leaf >= 0 else (ABSENT, 0, 0)


@hot
def _judged(  # noqa: C901, PLR0911, PLR0912, PLR0913, PLR0917 - compiled: a reason each
    data: Any,
    plan: Plan,
    tables: Tables,
    trace: Trace,
    room: ScoreRoom,
    marks: Any,
    side: int,
    row: Any,
    spare: Any,
    at: int,
) -> tuple[int, int, int]:
    """Fill side, model, class, segments and time of a row; return status, start and end of a single id."""
    for leaf in plan.refused:
        if trace.kind[leaf] > NULL:
            return UNUSUAL_RECORD, 0, 0
    start = stop = 0
    if len(plan.id) == 1:
        leaf = int(plan.id[0])
        start, stop = id_span(data, trace.kind[leaf], trace.start[leaf], trace.stop[leaf])
        if start < 0:
            return UNUSUAL_RECORD, 0, 0
        start, stop = without_affixes(data, plan.affixes, plan.affix_sizes, start, stop)
        if start == stop:
            return UNUSUAL_RECORD, 0, 0
    stamp = -1
    leaf = plan.timestamp
    if leaf >= 0 and trace.kind[leaf] > NULL:
        stamp = time_ms(data, trace.kind[leaf], trace.start[leaf], trace.stop[leaf], plan.unit)
        if stamp < 0:
            return UNUSUAL_RECORD, 0, 0
    row["side"] = side
    model = _model(data, plan, tables, trace, side, spare, at)
    if model == _UNKNOWN:
        return NEW_NAME, 0, 0
    if model == _UNUSUAL or (model < 0 and side == PREDICTION):
        return UNUSUAL_RECORD, 0, 0
    named = plan.prediction_number if side == PREDICTION else plan.label_number
    leaf = plan.prediction if side == PREDICTION else plan.label
    rule = _rule(plan, side)
    if leaf >= 0:
        if trace.kind[leaf] <= NULL:
            return UNUSUAL_RECORD, 0, 0
        begin, size = trace.start[leaf], trace.stop[leaf] - trace.start[leaf]
        if rule.rule != NAMED:
            named = 0
        elif side == PREDICTION:
            named = number_of(data, begin, size, tables.predictions)
        else:
            named = number_of(data, begin, size, tables.labels)
    if named < 0:
        return NEW_NAME, 0, 0
    scored = _content(trace, plan.fields.scored)
    if rule.rule != NAMED or scored[0] > NULL:
        least = _content(trace, plan.prediction_threshold if side == PREDICTION else plan.label_threshold)
        made = judged_scores(
            data, rule, _content(trace, leaf), least, scored, tables.predictions, plan.of_array, marks, room
        )
        if made < 0:
            return NEW_NAME if made == NEW else UNUSUAL_RECORD, 0, 0
        if rule.rule != NAMED:
            named = made
    segments = 0
    if side == PREDICTION and len(plan.segments) > 0:
        segments = _of_several(data, plan.segments, tables.segments, trace, spare, at)
        if segments < 0:
            return NEW_NAME if segments == _UNKNOWN else UNUSUAL_RECORD, 0, 0
    sampling = sampling_at(data, plan, trace) if side == PREDICTION else 0
    if sampling < 0:
        return UNUSUAL_RECORD, 0, 0
    room.state[5] = sampling
    row["segments"] = segments
    row["timestamp_ms"] = stamp
    row["model"] = max(model, -1)
    row["class"] = named
    row["object"] = -1
    return ORDINARY, start, stop


@entry
def scan(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917 - compiled: arrays, one loop
    data: Any,
    fetched: Any,
    plan: Plan,
    tables: Tables,
    template: Template,
    trace: Trace,
    room: ScoreRoom,
    marks: Any,
    ends: Any,
    sampled: Any,
    rows: Any,
    elements: Any,
    elements_end: Any,
    texts: Any,
    status: Any,
    spans: Any,
    progress: Any,
    keep_texts: bool,  # noqa: FBT001 - compiled: by position
) -> None:
    """Write the row of each ordinary record, and the rows of events in records with several.

    Parameters
    ----------
    data, fetched
        `data` and `rows` of `core.records.fetched.FetchedRecords`.
    plan, tables
        Leaves of contents, and names met before.
    template, trace
        Shape of an earlier value, and positions of the current one's contents; overwritten.
    room, marks, ends, sampled
        Scores of all events; by class, the mark of the last event with a score for it; and for each event
        with scores or a sampled label, the end of its scores and how the label is sampled. Overwritten.
    rows, status
        By record; overwritten. Rows of records that are left hold only offset and record time.
    elements, elements_end
        Rows of the events of records with several; for each such record, the end of its rows. Overwritten.
    texts
        Room for the texts of all keys, each of `prefix`, an id of 128 bytes, and 8 bytes for the index of an
        element and the separator; then for one token.
    spans
        int64, shape (n, 4 + 2 for each content of the model, the fold and each segment). If n is not 0, there
        is one record, and only this is written: for each of its events, start and end of the class, of these
        contents, and of the scores.
    progress
        int64 (5,): record to begin with, records left, bytes of `texts`, rows of `elements`, and records in
        `elements_end`. Updated; stops before a record for which there is no room.
    keep_texts
        Whether texts of keys are kept; if not, each overwrites the one before.
    """
    key_room = len(plan.prefix) + MAX_ID_BYTES + 8
    odd, used, inner, several = progress[1], progress[2], progress[3], progress[4]
    i = progress[0] - 1
    progress[0] = len(fetched)
    element = count = 0  # of the current record; one loop, as entering an inner loop is slow
    while True:
        element += 1
        if element >= count:
            i += 1
            element = count = 0
            if i == len(fetched):
                break
            row = rows[i]
            row["record_ms"] = fetched[i, TIMESTAMP]
            row["offset"] = fetched[i, OFFSET]
            status[i] = UNUSUAL_RECORD
            odd += 1
            at = fetched[i, VALUE]
            size = fetched[i, VALUE_BYTES]
            if fetched[i, FAULT] != 0 or size < 2:
                continue
            if not found(data, at, at + size, plan.fields, template, trace, room):
                continue
            if plan.key >= 0:
                trace.kind[plan.key] = RAW if fetched[i, KEY_BYTES] >= 0 else ABSENT
                trace.start[plan.key] = fetched[i, KEY]
                trace.stop[plan.key] = fetched[i, KEY] + max(fetched[i, KEY_BYTES], 0)
            headers = fetched[i, HEADER_COUNT]
            if headers > 0 and not read_headers(data, fetched[i, HEADERS], headers, plan, trace):
                continue
            side = plan.side
            if side < 0:
                side = _side(data, plan, trace)
                if side < 0:
                    continue
            count = _elements(plan, trace, side)
            if count < 0 or (plan.fields.named >= 0 and not names_differ(data, count, plan.fields, trace)):
                count = 0
                continue
            if count > 0 and (
                inner + count > len(elements)
                or several == len(elements_end)
                or used + (count if keep_texts else 1) * key_room + MAX_TOKEN_BYTES > len(texts)
            ):
                progress[0] = i
                odd -= 1
                break
            used_before, inner_before = used, inner
            scores_before, scored_before = room.state[0], room.state[3]
        if count > 0:
            choose_element(element, plan.fields, trace, room)
            if count > 1:
                row = elements[inner]
        if len(spans) > 0:
            _show_names(plan, trace, side, spans[element])
            continue
        scores = room.state[0]
        judged, start, stop = _judged(data, plan, tables, trace, room, marks, side, row, texts, used)
        key_bytes = 0
        if judged == ORDINARY:
            number = element if count > 0 and not plan.id_in_element else -1
            key_bytes = _write_key(data, plan, trace, start, stop, number, texts, used)
        if judged != ORDINARY or key_bytes < 0:
            status[i] = judged if judged != ORDINARY else UNUSUAL_RECORD
            used, inner, count = used_before, inner_before, 0
            room.state[0], room.state[3] = scores_before, scored_before
            continue
        row["id_low"], row["id_high"] = digest(texts, used, key_bytes)
        row["id_at"] = used
        row["id_bytes"] = key_bytes
        if room.state[0] > scores or room.state[5] > 0:
            row["object"] = room.state[3]
            ends[room.state[3]] = room.state[0]
            sampled[room.state[3]] = room.state[5]
            room.state[3] += 1
        if keep_texts:
            texts[used + key_bytes] = SEPARATOR
            used += key_bytes + 1
        if count > 1:
            inner += 1
        if element + 1 >= count:
            status[i] = ORDINARY
            odd -= 1
            if count > 1:
                row = rows[i]
                row["side"] = SEVERAL
                row["object"] = several
                row["model"] = row["class"] = -1
                elements_end[several] = inner
                several += 1
    progress[1], progress[2], progress[3], progress[4] = odd, used, inner, several
