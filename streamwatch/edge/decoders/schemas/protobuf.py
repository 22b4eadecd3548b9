"""Protocol Buffers values → JSON text, read with descriptors that protoc compiles from the registry's text.

protoc is the reference compiler, so that imports, nested types, options and both syntaxes mean the same as
where the records were written. It runs in a process of its own: a text that makes it crash, hang or take too
much memory ends only that process.

Confluent's Python serializer registers the file's descriptor in base64 instead of a text. Confluent's
registry converts it to text, others return it unchanged: protoc accepts it instead of a file.
"""

from __future__ import annotations

import base64
import errno
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from copy import copy
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeAlias

import msgspec

from streamwatch.edge.decoders.schemas.schema import Schema, SchemaUnusable, Undecodable
from streamwatch.edge.decoders.transcoding.protobuf import ProtobufTranscoder, protobuf_layout
from streamwatch.edge.decoders.transcoding.wanted import EVERYTHING, Bound, Transcoder, Wanted

# Messages → JSON text.
#
# The text differs from the canonical JSON of Protocol Buffers: names of fields are those of the schema, and
# 64-bit numbers are numbers. As in it, enums are names, bytes are base64, timestamps are RFC 3339, an unset
# field without presence has its default, and an unset field with presence is omitted.


MAX_INDEXES: Final = 100
"""Length at most of the indexes by which a record names a nested message type."""
TEXT_PER_BYTE: Final = 128
"""Bytes of JSON per byte of a value at most, besides `MAX_FREE_TEXT`."""
MAX_FREE_TEXT: Final = 131_072
"""Bytes of JSON of a value at most that do not grow with its bytes: an empty message of two bytes becomes the
defaults of all its fields."""
MAX_TYPES: Final = 20_000
"""Message types of a file at most."""
MAX_NAMES: Final = 16 * 2**20
"""Characters at most in the full names of everything that a schema's files define."""
_FIELD_TEXT: Final = 32
"""Allowance per field for JSON beyond its name and contents, and for memory."""
_STRING: Final = 9
"""`FieldDescriptorProto.TYPE_STRING`."""
_NOTHING: Final = Wanted()
_FIRST: Final = b"\0"
"""Encoded indexes of the first message of a file."""
_AS_TEXT: Final = frozenset(
    {"google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.FieldMask"}
)
_BY_LIBRARY: Final = frozenset(
    {
        "google.protobuf.Struct",
        "google.protobuf.Value",
        "google.protobuf.ListValue",
        "google.protobuf.Any",
        *(
            f"google.protobuf.{name}Value"
            for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
        ),
    }
)

Convert: TypeAlias = Callable[[Any, list[int]], Any]
"""(content, [remaining bytes of JSON]) → a value that JSON can express; the list's number is reduced."""
Member: TypeAlias = tuple[str, bool, Convert | None]
"""(name of a field, whether it has presence, its conversion); None where contents need none."""


class ProtobufReader:
    """`ValueReader` of the messages of one file.

    Parameters
    ----------
    files
        FileDescriptorSet of the file and its imports.
    main
        Name of the file whose messages values are.
    message
        Full name of the message of all values, empty for the file's first; None where values name theirs by
        indexes.

    Raises
    ------
    SchemaUnusable
        There is no such message, there are too many, the names in all files are too long, or descriptors do
        not fit together.
    """

    def __init__(self, files: Any, main: str, message: str | None) -> None:
        from google.protobuf import descriptor_pool, message_factory  # noqa: PLC0415 - an extra
        from google.protobuf.message import DecodeError  # noqa: PLC0415

        self._faults: tuple[type[Exception], ...] = (
            DecodeError,
            UnicodeDecodeError,
            ValueError,
            OverflowError,
            TypeError,
            RecursionError,
        )
        pool = descriptor_pool.DescriptorPool()
        if sum(map(_characters, files.file)) > MAX_NAMES:
            raise SchemaUnusable(f"defines names of more than {MAX_NAMES} characters")
        try:
            for file in files.file:
                pool.Add(file)
            self._names: dict[tuple[int, ...], str] = {}
            for file in files.file:
                if file.name == main:
                    self._names = _names(file.message_type, file.package)
        except (TypeError, KeyError) as error:
            raise SchemaUnusable(
                f"has descriptors that do not fit together: {error}"[:_MOST_CHARACTERS]
            ) from None
        if len(self._names) > MAX_TYPES:
            raise SchemaUnusable(f"has more than {MAX_TYPES} message types")
        message = self._names.get((0,), "") if message == "" else message
        if message is not None and message not in self._names.values():
            known = ", ".join(list(self._names.values())[:10])[:_MOST_CHARACTERS] or "(none)"
            raise SchemaUnusable(f"expected one of its messages ({known}), got {message!r}")
        self._class_of: Callable[[str], Any] = lambda name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(name)
        )
        self._classes: dict[str, Any] = {}
        self._message = message
        self._wanted = EVERYTHING
        self._converters: dict[tuple[str, int], _Messages] = {}
        encoder = msgspec.json.Encoder()
        self._encode, self._encode_lines = encoder.encode, encoder.encode_lines

    def narrowed(self, wanted: Wanted) -> ProtobufReader:
        """Return a reader of the same messages that writes wanted parts only; a message may be very wide."""
        found = copy(self)
        found._wanted, found._converters = wanted, {}  # noqa: SLF001 - of a reader, too
        return found

    def to_json(self, value: bytes, start: int, preface: bytes | None) -> bytes:
        """Convert a value to JSON text; raises Undecodable."""
        name, start = self._named(value, start, preface)
        try:
            message = self._class(name).FromString(value[start:])
            converter = self._converter(message.DESCRIPTOR, self._wanted)
            budget = [MAX_FREE_TEXT + TEXT_PER_BYTE * len(value)]
            return self._encode(converter.to_plain(message, budget))
        except self._faults:
            raise Undecodable from None

    def _named(self, value: bytes, start: int, preface: bytes | None) -> tuple[str, int]:
        """Return the full name of a value's message type, and where it begins; raises Undecodable."""
        if self._message is not None:
            return self._message, start
        indexes, end = read_indexes(value, start) if preface is None else read_indexes(preface, 0)
        name = self._names.get(indexes)
        if name is None:
            raise Undecodable
        return name, end if preface is None else start

    def described(self, value: bytes, start: int, preface: bytes | None, *, undecodable: bool) -> str:
        """Name the type of a value; if it cannot be decoded, also its fields and those on the wire."""
        try:
            name, start = self._named(value, start, preface)
        except Undecodable:
            known = ", ".join([*self._names.values()][:SHOWN_FIELDS])
            return f"its message index names none of the messages of its schema ({known})"
        if not undecodable:
            return f"message {name}"
        fields = {field.number: str(field.name) for field in self._class(name).DESCRIPTOR.fields}
        expected = ", ".join(f"{each} = {number}" for number, each in [*fields.items()][:SHOWN_FIELDS])
        numbers = dict.fromkeys(numbers_on_the_wire(value, start))
        found = ", ".join(fields.get(each, f"unknown {each}") for each in [*numbers][:SHOWN_FIELDS])
        wanted = f"expected message {name} ({expected or 'no fields'})"
        return f"{wanted}; decoded until it breaks off: {found or 'nothing'}"

    def transcoder(self, wanted: Wanted) -> Transcoder | None:
        """Make the compiled writer for one message type: the fixed one, or else the file's first.

        None where the file has no message, or the wanted parts of this one are not supported.
        """
        name = self._names.get((0,)) if self._message is None else self._message
        if name is None:
            return None
        laid = protobuf_layout(self._class(name).DESCRIPTOR, wanted, _is_librarys, _FIELD_TEXT)
        if laid is None:
            return None
        behind = _FIRST if self._message is None else b""
        return ProtobufTranscoder(*laid, behind, Bound(MAX_FREE_TEXT, TEXT_PER_BYTE))

    def all_to_json(self, contents: Sequence[bytes]) -> Sequence[bytes] | None:
        """Convert messages of one type that has only scalars, lists of them, and maps from text to them.

        None for every other type, for values of several types, and where a value is invalid.
        """
        name, start = self._message, 0
        if name is None:
            if [each[:1] for each in contents].count(_FIRST) < len(contents):
                return None
            name, start = self._names.get((0,)), len(_FIRST)
        if name is None:
            return None
        try:
            kind = self._class(name)
            plain = self._converter(kind.DESCRIPTOR, self._wanted).at_once()
            if plain is None:
                return None
            texts = self._encode_lines([plain(kind.FromString(each[start:])) for each in contents])
        except self._faults:
            return None
        return texts.split(b"\n")[:-1]

    def _class(self, name: str) -> Any:
        if name not in self._classes:  # made on demand: a file may have very many, of which few occur
            self._classes[name] = self._class_of(name)
        return self._classes[name]

    def _converter(self, descriptor: Any, wanted: Wanted) -> _Messages:
        key = descriptor.full_name, id(wanted)  # parts of `self._wanted` live as long as the reader
        found = self._converters.get(key)
        if found is None:
            found = self._converters[key] = _Messages(descriptor, wanted, self._converter)
        return found


class _Messages:
    """Converts the wanted parts of messages of one type to objects."""

    def __init__(self, descriptor: Any, wanted: Wanted, others: Callable[[Any, Wanted], _Messages]) -> None:
        self._descriptor = descriptor
        self._wanted = wanted
        self._others = others
        self._library: Callable[[Any], Any] | None = None
        if descriptor.full_name in _AS_TEXT:
            self._library = _as_text
        elif descriptor.full_name in _BY_LIBRARY:
            self._library = _by_library
        self._members: list[Member] | None = None
        self._text = 0

    def to_plain(self, message: Any, budget: list[int]) -> Any:
        """Convert a message to objects, lists and scalars; raises Undecodable beyond the budget."""
        if self._library is not None:
            return self._library(message)
        members = self._described()
        _spend(budget, self._text)
        plain: dict[str, Any] = {}
        for name, presence, convert in members:
            if not presence or message.HasField(name):
                content = getattr(message, name)
                plain[name] = content if convert is None else convert(content, budget)
        return plain

    def at_once(self) -> Callable[[Any], dict[str, Any]] | None:
        """Return a faster equivalent of `to_plain` that needs no budget.

        None for a message of fewer than two fields, and where a field has presence or needs a conversion, or
        the names are long.
        """
        members = [] if self._library is not None else self._described()
        simple = all(
            not presence and convert in {None, _as_list, _as_dict} for _, presence, convert in members
        )
        if len(members) < 2 or self._text > MAX_FREE_TEXT or not simple:
            return None
        names = [name for name, *_ in members]
        contents = attrgetter(*names)
        several = [(name, convert) for name, _, convert in members if convert is not None]

        def plain(message: Any) -> dict[str, Any]:
            found = dict(zip(names, contents(message), strict=True))
            for name, convert in several:
                found[name] = convert(found[name], [])
            return found

        return plain

    def _described(self) -> Sequence[Member]:
        if self._members is None:
            wanted = self._wanted
            fields = [each for each in self._descriptor.fields if wanted.whole or each.name in wanted.fields]
            self._members = [self._member(field) for field in fields]
            self._text = sum(len(name.encode()) + _FIELD_TEXT for name, *_ in self._members) + _FIELD_TEXT
        return self._members

    def _member(self, field: Any) -> Member:
        name, presence = str(field.name), bool(field.has_presence)
        wanted = EVERYTHING if self._wanted.whole else self._wanted.fields[name]
        if not field.is_repeated:
            return name, presence, self._single(field, wanted)
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            each = self._single(entry.fields_by_name["value"], EVERYTHING)
            if each is None and entry.fields_by_name["key"].type == _STRING:
                return name, presence, _as_dict
            return name, presence, lambda items, budget: _converted_map(items, each, budget)
        each = self._single(field, EVERYTHING if wanted.whole else wanted.elements or _NOTHING)
        if each is None:
            return name, presence, _as_list
        return name, presence, lambda items, budget: [each(item, budget) for item in items]

    def _single(self, field: Any, wanted: Wanted) -> Convert | None:
        """Return the conversion of one content of a field; None if it needs none."""
        if field.message_type is not None:
            return self._others(field.message_type, EVERYTHING if wanted.whole else wanted).to_plain
        if field.enum_type is None:
            return None
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}

        def named(content: Any, budget: list[int]) -> Any:
            found = names.get(content, content)
            _spend(budget, len(found.encode()) if isinstance(found, str) else 0)
            return found

        return named


def _is_librarys(name: str) -> bool:
    """Tell whether the library converts messages of a type by rules of their own, as for timestamps."""
    return name in _AS_TEXT or name in _BY_LIBRARY


def _spend(budget: list[int], text: int) -> None:
    budget[0] -= text
    if budget[0] < 0:
        raise ValueError("more text than is made of so few bytes")


def _as_list(items: Any, _budget: Any) -> list[Any]:
    return list(items)


def _as_dict(items: Any, _budget: Any) -> dict[str, Any]:
    """Sort entries by name: the library's order differs from process to process."""
    return dict(sorted(items.items()))


def _converted_map(items: Any, each: Convert | None, budget: list[int]) -> dict[str, Any]:
    if each is None:
        return {_key(key): items[key] for key in sorted(items)}
    return {_key(key): each(items[key], budget) for key in sorted(items)}


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _as_text(message: Any) -> str:
    return message.ToJsonString()


def _by_library(message: Any) -> Any:
    from google.protobuf import json_format  # noqa: PLC0415 - an extra

    try:
        return json_format.MessageToDict(message, preserving_proto_field_name=True)
    except json_format.Error as error:
        raise ValueError(str(error)) from None


def _characters(file: Any) -> int:
    """Return the total length of all full names in a file."""

    def within(scope: int, messages: Any, enums: Any, fields: Any) -> int:
        total = sum(scope + len(field.name) for field in fields)
        for enum in enums:
            total += scope + len(enum.name) + sum(scope + len(value.name) for value in enum.value)
        for message in messages:
            inner = scope + len(message.name) + 1
            total += inner + within(inner, message.nested_type, message.enum_type, message.field)
        return total

    return within(len(file.package) + 1, file.message_type, file.enum_type, file.extension)


def _names(messages: Any, scope: str, prefix: tuple[int, ...] = ()) -> dict[tuple[int, ...], str]:
    """Return the full name of each message type by its indexes, without generated types of map entries."""
    found: dict[tuple[int, ...], str] = {}
    written = [message for message in messages if not message.options.map_entry]
    for index, message in enumerate(written):
        name = f"{scope}.{message.name}" if scope else message.name
        found[*prefix, index] = name
        found |= _names(message.nested_type, name, (*prefix, index))
    return found


def read_indexes(content: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """Read the indexes of a message type at `at`; return them and the position after them.

    They are a count and as many zigzag varints; a single zero byte means the first message of the file.

    Raises
    ------
    Undecodable
        They are incomplete, or more than `MAX_INDEXES`.
    """
    count, at = _varint(content, at)
    if count == 0:
        return (0,), at
    if not 0 < count <= MAX_INDEXES:
        raise Undecodable
    indexes: list[int] = []
    for _ in range(count):
        index, at = _varint(content, at)
        indexes.append(index)
    return tuple(indexes), at


SHOWN_FIELDS: Final = 8
"""Fields of a message, or messages of a schema, named in an explanation at most."""
_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5
_WIDTHS: Final = {_EIGHT: 8, _FOUR: 4}


def numbers_on_the_wire(content: bytes, at: int) -> list[int]:
    """List the numbers of fields in a message, up to the first invalid byte ("Message Structure")."""
    numbers: list[int] = []
    try:
        while at < len(content):
            tag, at = _unsigned(content, at)
            number, wire = tag >> 3, tag & 7
            if wire == _LENGTH:
                size, at = _unsigned(content, at)
                at += size
            elif wire == _VARINT:
                _, at = _unsigned(content, at)
            elif wire in _WIDTHS:
                at += _WIDTHS[wire]
            else:
                break
            if at > len(content) or number == 0:
                break
            numbers.append(number)
    except Undecodable:
        pass  # the message ends within a number
    return numbers


def _unsigned(content: bytes, at: int, bits: int = 70) -> tuple[int, int]:
    """Read a varint of at most `bits` bits; raises Undecodable if it is longer, or incomplete."""
    value = 0
    for shift in range(0, bits, 7):
        if at >= len(content):
            raise Undecodable
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise Undecodable


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Read a signed varint in zigzag form."""
    value, at = _unsigned(content, at, 35)
    return value >> 1 ^ -(value & 1), at


COMPILE_SECONDS: Final = 30
"""Time, and processor time, that protoc may take; the latter also where this process has ended meanwhile."""
COMPILE_BYTES: Final = 1 << 30
"""Memory that protoc may map."""
MAX_DESCRIPTORS: Final = 4 * 2**20
"""Bytes of descriptors read from protoc's output at most."""
MAIN: Final = "streamwatch_main.proto"
_MOST_CHARACTERS: Final = 300
"""Characters of a name or of an error that a message shows at most."""
_BAD_NAME: Final = frozenset(
    {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL, errno.EILSEQ}
)
_BOUNDED: Final = """
import resource, runpy, sys
limit, seconds = int(sys.argv.pop(1)), int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
runpy.run_module("grpc_tools.protoc", run_name="__main__", alter_sys=True)
"""


def compile_protobuf(schema: Schema, message: str | None = None) -> ProtobufReader:
    """Make the reader of a schema.

    Parameters
    ----------
    schema
        The schema, and the files that it imports.
    message
        Full name of the message of all values, empty for the file's first; None where values name theirs by
        indexes.

    Raises
    ------
    SchemaUnusable
        It is no Protocol Buffers schema, does not compile, or has no such message.
    OSError
        Temporary files cannot be written, or protoc cannot be started or ends without saying what is wrong.
    """
    if schema.type != "PROTOBUF":
        raise SchemaUnusable(f"expected a Protocol Buffers schema, got one of type {schema.type}")
    with tempfile.TemporaryDirectory(prefix="streamwatch-protoc-") as folder:
        files = _descriptors(schema, Path(folder))
    return ProtobufReader(files, MAIN, message)


def _descriptors(schema: Schema, folder: Path) -> Any:
    """Compile a schema to a FileDescriptorSet, imports first."""
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - an extra
    from google.protobuf.message import DecodeError  # noqa: PLC0415

    given = descriptor_pb2.FileDescriptorSet()
    for name, text in (*schema.references, (MAIN, schema.text)):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
            raise SchemaUnusable(f"imports {name[:_MOST_CHARACTERS]!r}, which is no relative path")
        if (described := _described(text)) is not None:
            described.name = name
            given.file.append(described)
            continue
        _write(folder / "in", path, text)
    (folder / "in").mkdir(exist_ok=True)
    (folder / "given").write_bytes(given.SerializeToString())
    out = folder / "out"
    _run(
        [
            *(sys.executable, "-P", "-c", _BOUNDED, str(COMPILE_BYTES), str(COMPILE_SECONDS)),
            *(f"--proto_path={folder / 'in'}", f"--proto_path={_well_known()}"),
            f"--descriptor_set_in={folder / 'given'}",
            *("--include_imports", f"--descriptor_set_out={out}", MAIN),
        ],
        folder,
    )
    if (size := out.stat().st_size) > MAX_DESCRIPTORS:
        raise SchemaUnusable(f"compiles to {size} bytes of descriptors, of which {MAX_DESCRIPTORS} are read")
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(out.read_bytes())
    except DecodeError:
        raise SchemaUnusable("compiles to no descriptors") from None
    return files


def _write(folder: Path, path: PurePosixPath, text: str) -> None:
    """Write the schema, or a file that it imports; raises SchemaUnusable for an invalid path or text."""
    file = folder / path
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except UnicodeEncodeError:
        raise SchemaUnusable(f"imports {str(path)[:_MOST_CHARACTERS]!r}, which is no Unicode") from None
    except OSError as error:
        if error.errno not in _BAD_NAME:
            raise
        raise SchemaUnusable(f"imports {str(path)[:_MOST_CHARACTERS]!r}: {error.strerror}") from None


def _described(text: str) -> Any:
    """Parse a text that is a file's descriptor in base64; None for any other text."""
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - an extra
    from google.protobuf.message import DecodeError  # noqa: PLC0415

    file = descriptor_pb2.FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode(text, validate=True))
    except (ValueError, DecodeError):
        return None
    return file if file.message_type else None


def _well_known() -> Path:
    import grpc_tools  # noqa: PLC0415 - an extra

    return Path(grpc_tools.__file__).parent / "_proto"


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter; nothing of the schema is in the command
            command, cwd=folder, capture_output=True, timeout=COMPILE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise SchemaUnusable(f"does not compile within {COMPILE_SECONDS:g} s") from None
    if done.returncode == 0:
        return
    lines = done.stderr.decode(errors="replace").replace(f"{folder / 'in'}/", "").splitlines()
    complaint = "\n".join(line for line in lines if ".proto" in line and "parser.cc" not in line)
    complaint = complaint.replace(MAIN, "schema")
    if not complaint:
        raise ChildProcessError(f"protoc ended with {done.returncode}, and says nothing of the schema")
    raise SchemaUnusable(f"does not compile: {complaint[:_MOST_CHARACTERS]}")
