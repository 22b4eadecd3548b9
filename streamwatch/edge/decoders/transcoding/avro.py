"""Avro values → JSON text of wanted parts: a schema becomes a program, which one compiled loop runs.

The encoding is that of the specification ("Data Serialization and Deserialization", "Binary Encoding").
Blocks of items that are preceded by their size are unusual; schemas whose wanted parts are bytes (`bytes` or
`fixed`) have no program.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, word_at
from streamwatch.core.records.fetched import PADDING
from streamwatch.edge.decoders.scanner.text import (
    ARRAY_CLOSES,
    ARRAY_OPENS,
    COLON,
    COMMA,
    OBJECT_CLOSES,
    OBJECT_OPENS,
)
from streamwatch.edge.decoders.transcoding.wanted import EVERYTHING, MARGIN, Bound, Texts, Wanted, with_room
from streamwatch.edge.decoders.transcoding.writing import (
    is_utf8,
    varint,
    write_bool,
    write_constant,
    write_double,
    write_text,
    write_whole,
    zigzag,
)

MAX_STEPS: Final = 16_384
"""Steps of a program at most; schemas that need more have none."""
MAX_OPEN: Final = 64
"""Depth at most of arrays, maps and calls of records."""
MAX_DECIMAL_BYTES: Final = 64
_MAX_BYTES: Final = 1 << 31

END, CONSTANT, FIXED, DOUBLE, FLOAT, BOOL, GOTO, CALL, RETURN, ITEMS, NEXT = range(11)
LONG, TEXT, BYTES, ENUM, UNION = range(11, 16)
"""Kinds of steps; values at those from LONG on begin with a varint."""


class Program(NamedTuple):
    """Steps by which the compiled loop reads a value of one schema and writes its wanted parts."""

    steps: NDArray[np.int64]
    """Shape (n, 4): the kind of each step, and up to three numbers.

    CONSTANT: start and size of text in `texts`. FIXED: number of bytes. GOTO, CALL: number of the step.
    ITEMS, NEXT: whether items are written, whether it is a map; and for NEXT the step after the last item.
    LONG, TEXT, BOOL: whether it is written. BYTES: the largest size. UNION: index of its first branch in
    `targets`, number of branches. ENUM: index of its first symbol in `symbols`, number of symbols, whether it
    is written.
    """
    texts: NDArray[np.uint8]
    symbols: NDArray[np.int64]
    """Shape (n, 2): start and size of a symbol's JSON in `texts`."""
    targets: NDArray[np.int64]
    """Number of the step at which each branch of a union begins."""


class AvroTranscoder:
    """`Transcoder` for one Avro schema.

    Parameters
    ----------
    program
        Program of the schema and of its wanted parts.
    bound
        Bytes of JSON that a value may become.
    """

    def __init__(self, program: Program, bound: Bound) -> None:
        self._program = program
        self._bound = bound
        self._open = np.zeros((MAX_OPEN + 1, 3), np.int64)

    def texts(self, data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> Texts:
        """Write the wanted parts of values as JSON texts."""
        return with_room(partial(transcode_avro, self._program, self._open), data, starts, stops, self._bound)


def compile_avro_transcoder() -> None:
    """Compile `transcode_avro` (takes seconds), or load it from the cache of compiled functions."""
    program = avro_program("null", {}, EVERYTHING)
    assert program is not None  # noqa: S101 - of two steps
    none = np.zeros(0, np.int64)
    AvroTranscoder(program, Bound(0, 0)).texts(np.zeros(PADDING, np.uint8), none, none)


def avro_program(top: Any, named: Mapping[str, Any], wanted: Wanted) -> Program | None:
    """Make the program of a schema.

    None where a wanted part is `bytes` or `fixed`, a wanted record has two fields of one name, or it needs
    too many steps.

    Parameters
    ----------
    top, named
        The schema as fastavro parsed it, with no logical types but decimals and UUIDs; and its named types.
    wanted
        Parts to write.
    """
    maker = _Maker(named)
    try:
        return maker.program(top, wanted)
    except _NotWrittenError:
        return None


class _NotWrittenError(Exception):
    """A schema, or a wanted part of it, has no program."""


def _kind_of(node: Any) -> str:
    return node if isinstance(node, str) else node["type"]


class _Maker:
    """Builder of the program of one schema."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._steps: list[list[int]] = []
        self._texts = bytearray()
        self._pending = bytearray()
        self._symbols: list[tuple[int, int]] = []
        self._targets: list[int] = []
        self._calls: dict[str, list[int]] = {}
        """Name of a record that is skipped → the CALL steps whose target its steps will be."""
        self._begun: dict[str, int] = {}
        self._enums: dict[str, int] = {}
        self._encoded = msgspec.json.Encoder().encode

    def program(self, top: Any, wanted: Wanted) -> Program:
        """Build the program: steps of the schema, then those that skip named records."""
        self._write(top, wanted)
        self._flush()
        self._step(END)
        while waiting := self._calls.keys() - self._begun.keys():
            name = min(waiting)
            self._begun[name] = len(self._steps)
            for each in self._named[name]["fields"]:
                self._skip(each["type"])
            self._step(RETURN)
        for name, calls in self._calls.items():
            for call in calls:
                self._steps[call][1] = self._begun[name]
        return Program(
            np.array(self._steps, np.int64).reshape(-1, 4),
            np.frombuffer(bytes(self._texts) + bytes(PADDING), np.uint8),
            np.array(self._symbols, np.int64).reshape(-1, 2),
            np.array(self._targets, np.int64),
        )

    def _step(self, what: int, a: int = 0, b: int = 0, c: int = 0) -> int:
        if len(self._steps) >= MAX_STEPS:
            raise _NotWrittenError
        self._steps.append([what, a, b, c])
        return len(self._steps) - 1

    def _text(self, text: bytes) -> tuple[int, int]:
        start = len(self._texts)
        self._texts += text
        return start, len(text)

    def _flush(self) -> None:
        """Add a step that writes the pending constant text."""
        if self._pending:
            self._step(CONSTANT, *self._text(bytes(self._pending)))
            self._pending.clear()

    def _definition(self, node: Any) -> Any:
        """Resolve a reference to a named type, or a nested type, to its definition."""
        if isinstance(node, str):
            return self._named.get(node, node)
        if isinstance(node, dict) and isinstance(cast("dict[str, Any]", node)["type"], dict | list):
            return self._definition(cast("dict[str, Any]", node)["type"])
        return node

    def _skip(self, node: Any) -> None:
        """Add the steps that read a content without writing it."""
        node = self._definition(node)
        if isinstance(node, list):
            self._union(cast("list[Any]", node), None)
            return
        match _kind_of(node):
            case "record" | "error":
                self._calls.setdefault(node["name"], []).append(self._step(CALL))
            case "array" | "map" as kind:
                self._items(node, kind, None)
            case "double":
                self._step(FIXED, 8)
            case "float":
                self._step(FIXED, 4)
            case "fixed":
                self._step(FIXED, node["size"])
            case "null":
                pass
            case kind:
                self._scalar(node, kind, written=False)

    def _write(self, node: Any, wanted: Wanted) -> None:
        """Add the steps that write the wanted parts of a content."""
        node = self._definition(node)
        if isinstance(node, list):
            self._union(cast("list[Any]", node), wanted)
            return
        match _kind_of(node):
            case "record" | "error":
                self._record(node, wanted)
            case "array" if wanted.elements is not None and not wanted.whole:
                self._items(node, "array", wanted.elements)
            case "array" | "map" as kind:
                self._items(node, kind, EVERYTHING)
            case "null":
                self._pending += b"null"
            case kind:
                self._flush()
                self._scalar(node, kind, written=True)

    def _record(self, node: Mapping[str, Any], wanted: Wanted) -> None:
        names = [each["name"] for each in node["fields"]]
        if len(set(names)) < len(names):
            raise _NotWrittenError
        self._pending += b"{"
        is_first = True
        for each in node["fields"]:
            inside = EVERYTHING if wanted.whole else wanted.fields.get(each["name"])
            if inside is None:
                self._skip(each["type"])
                continue
            self._pending += (b"" if is_first else b",") + self._encoded(each["name"]) + b":"
            is_first = False
            self._write(each["type"], inside)
        self._pending += b"}"

    def _union(self, branches: list[Any], wanted: Wanted | None) -> None:
        if wanted is not None:
            self._flush()
        first = len(self._targets)
        self._targets += [0] * len(branches)
        self._step(UNION, first, len(branches))
        ends: list[int] = []
        for i, branch in enumerate(branches):
            self._targets[first + i] = len(self._steps)
            if wanted is None:
                self._skip(branch)
            else:
                self._write(branch, wanted)
                self._flush()
            ends.append(self._step(GOTO))
        for end in ends:
            self._steps[end][1] = len(self._steps)

    def _items(self, node: Mapping[str, Any], kind: str, wanted: Wanted | None) -> None:
        written, is_map = wanted is not None, kind == "map"
        if written:
            self._flush()
        self._step(ITEMS, written, is_map)
        following = self._step(NEXT, written, is_map)
        inner = node["values" if is_map else "items"]
        if wanted is None:
            self._skip(inner)
        else:
            self._write(inner, wanted)
            self._flush()
        self._step(GOTO, following)
        self._steps[following][3] = len(self._steps)

    def _symbols_of(self, node: Mapping[str, Any]) -> int:
        """Return the index of an enum's first symbol; its symbols are added once."""
        name = node["name"]
        if name not in self._enums:
            self._enums[name] = len(self._symbols)
            self._symbols += [self._text(self._encoded(symbol)) for symbol in node["symbols"]]
        return self._enums[name]

    def _scalar(self, node: Any, kind: str, *, written: bool) -> None:
        match kind:
            case "boolean":
                self._step(BOOL, written)
            case "int" | "long":
                self._step(LONG, written)
            case "string":
                self._step(TEXT, written)
            case "double":
                self._step(DOUBLE)
            case "float":
                self._step(FLOAT)
            case "enum":
                first = self._symbols_of(node) if written else 0
                self._step(ENUM, first, len(node["symbols"]), written)
            case "bytes" if not written:
                decimal = isinstance(node, dict) and "scale" in node
                self._step(BYTES, MAX_DECIMAL_BYTES if decimal else _MAX_BYTES)
            case _:
                raise _NotWrittenError


@entry
def transcode_avro(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917 - compiled: arrays, one loop
    program: Program,
    opened: Any,
    data: Any,
    starts: Any,
    stops: Any,
    out: Any,
    begins: Any,
    sizes: Any,
    progress: Any,
) -> None:
    """Run a program over values; unusual ones get the size -1.

    Parameters
    ----------
    program
        Program of the schema.
    opened
        int64 (n, 3), a stack: items left of an array or map, whether one was written, and the step after a
        called record. Overwritten.
    data, starts, stops
        Bytes, followed by `PADDING` more; first position of each value, and the position after it.
    out, begins, sizes, progress
        As `with_room` passes them.
    """
    steps = program.steps
    texts = program.texts
    symbols = program.symbols
    targets = program.targets
    room = len(out) - MARGIN
    used = progress[1]
    i = progress[0]
    while i < len(starts):
        at = starts[i]
        stop = stops[i]
        end = used
        step = depth = 0
        good = True
        is_full = False
        while True:
            what = steps[step, 0]
            a = steps[step, 1]
            step += 1
            if what >= LONG:
                number, at = varint(data, at, stop)
                if at < 0:
                    good = False
                    break
                n = zigzag(number)
                if what == LONG:
                    if a:
                        if end > room:
                            is_full = True
                            break
                        end = write_whole(n, out, end)
                elif what == TEXT:
                    if n < 0 or n > stop - at:
                        good = False
                        break
                    if a:
                        if end + n > room:
                            is_full = True
                            break
                        end = write_text(data, at, at + n, out, end)
                        if end < 0:
                            good = False
                            break
                    elif not is_utf8(data, at, at + n):
                        good = False
                        break
                    at += n
                elif what == BYTES:
                    if n < 0 or n > stop - at or n > a:
                        good = False
                        break
                    at += n
                else:
                    if n < 0 or n >= steps[step - 1, 2]:
                        good = False
                        break
                    if what == UNION:
                        step = targets[a + n]
                    elif steps[step - 1, 3]:
                        if end + symbols[a + n, 1] > room:
                            is_full = True
                            break
                        end = write_constant(texts, symbols[a + n, 0], symbols[a + n, 1], out, end)
            elif what == CONSTANT:
                size = steps[step - 1, 2]
                if end + size > room:
                    is_full = True
                    break
                end = write_constant(texts, a, size, out, end)
            elif what == FIXED:
                if a > stop - at:
                    good = False
                    break
                at += a
            elif what == DOUBLE or what == FLOAT:  # noqa: PLR1714, SIM109 - compiled
                width = 8 if what == DOUBLE else 4
                if width > stop - at:
                    good = False
                    break
                if end > room:
                    is_full = True
                    break
                word = word_at(data, at)
                if what == DOUBLE:
                    value = np.uint64(word).view(np.float64)
                else:
                    value = np.float64(np.uint32(word & np.uint64(0xFFFFFFFF)).view(np.float32))
                end = write_double(value, out, end)
                if end < 0:
                    good = False
                    break
                at += width
            elif what == BOOL:
                if at >= stop or data[at] > 1:
                    good = False
                    break
                if a:
                    if end > room:
                        is_full = True
                        break
                    end = write_bool(data[at] == 1, out, end)
                at += 1
            elif what == GOTO:
                step = a
            elif what == NEXT:
                is_map = steps[step - 1, 2]
                if opened[depth, 0] == 0:
                    number, at = varint(data, at, stop)
                    count = zigzag(number)
                    if at < 0 or count < 0 or count > stop - at:  # each item takes a byte or more
                        good = False
                        break
                    if count == 0:
                        if a:
                            if end > room:
                                is_full = True
                                break
                            out[end] = OBJECT_CLOSES if is_map else ARRAY_CLOSES
                            end += 1
                        depth -= 1
                        step = steps[step - 1, 3]
                        continue
                    opened[depth, 0] = count
                opened[depth, 0] -= 1
                if a:
                    if end > room:
                        is_full = True
                        break
                    if opened[depth, 1]:
                        out[end] = COMMA
                        end += 1
                    opened[depth, 1] = 1
                if is_map:
                    number, at = varint(data, at, stop)
                    n = zigzag(number)
                    if at < 0 or n < 0 or n > stop - at:
                        good = False
                        break
                    if a:
                        if end + n > room:
                            is_full = True
                            break
                        end = write_text(data, at, at + n, out, end)
                        if end < 0:
                            good = False
                            break
                        out[end] = COLON
                        end += 1
                    elif not is_utf8(data, at, at + n):
                        good = False
                        break
                    at += n
            elif what == ITEMS or what == CALL:  # noqa: PLR1714, SIM109 - compiled
                depth += 1
                if depth > MAX_OPEN:
                    good = False
                    break
                if what == CALL:
                    opened[depth, 2] = step
                    step = a
                else:
                    opened[depth, 0] = opened[depth, 1] = 0
                    if a:
                        if end > room:
                            is_full = True
                            break
                        out[end] = OBJECT_OPENS if steps[step - 1, 2] else ARRAY_OPENS
                        end += 1
            elif what == RETURN:
                step = opened[depth, 2]
                depth -= 1
            elif what == END:
                good = at == stop
                break
            else:
                good = False
                break
        if is_full:
            break
        if good:
            begins[i] = used
            sizes[i] = end - used
            used = end
        i += 1
    progress[0] = i
    progress[1] = used
