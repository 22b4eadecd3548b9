"""JSON preceded by the id of its schema, in the wire format of a registry.

Reading JSON needs no schema, so none is fetched, and an unreachable registry delays nothing. Contents are
validated by the mapping, as with plain JSON, not by the schema.
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
    """`ValueReader` of JSON that follows the id of its schema."""

    def to_json(self, value: bytes, start: int, preface: bytes | None) -> bytes:
        """Return the text after the id, unchanged."""
        del preface
        return value[start:]

    def all_to_json(self, contents: Sequence[bytes]) -> Sequence[bytes]:
        """Return the texts unchanged."""
        return contents

    def transcoder(self, wanted: Wanted) -> Transcoder:
        """Return the transcoder that copies nothing."""
        del wanted
        return InPlace()


class InPlace:
    """`Transcoder` without copying: after the id of its schema, a value already is JSON."""

    def texts(self, data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> Texts:
        """Return the given spans as texts."""
        del data
        return Texts(None, starts, stops - starts)


_READER = JsonReader()


def compile_json(schema: Schema) -> JsonReader:
    """Return the only reader; the schema is ignored."""
    del schema
    return _READER


def build(spec: DecoderSpec, options: FormatOptions) -> SchemaDecoder:
    """Make the decoder of a topic whose JSON follows the id of its schema."""
    choice = SchemaChoice(compile_json, "invalid_json", reader=_READER)
    return SchemaDecoder(choice, None, json.build(spec, options), EVERYTHING)


KIND = FormatKind("json_schema", (), build, compile_header_scan)
