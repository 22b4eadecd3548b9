"""Protocol Buffers values → JSON text, read with descriptors that protoc made of the registry's text.

protoc is the compiler's own definition of the language, so that imports, nested types, options and both
syntaxes mean here what they mean where the records were written. It runs in a process of its own: a text that
makes it fail or hang costs that process.

Confluent's Python serializer registers no text but the file's descriptor in base64. Its registry turns
that into text, others give it back as it is: protoc takes it in place of a file.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any, Final

from streamwatch.edge.decoders.schemas.protobuf_values import ProtobufReader
from streamwatch.edge.decoders.schemas.schema import Schema, SchemaUnavailable, SchemaUnusable

COMPILE_SECONDS: Final = 30.0
MAIN: Final = "streamwatch_main.proto"
_TOLD: Final = 300


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
    SchemaUnavailable
        protoc cannot be run.
    """
    if schema.type != "PROTOBUF":
        raise SchemaUnusable(f"expected a Protocol Buffers schema, got one of type {schema.type}")
    try:
        with tempfile.TemporaryDirectory(prefix="streamwatch-protoc-") as folder:
            files = _descriptors(schema, Path(folder))
    except OSError as error:
        raise SchemaUnavailable(f"protoc needs a folder for temporary files: {error.strerror}") from None
    return ProtobufReader(files, MAIN, message)


def _descriptors(schema: Schema, folder: Path) -> Any:
    """The FileDescriptorSet of a schema, what is imported first."""
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - an extra
    from google.protobuf.message import DecodeError  # noqa: PLC0415

    given = descriptor_pb2.FileDescriptorSet()
    for name, text in (*schema.references, (MAIN, schema.text)):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
            raise SchemaUnusable(f"imports {name!r}, which is no relative path")
        if (described := _described(text)) is not None:
            described.name = name
            given.file.append(described)
            continue
        file = folder / "in" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (folder / "in").mkdir(exist_ok=True)
    (folder / "given").write_bytes(given.SerializeToString())
    out = folder / "out"
    _run(
        [
            *(sys.executable, "-P", "-m", "grpc_tools.protoc"),
            *(f"--proto_path={folder / 'in'}", f"--proto_path={_well_known()}"),
            f"--descriptor_set_in={folder / 'given'}",
            *("--include_imports", f"--descriptor_set_out={out}", MAIN),
        ],
        folder,
    )
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(out.read_bytes())
    except DecodeError:
        raise SchemaUnavailable("protoc gave no descriptors") from None
    return files


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
    told = "\n".join(line for line in lines if ".proto" in line and "parser.cc" not in line)
    told = told.replace(MAIN, "schema") or "it says nothing of the schema"
    if (done.returncode == 1 and "schema:" in told) or ".proto:" in told:
        raise SchemaUnusable(f"does not compile: {told[:_TOLD]}")
    raise SchemaUnavailable(f"protoc ended with {done.returncode}: {told[:_TOLD]}")
