"""Formats of record values, one file each, by their name in the settings.

===============  =====================================================================================
``json``         UTF-8 text of one JSON object, or of any JSON value if a mapping's path is `value`
``text``         UTF-8 text, which is the content at the path `value`
``avro``         Apache Avro, schema from a registry or a file
``protobuf``     Protocol Buffers, schema from a registry or a file
``json_schema``  JSON preceded by the id of its schema in a registry
===============  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streamwatch.edge.decoders.formats import avro, json, json_schema, protobuf, text
from streamwatch.edge.decoders.formats.kind import (
    DecoderSpec,
    FormatKind,
    FormatMisused,
    FormatOptions,
    decoder_spec,
)

__all__ = ["KINDS", "DecoderSpec", "FormatKind", "FormatMisused", "FormatOptions", "decoder_spec"]

KINDS: Mapping[str, FormatKind] = MappingProxyType(
    {module.KIND.name: module.KIND for module in (json, avro, protobuf, json_schema, text)}
)
"""Formats by name."""
