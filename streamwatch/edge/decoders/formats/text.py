"""Values that are plain text: the content at `value`, or parsed further by the topic's rules for texts."""

from __future__ import annotations

from streamwatch.edge.decoders.fields import is_framed
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatKind, FormatOptions, tree_decoder
from streamwatch.edge.decoders.trees import TreeDecoder, UnreadableValue


def read_text(value: bytes) -> str | UnreadableValue:
    """Decode a value as UTF-8 text, stripped of white space; or return the reason why it is none."""
    if is_framed(value):
        return UnreadableValue("schema_registry_framing")
    try:
        return value.decode().strip()
    except UnicodeDecodeError:
        return UnreadableValue("invalid_utf8")


def build(spec: DecoderSpec, options: FormatOptions) -> TreeDecoder:
    """Make the decoder of a topic of texts."""
    del options
    return tree_decoder(spec, read_text)


KIND = FormatKind("text", (), build)
