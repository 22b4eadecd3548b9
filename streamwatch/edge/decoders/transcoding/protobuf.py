"""Protocol Buffers → JSON text of wanted parts: one compiled loop finds fields, then writes them.

The encoding is that of the guide ("Encoding", protobuf.dev). All fields of a message are checked against its
descriptor, so that everything the library would refuse is found: text that is no UTF-8, lengths that do not
fit. Unusual, and left to the library, are groups, messages of `google.protobuf`, a singular field that occurs
twice, several members of one `oneof`, and numbers beyond the range of their type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, hot, inner, word_at
from streamwatch.core.records.fetched import PADDING
from streamwatch.edge.decoders.scanner.text import (
    ARRAY_CLOSES,
    ARRAY_OPENS,
    COLON,
    COMMA,
    OBJECT_CLOSES,
    OBJECT_OPENS,
    QUOTE,
    UNUSUAL,
)
from streamwatch.edge.decoders.transcoding.wanted import MARGIN, Bound, Texts, Wanted, with_room
from streamwatch.edge.decoders.transcoding.writing import (
    is_utf8,
    signed,
    varint,
    write_bool,
    write_constant,
    write_digits,
    write_double,
    write_text,
    write_whole,
    zigzag,
)

MAX_NODES: Final = 512
"""Nodes of a layout at most; a message with more has none."""
MAX_FIELDS: Final = 4_096
MAX_OPEN: Final = 60
"""Depth of nested messages at most; deeper values are unusual."""

VARINT_WIRE, EIGHT_WIRE, BYTES_WIRE, FOUR_WIRE = 0, 1, 2, 5
"""Wire types."""
INT64, INT32, UINT64, UINT32, SINT64, SINT32, BOOL, ENUM = range(8)
FIXED64, SFIXED64, DOUBLE = range(8, 11)
FIXED32, SFIXED32, FLOAT = range(11, 14)
TEXT, BYTES, MESSAGE, REFUSED = range(14, 18)
"""Kinds of contents, grouped by wire type: varints, eight bytes, four bytes, length-delimited. A value with a
field that is REFUSED is unusual."""
_KINDS: Final = {
    1: DOUBLE,
    2: FLOAT,
    3: INT64,
    4: UINT64,
    5: INT32,
    6: FIXED64,
    7: FIXED32,
    8: BOOL,
    9: TEXT,
    11: MESSAGE,
    12: BYTES,
    13: UINT32,
    14: ENUM,
    15: SFIXED32,
    16: SFIXED64,
    17: SINT32,
    18: SINT64,
}
"""`FieldDescriptorProto.Type` → kind; groups have none."""

END, CONSTANT, NAME, IF_THERE, SCALAR, LIST, MAP = range(7)
"""Kinds of steps that write the found contents."""


class Layout(NamedTuple):
    """Fields of a message for the compiled loop, and the steps that write the wanted ones."""

    first: NDArray[np.int64]
    """By node (a message at one path, or a type without wanted fields): index of its first field. The fields
    of a node are sorted by number, and end where those of the next node begin."""
    cost: NDArray[np.int64]
    """By node: bytes of JSON that a message without any field on the wire may become."""
    number: NDArray[np.int64]
    """Number of each field; the next six columns are by field, too."""
    kind: NDArray[np.int64]
    repeated: NDArray[np.int64]
    node: NDArray[np.int64]
    """Node of a message; else -1."""
    slot: NDArray[np.int64]
    """Slot of a wanted content; else -1."""
    once: NDArray[np.int64]
    """Number of the group of fields of which only one may occur, once; else -1."""
    charge: NDArray[np.int64]
    """Bytes of JSON that a content may add beyond its own bytes: the longest name of an enum's value."""
    steps: NDArray[np.int64]
    """Shape (n, 6): the kind of each step, and up to five numbers. CONSTANT: start and size in `texts`. NAME:
    the same, written after a comma unless it is the first. IF_THERE: slot, step to continue with if it is
    absent. SCALAR: slot, kind, first and end of its enum's names in `names`. LIST: the same, and the field's
    number. MAP: slot, kind of values, the field's number."""
    texts: NDArray[np.uint8]
    names: NDArray[np.int64]
    """Shape (n, 3): number of an enum's value (sorted), start and size of its name in `texts`."""


class ProtobufTranscoder:
    """`Transcoder` for messages of one type.

    Parameters
    ----------
    layout
        Layout of the message.
    slots
        Number of wanted contents.
    preface
        Bytes that each value must begin with, before its message.
    bound
        Bytes of JSON that a value may become.
    """

    def __init__(self, layout: Layout, slots: int, preface: bytes, bound: Bound) -> None:
        self._layout = layout
        self._preface = np.frombuffer(preface, np.uint8)
        self._bound = bound
        self._found = np.zeros((max(slots, 1), 2), np.int64)
        self._seen = np.zeros(max(int(layout.once.max(initial=-1)) + 1, 1), np.int64)
        self._open = np.zeros((MAX_OPEN + 2, 2), np.int64)

    def texts(self, data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> Texts:
        """Write the wanted parts of values as JSON texts."""
        room = self._found, self._seen, self._open, self._preface
        scan = partial(transcode_protobuf, self._layout, *room, self._bound.free, self._bound.per_byte)
        return with_room(scan, data, starts, stops, self._bound)


def compile_protobuf_transcoder() -> None:
    """Compile `transcode_protobuf` (takes seconds), or load it from the cache of compiled functions."""
    none = np.zeros(0, np.int64)
    columns = none, none, none, none, none, none, none
    steps, names = np.zeros((0, 6), np.int64), np.zeros((0, 3), np.int64)
    layout = Layout(none, none, *columns, steps, np.frombuffer(bytes(PADDING), np.uint8), names)
    ProtobufTranscoder(layout, 0, b"", Bound(0, 0)).texts(np.zeros(PADDING, np.uint8), none, none)


def protobuf_layout(
    descriptor: Any, wanted: Wanted, own: Callable[[str], bool], field_text: int
) -> tuple[Layout, int] | None:
    """Make the layout of a message, and the number of its slots; None where it is not supported.

    Parameters
    ----------
    descriptor
        The library's descriptor of the message.
    wanted
        Parts to write.
    own
        Function that tells whether the library converts messages of a full name by rules of their own.
    field_text
        Bytes of JSON that are allowed for a field beyond its name.
    """
    maker = _Maker(own, field_text)
    try:
        return maker.layout(descriptor, wanted), maker.slots
    except _NotWrittenError:
        return None


_Column: TypeAlias = NDArray[np.int64]
_Columns: TypeAlias = tuple[_Column, _Column, _Column, _Column, _Column, _Column, _Column]


class _NotWrittenError(Exception):
    """A message, or a wanted part of it, has no layout."""


class _Maker:
    """Builder of the layout of one message."""

    def __init__(self, own: Callable[[str], bool], field_text: int) -> None:
        self._own = own
        self._field_text = field_text
        self._nodes: list[list[tuple[int, ...]]] = []
        self._costs: list[int] = []
        self._passed: dict[str, int] = {}
        """Full name of a type without wanted fields → its node."""
        self._waiting: list[tuple[int, Any]] = []
        self._steps: list[list[int]] = []
        self._texts = bytearray()
        self._names: list[tuple[int, int, int]] = []
        self._enums: dict[str, tuple[int, int]] = {}
        self._once = 0
        self.slots = 0
        self._encoded = msgspec.json.Encoder().encode

    def layout(self, descriptor: Any, wanted: Wanted) -> Layout:
        """Build the layout."""
        if wanted.whole or self._own(descriptor.full_name):
            raise _NotWrittenError
        self._object(descriptor, wanted)
        self._step(END)
        while self._waiting:
            node, waiting = self._waiting.pop()
            self._nodes[node] = [self._field(each, -1, -1, None) for each in self._fields(waiting)]
        nodes = [sorted(node) for node in self._nodes]
        fields = np.array([each for node in nodes for each in node], np.int64).reshape(-1, 7)
        if len(fields) > MAX_FIELDS:
            raise _NotWrittenError
        columns = cast("_Columns", tuple(np.ascontiguousarray(column) for column in fields.T))
        return Layout(
            np.cumsum([0, *map(len, nodes)]).astype(np.int64),
            np.array(self._costs, np.int64),
            *columns,
            np.array(self._steps, np.int64).reshape(-1, 6),
            np.frombuffer(bytes(self._texts) + bytes(PADDING), np.uint8),
            np.array(self._names, np.int64).reshape(-1, 3),
        )

    def _step(self, what: int, *numbers: int) -> int:
        self._steps.append([what, *numbers, *[0] * (5 - len(numbers))])
        return len(self._steps) - 1

    def _text(self, text: bytes) -> tuple[int, int]:
        start = len(self._texts)
        self._texts += text
        return start, len(text)

    def _new_node(self, descriptor: Any) -> int:
        if len(self._nodes) >= MAX_NODES:
            raise _NotWrittenError
        self._nodes.append([])
        self._costs.append(sum(map(self._cost, descriptor.fields)) + self._field_text)
        return len(self._nodes) - 1

    def _cost(self, field: Any) -> int:
        """Return the bytes of JSON that an absent field may become."""
        return len(field.name.encode()) + self._field_text + self._longest(field)

    def _longest(self, field: Any) -> int:
        if field.enum_type is None:
            return 0
        return max((len(value.name.encode()) for value in field.enum_type.values), default=0)

    def _fields(self, descriptor: Any) -> Sequence[Any]:
        if descriptor.is_extendable or any(field.is_required for field in descriptor.fields):
            raise _NotWrittenError
        return descriptor.fields

    def _passed_over(self, descriptor: Any) -> int:
        """Return the node of a type without wanted fields, made at its first use."""
        name = descriptor.full_name
        if name not in self._passed:
            self._passed[name] = self._new_node(descriptor)
            self._waiting.append((self._passed[name], descriptor))
        return self._passed[name]

    def _field(self, field: Any, slot: int, once: int, node: int | None) -> tuple[int, ...]:
        """Return a field's row for the columns; a message without a given node gets that of its type."""
        kind = _KINDS.get(field.type, REFUSED)
        if kind == MESSAGE and self._own(field.message_type.full_name):
            kind = REFUSED
        if kind == MESSAGE and node is None:
            node = self._passed_over(field.message_type)
        below = -1 if node is None else node
        return field.number, kind, int(field.is_repeated), below, slot, once, self._longest(field)

    def _object(self, descriptor: Any, wanted: Wanted) -> int:
        """Add a message with wanted fields, and the steps that write it; return its node."""
        node, laid = self._new_node(descriptor), list[tuple[int, ...]]()
        self._step(CONSTANT, *self._text(b"{"))
        fields = self._fields(descriptor)
        groups = {
            id_: self._next_once()
            for id_ in {each.containing_oneof.full_name for each in fields if each.containing_oneof}
        }
        for field in fields:
            once = groups[field.containing_oneof.full_name] if field.containing_oneof else -1
            inside = wanted.fields.get(field.name)
            if inside is None:
                laid.append(self._field(field, -1, once, None))
                continue
            if once < 0 and not field.is_repeated:
                once = self._next_once()
            laid.append(self._wanted_field(field, inside, once))
        self._step(CONSTANT, *self._text(b"}"))
        self._nodes[node] = laid
        return node

    def _next_once(self) -> int:
        self._once += 1
        return self._once - 1

    def _wanted_field(self, field: Any, inside: Wanted, once: int) -> tuple[int, ...]:
        slot, node = self.slots, None
        self.slots += 1
        skip = self._step(IF_THERE, slot) if field.has_presence else -1
        self._step(NAME, *self._text(self._encoded(field.name) + b":"))
        entry_ = field.message_type if field.is_repeated else None
        kind = _KINDS.get(field.type, REFUSED)
        if entry_ is not None:
            if not entry_.GetOptions().map_entry:
                raise _NotWrittenError
            key, value = (entry_.fields_by_name[name] for name in ("key", "value"))
            if _KINDS.get(key.type) != TEXT or not self._is_written(value) or value.enum_type is not None:
                raise _NotWrittenError
            self._step(MAP, slot, _KINDS[value.type], field.number)
        elif kind == MESSAGE:
            if inside.whole or self._own(field.message_type.full_name):
                raise _NotWrittenError
            node = self._object(field.message_type, inside)
        elif not self._is_written(field):
            raise _NotWrittenError
        else:
            self._step(
                LIST if field.is_repeated else SCALAR, slot, kind, *self._names_of(field), field.number
            )
        if skip >= 0:
            self._steps[skip][2] = len(self._steps)
        return self._field(field, slot, once, node)

    @staticmethod
    def _is_written(field: Any) -> bool:
        return _KINDS.get(field.type, REFUSED) not in {BYTES, MESSAGE, REFUSED}

    def _names_of(self, field: Any) -> tuple[int, int]:
        """Return first and end, in `names`, of the names of an enum's values; (0, 0) for other fields."""
        if field.enum_type is None:
            return 0, 0
        name = field.enum_type.full_name
        if name not in self._enums:
            first = len(self._names)
            for number, value in sorted(field.enum_type.values_by_number.items()):
                self._names.append((number, *self._text(self._encoded(value.name))))
            self._enums[name] = first, len(self._names)
        return self._enums[name]


@hot
def _field_of(number: int, node: int, layout: Layout) -> int:
    """Return the index of the field with this number in a node; -1 if there is none."""
    low, high = layout.first[node], layout.first[node + 1]
    while low < high:
        middle = (low + high) >> 1
        if layout.number[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low if low < layout.first[node + 1] and layout.number[low] == number else -1


@hot
def _wire_of(kind: int) -> int:
    if kind <= ENUM:
        return VARINT_WIRE
    if kind <= DOUBLE:
        return EIGHT_WIRE
    return FOUR_WIRE if kind <= FLOAT else BYTES_WIRE


@hot
def _after_content(data: Any, at: int, stop: int, wire: int) -> int:
    """Return the position after a content of a wire type; UNUSUAL where it is invalid."""
    if wire == VARINT_WIRE:
        _, at = varint(data, at, stop)
        return at
    if wire == EIGHT_WIRE:
        return at + 8 if stop - at >= 8 else UNUSUAL
    if wire == FOUR_WIRE:
        return at + 4 if stop - at >= 4 else UNUSUAL
    if wire != BYTES_WIRE:
        return UNUSUAL
    size, at = varint(data, at, stop)
    if at < 0 or size > np.uint64(stop - at):
        return UNUSUAL
    return at + signed(size)


@hot
def _find(  # noqa: C901, PLR0911, PLR0912, PLR0913, PLR0915, PLR0917 - compiled: a way out each
    layout: Layout, data: Any, at: int, end: int, found: Any, seen: Any, opened: Any, most: int
) -> bool:
    """Check all of a message and note its wanted contents in `found`; False if it is unusual."""
    for i in range(len(found)):
        found[i, 0] = -1
    for i in range(len(seen)):
        seen[i] = 0
    depth = node = 0
    cost = layout.cost[0]
    stop = end
    while True:
        if at == stop:
            if depth == 0:
                return cost <= most
            stop, node = opened[depth, 0], opened[depth, 1]
            depth -= 1
            continue
        begin = at
        tag, at = varint(data, at, stop)
        if at < 0 or tag >= np.uint64(1 << 32):
            return False
        wire, number = signed(tag) & 7, signed(tag) >> 3
        if number == 0:
            return False
        field = _field_of(number, node, layout)
        start = at
        if wire == BYTES_WIRE:
            size, start = varint(data, at, stop)
            if start < 0 or size > np.uint64(stop - start):
                return False
            at = start + signed(size)
        else:
            at = _after_content(data, at, stop, wire)
            if at < 0:
                return False
        if field < 0:
            continue
        kind = layout.kind[field]
        if kind == REFUSED:
            return False
        once = layout.once[field]
        if once >= 0:
            if seen[once]:
                return False
            seen[once] = 1
        natural = _wire_of(kind)
        if wire != natural:
            if wire != BYTES_WIRE or not layout.repeated[field]:
                return False
            position = start
            while position < at:  # packed
                position = _after_content(data, position, at, natural)
                if position < 0:
                    return False
                cost += layout.charge[field]
        else:
            cost += layout.charge[field]
        if kind == TEXT and not is_utf8(data, start, at):
            return False
        slot = layout.slot[field]
        if slot >= 0:
            if found[slot, 0] < 0 or not layout.repeated[field]:
                found[slot, 0] = begin if layout.repeated[field] else start
            found[slot, 1] = at
        if kind == MESSAGE:
            depth += 1
            if depth > MAX_OPEN:
                return False
            opened[depth, 0], opened[depth, 1] = stop, node
            stop, at, node = at, start, layout.node[field]
            cost += layout.cost[node]


@inner
def _write_scalar(  # noqa: C901, PLR0911, PLR0912, PLR0913, PLR0917 - compiled: a kind each
    names: Any,
    texts: Any,
    data: Any,
    at: int,
    stop: int,
    kind: int,
    first: int,
    last: int,
    out: Any,
    end: int,
) -> int:
    """Write a scalar, or its default if `at` is negative; return the position after it, or UNUSUAL."""
    if kind == TEXT:
        if at < 0:
            out[end] = out[end + 1] = QUOTE
            return end + 2
        if end + stop - at > len(out) - MARGIN:
            return _FULL
        return write_text(data, at, stop, out, end)
    if kind <= ENUM:
        raw = np.uint64(0)
        if at >= 0:
            raw, _ = varint(data, at, stop)
        if kind == BOOL:
            return write_bool(raw == np.uint64(1), out, end) if raw <= np.uint64(1) else UNUSUAL
        if kind == UINT64 or kind == UINT32:  # noqa: PLR1714, SIM109 - compiled
            if kind == UINT32 and raw >= np.uint64(1 << 32):
                return UNUSUAL
            return write_digits(raw, out, end)
        if kind == SINT64 or kind == SINT32:  # noqa: PLR1714, SIM109 - compiled
            if kind == SINT32 and raw >= np.uint64(1 << 32):
                return UNUSUAL
            return write_whole(zigzag(raw), out, end)
        whole = signed(raw)
        if kind != INT64 and not -2147483648 <= whole <= 2147483647:
            return UNUSUAL
        if kind != ENUM:
            return write_whole(whole, out, end)
        while first < last:
            middle = (first + last) >> 1
            known = names[middle, 0]
            if known == whole:
                if end + names[middle, 2] > len(out) - MARGIN:
                    return _FULL
                return write_constant(texts, names[middle, 1], names[middle, 2], out, end)
            if known < whole:
                first = middle + 1
            else:
                last = middle
        return UNUSUAL
    word = word_at(data, at) if at >= 0 else np.uint64(0)
    if kind == FIXED64:
        return write_digits(word, out, end)
    if kind == SFIXED64:
        return write_whole(signed(word), out, end)
    if kind == DOUBLE:
        return write_double(np.uint64(word).view(np.float64), out, end)
    low = np.uint32(word & np.uint64(0xFFFFFFFF))
    if kind == FIXED32:
        return write_digits(np.uint64(low), out, end)
    if kind == SFIXED32:
        return write_whole(signed(low.view(np.int32)), out, end)
    return write_double(np.float64(low.view(np.float32)), out, end)


_FULL: Final = -2


@hot
def _write_list(layout: Layout, data: Any, at: int, stop: int, step: Any, out: Any, end: int) -> int:
    """Write a repeated field, whose contents lie between two positions, mixed with other fields."""
    kind, wanted = step[2], step[5]
    natural = _wire_of(kind)
    out[end] = ARRAY_OPENS
    end += 1
    is_first = True
    while 0 <= at < stop:
        tag, at = varint(data, at, stop)
        wire, begin = signed(tag) & 7, at
        at = _after_content(data, at, stop, wire)
        if signed(tag) >> 3 != wanted:
            continue
        if wire == BYTES_WIRE:
            _, begin = varint(data, begin, stop)
        while True:
            after = at
            if wire != natural:  # packed
                if begin == at:
                    break
                after = _after_content(data, begin, at, natural)
            if end > len(out) - MARGIN:
                return _FULL
            if not is_first:
                out[end] = COMMA
                end += 1
            is_first = False
            end = _write_scalar(
                layout.names, layout.texts, data, begin, after, kind, step[3], step[4], out, end
            )
            if end < 0:
                return end
            if wire == natural:
                break
            begin = after
    if end > len(out) - MARGIN:
        return _FULL
    out[end] = ARRAY_CLOSES
    return end + 1


@hot
def _write_map(  # noqa: C901, PLR0911, PLR0912 - compiled: scalars
    layout: Layout, data: Any, at: int, stop: int, step: Any, out: Any, end: int
) -> int:
    """Write a map with texts as keys, whose entries lie between two positions, mixed with other fields."""
    kind, wanted = step[2], step[3]
    out[end] = OBJECT_OPENS
    end += 1
    is_first = True
    while 0 <= at < stop:
        tag, at = varint(data, at, stop)
        begin = at
        at = _after_content(data, at, stop, signed(tag) & 7)
        if signed(tag) >> 3 != wanted:
            continue
        _, begin = varint(data, begin, stop)
        key = key_stop = value = value_stop = -1
        while begin < at:
            part, begin = varint(data, begin, at)
            start = begin
            begin = _after_content(data, start, at, signed(part) & 7)
            number = signed(part) >> 3
            if signed(part) & 7 == BYTES_WIRE:
                _, start = varint(data, start, at)
            if number == 1:
                if key >= 0:
                    return UNUSUAL
                key, key_stop = start, begin
            elif number == 2:
                if value >= 0:
                    return UNUSUAL
                value, value_stop = start, begin
            else:
                return UNUSUAL  # the library ignores such an entry
        if end > len(out) - MARGIN:
            return _FULL
        if not is_first:
            out[end] = COMMA
            end += 1
        is_first = False
        end = _write_scalar(layout.names, layout.texts, data, key, key_stop, TEXT, 0, 0, out, end)
        if end < 0:
            return end
        out[end] = COLON
        end += 1
        if end > len(out) - MARGIN:
            return _FULL
        end = _write_scalar(layout.names, layout.texts, data, value, value_stop, kind, 0, 0, out, end)
        if end < 0:
            return end
    if end > len(out) - MARGIN:
        return _FULL
    out[end] = OBJECT_CLOSES
    return end + 1


@hot
def _written(layout: Layout, data: Any, found: Any, out: Any, end: int) -> int:
    """Write the contents that were found; return the position after them, UNUSUAL, or `_FULL`."""
    i = 0
    while True:
        step = layout.steps[i]
        what = step[0]
        i += 1
        if end > len(out) - MARGIN:
            return _FULL
        if what == END:
            return end
        if what == CONSTANT or what == NAME:  # noqa: PLR1714, SIM109 - compiled
            if what == NAME and out[end - 1] != OBJECT_OPENS:
                out[end] = COMMA
                end += 1
            if end + step[2] > len(out) - MARGIN:
                return _FULL
            end = write_constant(layout.texts, step[1], step[2], out, end)
            continue
        slot = step[1]
        if what == IF_THERE:
            if found[slot, 0] < 0:
                i = step[2]
            continue
        at, stop = found[slot, 0], found[slot, 1]
        if what == SCALAR:
            end = _write_scalar(
                layout.names, layout.texts, data, at, stop, step[2], step[3], step[4], out, end
            )
        elif what == LIST:
            end = _write_list(layout, data, at, stop, step, out, end)
        else:
            end = _write_map(layout, data, at, stop, step, out, end)
        if end < 0:
            return end


@entry
def transcode_protobuf(  # noqa: PLR0913, PLR0917 - compiled: arrays
    layout: Layout,
    found: Any,
    seen: Any,
    opened: Any,
    preface: Any,
    free: int,
    per_byte: int,
    data: Any,
    starts: Any,
    stops: Any,
    out: Any,
    begins: Any,
    sizes: Any,
    progress: Any,
) -> None:
    """Write the wanted parts of values; unusual values get the size -1.

    Parameters
    ----------
    layout
        Layout of the message.
    found, seen, opened
        Overwritten: int64 (slots, 2), start and end of each wanted content; by group, whether one of its
        fields occurred; the stack of open messages, end and node of each.
    preface
        Bytes that each value must begin with, before its message.
    free, per_byte
        Bytes of JSON that a value may become: `free`, and `per_byte` for each of its bytes.
    data, starts, stops
        Bytes, followed by `PADDING` more; first position of each value, and the position after it.
    out, begins, sizes, progress
        As `with_room` passes them.
    """
    used = progress[1]
    i = progress[0]
    while i < len(starts):
        at, stop = starts[i], stops[i]
        good = stop - at >= len(preface)
        if good:
            for k in range(len(preface)):
                good = good and data[at + k] == preface[k]
        most = free + per_byte * (stop - at)
        if good and _find(layout, data, at + len(preface), stop, found, seen, opened, most):
            end = _written(layout, data, found, out, used)
            if end == _FULL:
                break
            if end >= 0:
                begins[i] = used
                sizes[i] = end - used
                used = end
        i += 1
    progress[0] = i
    progress[1] = used
