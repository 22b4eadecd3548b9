"""Where the mapped fields of one JSON value stand: read token by token, or along the shape of an earlier one.

A template is the value read last, without its scalars: the bytes between them, and which mapped field each
of them is. A value of the same shape is compared piece by piece, which takes a third of the time.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.fetched import PADDING
from streamwatch.core.jit import hot
from streamwatch.edge.decoders.scanner.text import (
    ABSENT,
    ARRAY_CLOSES,
    ARRAY_OPENS,
    COLON,
    COMMA,
    OBJECT_CLOSES,
    OBJECT_OPENS,
    QUOTE,
    UNUSUAL,
    after_space,
    first_word,
    plain_text,
    same,
    scalar_after,
)

MAX_DEPTH: Final = 60
MAX_SCALARS: Final = 192
"""Scalars of a value that can become a template."""
TEMPLATE_BYTES: Final = 4_096
LEARN_EVERY: Final = 16
"""Values of another shape before the template is replaced: two shapes may alternate."""
_WORD = 8
_ONE = np.uint64(1)


class Fields(NamedTuple):
    """Mapped fields as a tree of objects; node 0 is the value itself."""

    first: NDArray[np.int64]
    """By node: its first field; those of a node stand together, up to the first of the next."""
    at: NDArray[np.int64]
    """By field, like the following: where its name lies in `names`."""
    size: NDArray[np.int64]
    word: NDArray[np.uint64]
    """The first 8 bytes of its name."""
    leaf: NDArray[np.int64]
    """Number of the content wanted there; -1 for an object."""
    node: NDArray[np.int64]
    """Node of the object; -1 for a content."""
    names: NDArray[np.uint8]


class Trace(NamedTuple):
    """Fields found in the value at hand."""

    kind: NDArray[np.int64]
    """By content, like the two that follow: its kind, `text.ABSENT` and so on."""
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    scalars: NDArray[np.int64]
    """Shape (MAX_SCALARS, 3): start, stop and content (-1: not mapped) of each scalar."""
    nodes: NDArray[np.int64]
    """By depth: the node of the object that is open; -1 of one that is not mapped."""


class Template(NamedTuple):
    """The shape of an earlier value."""

    text: NDArray[np.uint8]
    pieces: NDArray[np.int64]
    """Shape (MAX_SCALARS + 1, 3): start and size of a piece in `text`, and the content that follows it."""
    state: NDArray[np.int64]
    """Pieces, 0 without a template; values of other shapes since."""


def new_trace(contents: int) -> Trace:
    """Room for so many contents."""
    kind, start, stop = (np.zeros(max(contents, 1), np.int64) for _ in range(3))
    return Trace(kind, start, stop, np.zeros((MAX_SCALARS, 3), np.int64), np.zeros(MAX_DEPTH + 2, np.int64))


def new_template() -> Template:
    """Nothing known yet."""
    text = np.zeros(TEMPLATE_BYTES + PADDING, np.uint8)
    return Template(text, np.zeros((MAX_SCALARS + 1, 3), np.int64), np.zeros(2, np.int64))


@hot
def field_of(data: Any, at: int, size: int, node: int, fields: Fields) -> int:
    """The field of this name in a node; -1 if it is not mapped."""
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
def read_value(  # noqa: C901, PLR0911, PLR0912, PLR0915 - compiled: one loop
    data: Any, at: int, fields: Fields, trace: Trace
) -> tuple[int, int]:
    """Read an object token by token: the position after it or UNUSUAL, and how many scalars it has."""
    count = 0
    at = after_space(data, at)
    if data[at] != OBJECT_OPENS:
        return UNUSUAL, count
    depth = 1
    objects = _ONE  # a bit for each level: 1 for an object
    seen = np.uint64(0)
    trace.nodes[1] = 0
    at = after_space(data, at + 1)
    while True:
        leaf = child = -1
        if objects & _ONE:
            if data[at] != QUOTE:
                return UNUSUAL, count
            start = at + 1
            at = plain_text(data, start)
            if at < 0:
                return UNUSUAL, count
            node = trace.nodes[depth]
            if node >= 0:
                field = field_of(data, start, at - start, node, fields)
                if field >= 0:
                    bit = _ONE << np.uint64(field)
                    if seen & bit:
                        return UNUSUAL, count
                    seen |= bit
                    leaf = fields.leaf[field]
                    child = fields.node[field]
            at = after_space(data, at + 1)
            if data[at] != COLON:
                return UNUSUAL, count
            at = after_space(data, at + 1)
        byte = data[at]
        if byte == OBJECT_OPENS or byte == ARRAY_OPENS:  # noqa: PLR1714, SIM109 - compiled
            if leaf >= 0 or (child >= 0 and byte != OBJECT_OPENS) or depth >= MAX_DEPTH:
                return UNUSUAL, count
            depth += 1
            trace.nodes[depth] = child
            objects <<= _ONE
            if byte == OBJECT_OPENS:
                objects |= _ONE
            at = after_space(data, at + 1)
            if data[at] != (OBJECT_CLOSES if byte == OBJECT_OPENS else ARRAY_CLOSES):
                continue
        else:
            if child >= 0:
                return UNUSUAL, count
            start = at
            at, kind = scalar_after(data, at)
            if at < 0:
                return UNUSUAL, count
            if leaf >= 0:
                trace.kind[leaf] = kind
                trace.start[leaf] = start
                trace.stop[leaf] = at
            if count < MAX_SCALARS:
                trace.scalars[count, 0] = start
                trace.scalars[count, 1] = at
                trace.scalars[count, 2] = leaf
            count += 1
            at = after_space(data, at)
        while data[at] != COMMA:
            if data[at] != (OBJECT_CLOSES if objects & _ONE else ARRAY_CLOSES):
                return UNUSUAL, count
            at += 1
            depth -= 1
            objects >>= _ONE
            if depth == 0:
                return at, count
            at = after_space(data, at)
        at = after_space(data, at + 1)


@hot
def fits(data: Any, at: int, end: int, template: Template, trace: Trace) -> bool:
    """Tell whether the value has the shape of the template; then its fields are in the trace."""
    last = template.state[0] - 1
    for i in range(last):
        size = template.pieces[i, 1]
        if at + size > end or not same(data, at, template.text, template.pieces[i, 0], size):
            return False
        start = at + size
        at, kind = scalar_after(data, start)
        if at < 0:
            return False
        leaf = template.pieces[i, 2]
        if leaf >= 0:
            trace.kind[leaf] = kind
            trace.start[leaf] = start
            trace.stop[leaf] = at
    size = template.pieces[last, 1]
    return at + size == end and same(data, at, template.text, template.pieces[last, 0], size)


@hot
def learn(data: Any, at: int, end: int, count: int, template: Template, trace: Trace) -> None:
    """Make the value just read, with `count` scalars, the template, if it is time and there is room."""
    if template.state[0] > 0:
        template.state[1] += 1
        if template.state[1] < LEARN_EVERY:
            return
    if count > MAX_SCALARS or end - at > TEMPLATE_BYTES:
        return
    place = 0
    for i in range(count + 1):
        stop = trace.scalars[i, 0] if i < count else end
        template.pieces[i, 0] = place
        template.pieces[i, 1] = stop - at
        template.pieces[i, 2] = trace.scalars[i, 2] if i < count else -1
        template.text[place : place + stop - at] = data[at:stop]
        place += stop - at
        at = trace.scalars[i, 1] if i < count else end
    template.state[0] = count + 1
    template.state[1] = 0


@hot
def found(data: Any, at: int, end: int, fields: Fields, template: Template, trace: Trace) -> bool:
    """Find the mapped fields of the value from `at` to `end`; False if it is unusual."""
    trace.kind[:] = ABSENT
    if template.state[0] > 0:
        if fits(data, at, end, template, trace):
            return True
        trace.kind[:] = ABSENT
    stop, count = read_value(data, at, fields, trace)
    if stop < 0 or stop > end:
        return False
    while stop < end and (data[stop] == 32 or data[stop] == 10 or data[stop] == 13 or data[stop] == 9):
        stop += 1
    if stop != end:
        return False
    learn(data, at, end, count, template, trace)
    return True
