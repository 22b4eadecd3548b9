"""Protocol Buffers values → JSON text, read with descriptors that protoc made of the registry's text.

protoc is the compiler's own definition of the language, so that imports, nested types, options and both
syntaxes mean here what they mean where the records were written. It runs in a process of its own: a text that
makes it fail, hang or swell costs that process.

Confluent's Python serializer registers no text but the file's descriptor in base64. Its registry turns
that into text, others give it back as it is: protoc takes it in place of a file.
"""

from __future__ import annotations

import base64
import errno
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any, Final

from streamwatch.edge.decoders.schemas.protobuf_values import ProtobufReader
from streamwatch.edge.decoders.schemas.schema import Schema, SchemaUnusable

COMPILE_SECONDS: Final = 30.0
COMPILE_BYTES: Final = 1 << 30
"""Memory that protoc may map."""
MAX_DESCRIPTORS: Final = 4 * 2**20
"""Bytes of descriptors that are read of it."""
MAIN: Final = "streamwatch_main.proto"
_TOLD: Final = 300
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
            raise SchemaUnusable(f"imports {name[:_TOLD]!r}, which is no relative path")
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
        raise SchemaUnusable(f"imports {str(path)[:_TOLD]!r}, which is no Unicode") from None
    except OSError as error:
        if error.errno not in _BAD_NAME:
            raise
        raise SchemaUnusable(f"imports {str(path)[:_TOLD]!r}: {error.strerror}") from None


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
    told = told.replace(MAIN, "schema")
    if not told:
        raise ChildProcessError(f"protoc ended with {done.returncode}, and says nothing of the schema")
    raise SchemaUnusable(f"does not compile: {told[:_TOLD]}")
