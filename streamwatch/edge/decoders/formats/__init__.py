"""Formats of record values, one file each, looked up by the name that settings have for them.

===============  =====================================================================================
``json``         UTF-8 text of one JSON object
===============  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streamwatch.edge.decoders.formats import json
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatKind, FormatOptions

__all__ = ["KINDS", "DecoderSpec", "FormatKind", "FormatOptions"]

KINDS: Mapping[str, FormatKind] = MappingProxyType({module.KIND.name: module.KIND for module in (json,)})
"""Formats by name."""
