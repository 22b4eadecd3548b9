"""JSON that names its schema in the wire format of a registry.

JSON says by itself what its fields are, so that no schema is fetched: a registry that is away holds nothing
up. What a schema would forbid is judged by the mapping, as of plain JSON.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streamwatch.edge.decoders.formats import json
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatKind, FormatOptions
from streamwatch.edge.decoders.formats.schema_decoder import SchemaChoice, SchemaDecoder, compile_header_scan
from streamwatch.edge.decoders.schemas.schema import Schema
from streamwatch.edge.decoders.transcoding.wanted import EVERYTHING, Texts, Transcoder, Wanted


class JsonReader:
    """Reads JSON behind the name of its schema."""

    def to_json(self, value: bytes, start: int, preface: bytes | None) -> bytes:
        """The text as it is."""
        del preface
        return value[start:]

    def all_to_json(self, contents: Sequence[bytes]) -> Sequence[bytes]:
        """The texts as they are."""
        return contents

    def transcoder(self, wanted: Wanted) -> Transcoder:
        """Give the one that finds texts where they are."""
        del wanted
        return InPlace()


class InPlace:
    """Leaves texts where they are: behind the name of a schema, a value is JSON already."""

    def texts(self, data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> Texts:
        """Say where the texts are."""
        del data
        return Texts(None, starts, stops - starts)


_READER = JsonReader()


def compile_json(schema: Schema) -> JsonReader:
    """Give the one reader there is, whatever the schema."""
    del schema
    return _READER


def build(spec: DecoderSpec, options: FormatOptions) -> SchemaDecoder:
    """Decode JSON behind the name of its schema."""
    choice = SchemaChoice(compile_json, "invalid_json", reader=_READER)
    return SchemaDecoder(choice, None, json.build(spec, options), EVERYTHING)


KIND = FormatKind("json_schema", (), build, compile_header_scan)
