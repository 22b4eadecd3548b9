"""Finds the mapped fields of one JSON value: token by token, or by comparison with an earlier value's shape.

A template is an earlier value without its scalars: the bytes between them, and the leaf of each scalar. A
value of the same shape is compared with it piece by piece, which takes a third of the time.

Elements of arrays that are events are read in the same pass: their leaves are in the trace after those of the
record, element after element.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import hot
from streamwatch.core.records.fetched import PADDING
from streamwatch.edge.decoders.scanner.contents import ScoreRoom, scores_after
from streamwatch.edge.decoders.scanner.text import (
    ABSENT,
    ARRAY_CLOSES,
    ARRAY_OPENS,
    COLON,
    COMMA,
    OBJECT_CLOSES,
    OBJECT_OPENS,
    ODD,
    QUOTE,
    SCORES,
    TEXT,
    UNUSUAL,
    WIDE,
    after_space,
    first_word,
    same,
    scalar_after,
    text_after,
)

MAX_DEPTH: Final = 60
MAX_ELEMENTS: Final = 4_096
"""Elements of a record at most, as in `edge.decoders.trees`."""
BY_NAME, BY_INDEX, EACH, EACH_FIELD = range(4)
"""Forms of nodes: an object with wanted fields; an array with elements wanted by index; an array whose
elements are all events; an object whose fields are all events."""
MAX_NAMES: Final = 64
"""Fields of an object that are events, at most; their names are compared in pairs."""
MAX_SCALARS: Final = 192
"""Scalars of a template at most."""
TEMPLATE_BYTES: Final = 4_096
LEARN_EVERY: Final = 16
"""Values of another shape before the template is replaced, as two shapes may alternate."""
_WORD = 8
_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Fields(NamedTuple):
    """Mapped fields as a tree of objects and arrays; node 0 is the value itself."""

    first: NDArray[np.int64]
    """By node, like the next three: its first field. A node's fields end where those of the next begin."""
    form: NDArray[np.int64]
    array: NDArray[np.int64]
    """Number of an array whose elements are all wanted; else -1."""
    inside: NDArray[np.uint64]
    """Bit set of the fields in the elements of such an array."""
    at: NDArray[np.int64]
    """By field, like the next five: position of its name in `names`; then the name's size."""
    size: NDArray[np.int64]
    word: NDArray[np.uint64]
    """First 8 bytes of its name."""
    element: NDArray[np.int64]
    """Index of a wanted element of an array; -1 for a field, and where all elements are wanted."""
    leaf: NDArray[np.int64]
    """Leaf; -1 for an object or array."""
    node: NDArray[np.int64]
    """Node of the object or array; -1 for a leaf."""
    names: NDArray[np.uint8]
    named: int
    """Leaf of the name of each field of an object whose fields are events; -1 without any."""
    scored: int
    """Leaf of the scores, an object or an array; -1 without any."""
    shared: int
    """Number of leaves of the whole record; those in each element follow."""
    width: int
    """Number of leaves in each element."""


class Trace(NamedTuple):
    """Contents found in the current value."""

    kind: NDArray[np.int64]
    """By leaf, like the next two: kind of its content (`text.ABSENT` and so on). First are the leaves of the
    record, then `Fields.width` of the element chosen (`choose_element`), then as many of each element."""
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    scalars: NDArray[np.int64]
    """Shape (MAX_SCALARS, 4): start and stop of each scalar; its index in the columns above (-1: not mapped);
    and, if it is scores, the element that has them (0 for the record), else -1."""
    nodes: NDArray[np.int64]
    """By depth: node of the open object or array; -1 if it is not mapped."""
    indices: NDArray[np.int64]
    """By depth: index of the current element of an array."""
    counts: NDArray[np.int64]
    """By array whose elements are all wanted: number of elements, -1 if it is absent; then, last, the number
    of elements that have leaves in the columns."""


class Template(NamedTuple):
    """The shape of an earlier value."""

    text: NDArray[np.uint8]
    pieces: NDArray[np.int64]
    """Shape (MAX_SCALARS + 1, 4): start and size of a piece in `text`; index and element of the scalar, or
    scores, after it, as in `Trace.scalars`."""
    counts: NDArray[np.int64]
    """As `Trace.counts`."""
    state: NDArray[np.int64]
    """Number of pieces, 0 without a template; number of values of other shapes since."""


def new_trace(contents: int, width: int, arrays: int) -> Trace:
    """Allocate a trace for a number of leaves, of leaves in an element, and of arrays of elements."""
    kind, start, stop = (np.zeros(max(contents, 1) + MAX_ELEMENTS * width, np.int64) for _ in range(3))
    scalars, depths = np.zeros((MAX_SCALARS, 4), np.int64), MAX_DEPTH + 2
    nodes, indices, counts = (np.zeros(size, np.int64) for size in (depths, depths, arrays + 1))
    return Trace(kind, start, stop, scalars, nodes, indices, counts)


def new_template(arrays: int) -> Template:
    """Make an empty template, for values with a number of arrays of elements."""
    text = np.zeros(TEMPLATE_BYTES + PADDING, np.uint8)
    pieces = np.zeros((MAX_SCALARS + 1, 4), np.int64)
    return Template(text, pieces, np.zeros(arrays + 1, np.int64), np.zeros(2, np.int64))


@hot
def field_of(data: Any, at: int, size: int, node: int, fields: Fields) -> int:
    """Return the field of this name in a node; -1 if it is not mapped."""
    word = first_word(data, at, size)
    for field in range(fields.first[node], fields.first[node + 1]):
        if (
            fields.word[field] == word
            and fields.size[field] == size
            and (
                size <= _WORD or same(data, at + _WORD, fields.names, fields.at[field] + _WORD, size - _WORD)
            )
        ):
            return field
    return -1


@hot
def _field_at(index: int, node: int, fields: Fields) -> int:
    """Return the field of this index in the node of an array; -1 if it is not mapped."""
    for field in range(fields.first[node], fields.first[node + 1]):
        if fields.element[field] == index:
            return field
    return -1


@hot
def _make_room(elements: int, fields: Fields, trace: Trace) -> None:
    """Extend the trace to a number of elements; leaves of new ones are ABSENT."""
    first = fields.shared + fields.width
    for slot in range(
        first + trace.counts[-1] * fields.width,
        first + elements * fields.width,
    ):
        trace.kind[slot] = ABSENT
    trace.counts[-1] = max(trace.counts[-1], elements)


@hot
def _scores(data: Any, at: int, element: int, room: ScoreRoom) -> int:
    """Read the scores of an element, or of the record (0), and note their span in `room.spans`."""
    room.spans[element, 0] = room.state[1]
    at = scores_after(data, at, room)
    room.spans[element, 1] = room.state[1]
    return at


@hot
def read_value(  # noqa: C901, PLR0911, PLR0912, PLR0915 - compiled: one loop
    data: Any, at: int, fields: Fields, trace: Trace, room: ScoreRoom
) -> tuple[int, int]:
    """Read a value token by token; return the position after it, or UNUSUAL, and its number of scalars.

    Scores count as one scalar.
    """
    count = element = 0
    at = after_space(data, at)
    is_object = fields.form[0] == BY_NAME  # its own fields are never events
    if data[at] != (OBJECT_OPENS if is_object else ARRAY_OPENS):
        return UNUSUAL, count
    depth = 1
    objects = _ONE if is_object else _ZERO  # bit by depth: 1 for an object
    seen = _ZERO
    trace.nodes[1] = 0
    trace.indices[1] = 0
    at = after_space(data, at + 1)
    if data[at] == ARRAY_CLOSES:
        return UNUSUAL, count
    while True:
        leaf = child = field = -1
        node = trace.nodes[depth]
        if objects & _ONE:
            if data[at] != QUOTE:
                return UNUSUAL, count
            start = at + 1
            at, kind = text_after(data, start)
            if at < 0 or (kind == ODD and node >= 0):
                return UNUSUAL, count
            if node >= 0 and fields.form[node] == EACH_FIELD:
                element = trace.indices[depth]
                if element >= MAX_ELEMENTS:
                    return UNUSUAL, count
                trace.indices[depth] = element + 1
                seen &= ~fields.inside[node]
                _make_room(element + 1, fields, trace)
                field = fields.first[node]
                slot = fields.named + (element + 1) * fields.width
                trace.kind[slot], trace.start[slot], trace.stop[slot] = kind, start - 1, at + 1
                if count < MAX_SCALARS:
                    trace.scalars[count, 0], trace.scalars[count, 1] = start - 1, at + 1
                    trace.scalars[count, 2], trace.scalars[count, 3] = slot, -1
                count += 1
            elif node >= 0:
                field = field_of(data, start, at - start, node, fields)
                if field >= 0:
                    bit = _ONE << np.uint64(field)
                    if seen & bit:
                        return UNUSUAL, count
                    seen |= bit
            at = after_space(data, at + 1)
            if data[at] != COLON:
                return UNUSUAL, count
            at = after_space(data, at + 1)
        elif node >= 0:
            index = trace.indices[depth]
            trace.indices[depth] = index + 1
            if fields.form[node] == EACH:
                if index >= MAX_ELEMENTS:
                    return UNUSUAL, count
                element = index
                seen &= ~fields.inside[node]
                _make_room(element + 1, fields, trace)
                field = fields.first[node]
            else:
                field = _field_at(index, node, fields)
        if field >= 0:
            leaf = fields.leaf[field]
            child = fields.node[field]
        byte = data[at]
        opens = byte == OBJECT_OPENS or byte == ARRAY_OPENS  # noqa: PLR1714 - compiled
        if opens and (leaf < 0 or leaf != fields.scored):
            if leaf >= 0 or depth >= MAX_DEPTH:
                return UNUSUAL, count
            is_object = byte == OBJECT_OPENS
            if child >= 0 and is_object != (fields.form[child] in (BY_NAME, EACH_FIELD)):
                return UNUSUAL, count
            depth += 1
            trace.nodes[depth] = child
            trace.indices[depth] = 0
            objects <<= _ONE
            if is_object:
                objects |= _ONE
            at = after_space(data, at + 1)
            if data[at] != (OBJECT_CLOSES if is_object else ARRAY_CLOSES):
                continue
        else:
            if child >= 0:
                return UNUSUAL, count
            start = at
            of = element if leaf >= fields.shared else 0
            if opens:
                at, kind = _scores(data, at, of, room), SCORES
            else:
                at, kind = scalar_after(data, at)
            if at < 0:
                return UNUSUAL, count
            slot = leaf
            if leaf >= 0:
                if leaf >= fields.shared:
                    slot = leaf + (element + 1) * fields.width
                trace.kind[slot] = kind
                trace.start[slot] = start
                trace.stop[slot] = at
            if count < MAX_SCALARS:
                trace.scalars[count, 0] = start
                trace.scalars[count, 1] = at
                trace.scalars[count, 2] = slot
                trace.scalars[count, 3] = of if leaf >= 0 and leaf == fields.scored else -1
            count += 1
            at = after_space(data, at)
        while data[at] != COMMA:
            if data[at] != (OBJECT_CLOSES if objects & _ONE else ARRAY_CLOSES):
                return UNUSUAL, count
            at += 1
            node = trace.nodes[depth]
            if node >= 0 and fields.array[node] >= 0:
                trace.counts[fields.array[node]] = trace.indices[depth]
            depth -= 1
            objects >>= _ONE
            if depth == 0:
                return at, count
            at = after_space(data, at)
        at = after_space(data, at + 1)


@hot
def fits(
    data: Any, at: int, end: int, fields: Fields, template: Template, trace: Trace, room: ScoreRoom
) -> bool:
    """Compare a value with the template; True if it has its shape, and its contents are in the trace."""
    last = template.state[0] - 1
    _make_room(template.counts[-1], fields, trace)
    for i in range(last):
        size = template.pieces[i, 1]
        if at + size > end or not same(data, at, template.text, template.pieces[i, 0], size):
            return False
        start = at + size
        slot = template.pieces[i, 2]
        element = template.pieces[i, 3]
        if element >= 0 and (data[start] == OBJECT_OPENS or data[start] == ARRAY_OPENS):
            at, kind = _scores(data, start, element, room), SCORES
        else:
            at, kind = scalar_after(data, start)
        if at < 0:
            return False
        if slot >= 0:
            trace.kind[slot] = kind
            trace.start[slot] = start
            trace.stop[slot] = at
    for i in range(len(trace.counts)):
        trace.counts[i] = template.counts[i]
    size = template.pieces[last, 1]
    return at + size == end and same(data, at, template.text, template.pieces[last, 0], size)


@hot
def learn(data: Any, at: int, end: int, count: int, template: Template, trace: Trace) -> None:
    """Make the value just read, of `count` scalars, the template, if it fits and `LEARN_EVERY` allows."""
    if template.state[0] > 0:
        template.state[1] += 1
        if template.state[1] < LEARN_EVERY:
            return
    if count > MAX_SCALARS or end - at > TEMPLATE_BYTES:
        return
    used = 0
    for i in range(count + 1):
        stop = trace.scalars[i, 0] if i < count else end
        template.pieces[i, 0] = used
        template.pieces[i, 1] = stop - at
        template.pieces[i, 2] = trace.scalars[i, 2] if i < count else -1
        template.pieces[i, 3] = trace.scalars[i, 3] if i < count else -1
        for j in range(stop - at):  # a copy of slices takes seconds more to compile
            template.text[used + j] = data[at + j]
        used += stop - at
        at = trace.scalars[i, 1] if i < count else end
    for i in range(len(trace.counts)):
        template.counts[i] = trace.counts[i]
    template.state[0] = count + 1
    template.state[1] = 0


@hot
def _forget(fields: Fields, trace: Trace, room: ScoreRoom) -> None:
    """Reset the trace, and drop scores read of the current record."""
    for slot in range(fields.shared + fields.width):
        trace.kind[slot] = ABSENT
    for i in range(len(trace.counts) - 1):
        trace.counts[i] = -1
    trace.counts[-1] = 0
    room.state[1] = room.state[0]


@hot
def found(
    data: Any, at: int, end: int, fields: Fields, template: Template, trace: Trace, room: ScoreRoom
) -> bool:
    """Find the mapped fields of the value from `at` to `end`; False if it is unusual."""
    _forget(fields, trace, room)
    if template.state[0] > 0:
        if fits(data, at, end, fields, template, trace, room):
            return True
        _forget(fields, trace, room)
    stop, count = read_value(data, at, fields, trace, room)
    if stop < 0 or stop > end:
        return False
    while stop < end and (data[stop] == 32 or data[stop] == 10 or data[stop] == 13 or data[stop] == 9):
        stop += 1
    if stop != end:
        return False
    learn(data, at, end, count, template, trace)
    return True


@hot
def names_differ(data: Any, count: int, fields: Fields, trace: Trace) -> bool:
    """Tell whether the names of at most `MAX_NAMES` fields that are events are non-empty texts and differ."""
    if count > MAX_NAMES:
        return False
    for element in range(count):
        slot = fields.named + (element + 1) * fields.width
        start, size = trace.start[slot], trace.stop[slot] - trace.start[slot]
        if size <= 2 or (trace.kind[slot] != TEXT and trace.kind[slot] != WIDE):
            return False
        for other in range(fields.named + fields.width, slot, fields.width):
            if trace.stop[other] - trace.start[other] == size and same(
                data, start, data, trace.start[other], size
            ):
                return False
    return True


@hot
def choose_element(element: int, fields: Fields, trace: Trace, room: ScoreRoom) -> None:
    """Copy the leaves of an element, by its index, to the leaves of elements that `scan` reads."""
    before = (element + 1) * fields.width
    for slot in range(fields.shared, fields.shared + fields.width):
        trace.kind[slot] = trace.kind[slot + before]
        trace.start[slot] = trace.start[slot + before]
        trace.stop[slot] = trace.stop[slot + before]
    if fields.scored >= fields.shared:
        room.spans[0, 0], room.spans[0, 1] = room.spans[element, 0], room.spans[element, 1]
