"""Protocol Buffers, with the schema from a registry or a file."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Final

from streamwatch.edge.decoders.formats import json
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatKind, FormatMisused, FormatOptions
from streamwatch.edge.decoders.formats.schema_decoder import (
    SchemaChoice,
    SchemaDecoder,
    compile_header_scan,
    from_options,
)
from streamwatch.edge.decoders.schemas.protobuf import compile_protobuf
from streamwatch.edge.decoders.transcoding.protobuf import compile_protobuf_transcoder
from streamwatch.edge.extras import command_for

INVALID: Final = "invalid_protobuf"


def build(spec: DecoderSpec, options: FormatOptions) -> SchemaDecoder:
    """Make the decoder of a topic in Protocol Buffers.

    Raises
    ------
    FormatMisused
        A package is not installed, or there is neither a registry nor a usable file.
    """
    if find_spec("google.protobuf") is None or find_spec("grpc_tools") is None:
        raise FormatMisused(f"a package is missing: install it with {command_for('protobuf')}")
    make = compile_protobuf
    if options.fixed is not None or options.schema_text is not None:
        # Values that do not name a schema do not name their message.
        make = partial(compile_protobuf, message=options.message)
    choice = from_options(SchemaChoice(make, INVALID), "PROTOBUF", options)
    return SchemaDecoder(choice, options.readers, json.build(spec, options), spec.wanted)


def warm_up() -> None:
    """Compile the functions that read Protocol Buffers, or load them from the cache of compiled functions."""
    compile_header_scan()
    compile_protobuf_transcoder()


KIND = FormatKind(
    "protobuf",
    ("schema_id", "subject", "version", "schema_file", "message"),
    build,
    warm_up,
)
