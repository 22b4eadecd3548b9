"""Avro, with the schema from a registry or a file."""

from __future__ import annotations

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
from streamwatch.edge.decoders.schemas.avro import AvroReader
from streamwatch.edge.decoders.transcoding.avro import compile_avro_transcoder
from streamwatch.edge.extras import command_for

INVALID: Final = "invalid_avro"


def build(spec: DecoderSpec, options: FormatOptions) -> SchemaDecoder:
    """Make the decoder of a topic in Avro.

    Raises
    ------
    FormatMisused
        fastavro is not installed, or there is neither a registry nor a usable file.
    """
    if find_spec("fastavro") is None:
        raise FormatMisused(f"a package is missing: install it with {command_for('avro')}")
    choice = from_options(SchemaChoice(AvroReader, INVALID), "AVRO", options)
    return SchemaDecoder(choice, options.readers, json.build(spec, options), spec.wanted)


def warm_up() -> None:
    """Compile the functions that read Avro, or load them from the cache of compiled functions."""
    compile_header_scan()
    compile_avro_transcoder()


KIND = FormatKind("avro", ("schema_id", "subject", "version", "schema_file"), build, warm_up)
