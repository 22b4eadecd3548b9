"""Values that are one text, which `value` stands for in a mapping; or what `decode` makes of it."""

from __future__ import annotations

from streamwatch.edge.decoders.field_locations import is_framed
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatKind, FormatOptions, tree_decoder
from streamwatch.edge.decoders.trees import TreeDecoder, UnreadableValue


def read_text(value: bytes) -> str | UnreadableValue:
    """Read a value as text, without blanks around it."""
    if is_framed(value):
        return UnreadableValue("schema_registry_framing")
    try:
        return value.decode().strip()
    except UnicodeDecodeError:
        return UnreadableValue("invalid_utf8")


def build(spec: DecoderSpec, options: FormatOptions) -> TreeDecoder:
    """Decode texts."""
    del options
    return tree_decoder(spec, read_text)


KIND = FormatKind("text", (), build)
