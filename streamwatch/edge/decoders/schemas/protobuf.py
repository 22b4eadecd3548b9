"""Protocol Buffers values → JSON text, read with descriptors that protoc made of the registry's text.

protoc is the compiler's own definition of the language, so that imports, nested types, options and both
syntaxes mean here what they mean where the records were written. It runs in a process of its own: a text that
makes it fail, hang or swell costs that process.

Confluent's Python serializer registers no text but the file's descriptor in base64. Its registry turns
that into text, others give it back as it is: protoc takes it instead of a file.
"""

from __future__ import annotations

import base64
import errno
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeAlias

import msgspec

from streamwatch.edge.decoders.schemas.schema import Schema, SchemaUnusable, Undecodable
from streamwatch.edge.decoders.transcoding.protobuf import ProtobufTranscoder, protobuf_layout
from streamwatch.edge.decoders.transcoding.wanted import Bound, Transcoder, Wanted

# Messages → JSON text: fields by the names the schema has for them, numbers as numbers.
#
# Differs from the canonical JSON of Protocol Buffers in that: names stay as written, and 64-bit numbers are
# no text. As there, enums are names, bytes are base64, timestamps are RFC 3339, a field without presence
# that is not on the wire has its default, and one with presence that is not set is left out.


MAX_INDEXES: Final = 100
"""Depth of nested message types that a record's indexes may name."""
TEXT_PER_BYTE: Final = 128
"""Bytes of JSON that a value may become for each of its own, and …"""
MAX_FREE_TEXT: Final = 131_072
"""… beyond that: an empty message has the defaults of all of its fields, and repeats at two bytes."""
MAX_TYPES: Final = 20_000
"""Message types of a file."""
MAX_NAMES: Final = 16 * 2**20
"""Characters in the full names of all that the files of a schema define: each begins with its package."""
_FIELD_TEXT: Final = 32
"""JSON of a field beyond its name and the contents that are on the wire, and what a value takes in memory."""
_STRING: Final = 9
"""FieldDescriptorProto.TYPE_STRING."""
_FIRST: Final = b"\0"
"""Indexes of the first message of a file."""
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
"""From contents, and the bytes of JSON that may still be made, to what JSON can say."""
Member: TypeAlias = tuple[str, bool, Convert | None]
"""Name of a field, whether it has presence, and its conversion; None where contents stay as they are."""


class ProtobufReader:
    """Reads values of one file of messages.

    Parameters
    ----------
    files
        FileDescriptorSet of the file and what it imports.
    main
        Name of the file that the indexes are about.
    message
        Full name of the message that all values hold, empty for the first; None where each names it by its
        indexes.

    Raises
    ------
    SchemaUnusable
        There is no such message, or the names of all take too much memory.
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
            raise SchemaUnusable(f"has descriptors that do not fit together: {error}"[:300]) from None
        if len(self._names) > MAX_TYPES:
            raise SchemaUnusable(f"has more than {MAX_TYPES} message types")
        message = self._names.get((0,), "") if message == "" else message
        if message is not None and message not in self._names.values():
            known = ", ".join(list(self._names.values())[:10])[:300] or "(none)"
            raise SchemaUnusable(f"expected one of its messages ({known}), got {message!r}")
        self._class_of: Callable[[str], Any] = lambda name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(name)
        )
        self._classes: dict[str, Any] = {}
        self._message = message
        self._converters: dict[str, _Messages] = {}
        encoder = msgspec.json.Encoder()
        self._encode, self._encode_lines = encoder.encode, encoder.encode_lines

    def to_json(self, value: bytes, start: int, preface: bytes | None) -> bytes:
        """Write a value as JSON text; raises Undecodable."""
        name, start = self._named(value, start, preface)
        try:
            message = self._class(name).FromString(value[start:])
            converter = self._converter(message.DESCRIPTOR)
            budget = [MAX_FREE_TEXT + TEXT_PER_BYTE * len(value)]
            return self._encode(converter.to_plain(message, budget))
        except self._faults:
            raise Undecodable from None

    def _named(self, value: bytes, start: int, preface: bytes | None) -> tuple[str, int]:
        """Full name of the message that a value holds, and where that begins; raises Undecodable."""
        if self._message is not None:
            return self._message, start
        indexes, end = read_indexes(value, start) if preface is None else read_indexes(preface, 0)
        name = self._names.get(indexes)
        if name is None:
            raise Undecodable
        return name, end if preface is None else start

    def described(self, value: bytes, start: int, preface: bytes | None, *, undecodable: bool) -> str:
        """Name the message of a value; if it cannot be decoded, with its fields and those on the wire."""
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
        """Make what writes the wanted fields of one message type, the first where values name theirs."""
        name = self._names.get((0,)) if self._message is None else self._message
        if name is None:
            return None
        laid = protobuf_layout(self._class(name).DESCRIPTOR, wanted, _is_librarys, _FIELD_TEXT)
        if laid is None:
            return None
        behind = _FIRST if self._message is None else b""
        return ProtobufTranscoder(*laid, behind, Bound(MAX_FREE_TEXT, TEXT_PER_BYTE))

    def all_to_json(self, contents: Sequence[bytes]) -> Sequence[bytes] | None:
        """Read messages of one type that hold but scalars, lists of them, and maps of them by text."""
        name, start = self._message, 0
        if name is None:
            if [each[:1] for each in contents].count(_FIRST) < len(contents):
                return None
            name, start = self._names.get((0,)), len(_FIRST)
        if name is None:
            return None
        try:
            kind = self._class(name)
            plain = self._converter(kind.DESCRIPTOR).at_once()
            if plain is None:
                return None
            texts = self._encode_lines([plain(kind.FromString(each[start:])) for each in contents])
        except self._faults:
            return None
        return texts.split(b"\n")[:-1]

    def _class(self, name: str) -> Any:
        if name not in self._classes:  # a file may have very many, of which few are written
            self._classes[name] = self._class_of(name)
        return self._classes[name]

    def _converter(self, descriptor: Any) -> _Messages:
        found = self._converters.get(descriptor.full_name)
        if found is None:
            found = self._converters[descriptor.full_name] = _Messages(descriptor, self._converter)
        return found


class _Messages:
    """Converts messages of one type."""

    def __init__(self, descriptor: Any, others: Callable[[Any], _Messages]) -> None:
        self._descriptor = descriptor
        self._others = others
        self._library: Callable[[Any], Any] | None = None
        if descriptor.full_name in _AS_TEXT:
            self._library = _as_text
        elif descriptor.full_name in _BY_LIBRARY:
            self._library = _by_library
        self._members: list[Member] | None = None
        self._text = 0

    def to_plain(self, message: Any, budget: list[int]) -> Any:
        """Make objects, lists and scalars of a message, within a budget of text."""
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
        """Give what does as `to_plain` where no text has to be spent.

        None where a field is absent at times or has to be converted, or where the names take much text.
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
            self._members = [self._member(field) for field in self._descriptor.fields]
            self._text = sum(len(name.encode()) + _FIELD_TEXT for name, *_ in self._members) + _FIELD_TEXT
        return self._members

    def _member(self, field: Any) -> Member:
        name, presence = str(field.name), bool(field.has_presence)
        if not field.is_repeated:
            return name, presence, self._single(field)
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            each = self._single(entry.fields_by_name["value"])
            if each is None and entry.fields_by_name["key"].type == _STRING:
                return name, presence, _as_dict
            return name, presence, lambda items, budget: _converted_map(items, each, budget)
        each = self._single(field)
        if each is None:
            return name, presence, _as_list
        return name, presence, lambda items, budget: [each(item, budget) for item in items]

    def _single(self, field: Any) -> Convert | None:
        """How one content is converted; None if it stays as it is."""
        if field.message_type is not None:
            return self._others(field.message_type).to_plain
        if field.enum_type is None:
            return None
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}

        def named(content: Any, budget: list[int]) -> Any:
            found = names.get(content, content)
            _spend(budget, len(found.encode()) if isinstance(found, str) else 0)
            return found

        return named


def _is_librarys(name: str) -> bool:
    """Tell whether messages of a type are read in a way of their own."""
    return name in _AS_TEXT or name in _BY_LIBRARY


def _spend(budget: list[int], text: int) -> None:
    budget[0] -= text
    if budget[0] < 0:
        raise ValueError("more text than is made of so few bytes")


def _as_list(items: Any, _budget: Any) -> list[Any]:
    return list(items)


def _as_dict(items: Any, _budget: Any) -> dict[str, Any]:
    """Entries by name: the library has them in an order that differs from process to process."""
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
    """Length of all full names of a file."""

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
    """Full name of each message type by its indexes; entries of maps are no types that anybody wrote."""
    found: dict[tuple[int, ...], str] = {}
    written = [message for message in messages if not message.options.map_entry]
    for index, message in enumerate(written):
        name = f"{scope}.{message.name}" if scope else message.name
        found[*prefix, index] = name
        found |= _names(message.nested_type, name, (*prefix, index))
    return found


def read_indexes(content: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """Read the indexes of a message type, zigzag varints after their count, and where they end.

    A single zero stands for the first message of the file.

    Raises
    ------
    Undecodable
        They are not whole, or more than `MAX_INDEXES`.
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
"""Fields of a message, or messages of a schema, that are named in an explanation."""
_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5
_WIDTHS: Final = {_EIGHT: 8, _FOUR: 4}


def numbers_on_the_wire(content: bytes, at: int) -> list[int]:
    """Numbers of the fields of a message, up to where it is none any more (encoding, "Message Structure")."""
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
        pass  # it breaks off in a number
    return numbers


def _unsigned(content: bytes, at: int, bits: int = 70) -> tuple[int, int]:
    """Read a varint of at most so many bits; raises Undecodable if it is longer, or breaks off."""
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


COMPILE_SECONDS: Final = 30.0
COMPILE_BYTES: Final = 1 << 30
"""Memory that protoc may map."""
MAX_DESCRIPTORS: Final = 4 * 2**20
"""Bytes of descriptors that are read of it."""
MAIN: Final = "streamwatch_main.proto"
_MOST_CHARACTERS: Final = 300
_BAD_NAME: Final = frozenset(
    {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL, errno.EILSEQ}
)
_BOUNDED: Final = """
import resource, runpy, sys
limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
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
        Full name of the message that values hold, empty for the first; None where each names it by its
        indexes.

    Raises
    ------
    SchemaUnusable
        It is not written in Protocol Buffers, does not compile, or has no such message.
    OSError
        There is no room for temporary files, or protoc cannot be started.
    """
    if schema.type != "PROTOBUF":
        raise SchemaUnusable(f"expected a Protocol Buffers schema, got one of type {schema.type}")
    with tempfile.TemporaryDirectory(prefix="streamwatch-protoc-") as folder:
        files = _descriptors(schema, Path(folder))
    return ProtobufReader(files, MAIN, message)


def _descriptors(schema: Schema, folder: Path) -> Any:
    """The FileDescriptorSet of a schema, what is imported first."""
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
            *(sys.executable, "-P", "-c", _BOUNDED, str(COMPILE_BYTES)),
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
    """Write a file that a schema imports; raises SchemaUnusable where no system has files of such names."""
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
    """The descriptor of a file that a text is in base64; None where it is none."""
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
