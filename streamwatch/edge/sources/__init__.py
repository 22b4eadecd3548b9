"""Sources of records: one package or file per kind, each a `core.ports.Source`, looked up by name.

===========  =========================================================================================
``kafka``    all partitions of the configured topics, from Apache Kafka
===========  =========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from streamwatch.edge.sources import kafka
from streamwatch.edge.sources.kind import SourceKind

__all__ = ["KINDS", "SourceKind"]

KINDS: Mapping[str, SourceKind[Any]] = MappingProxyType(
    {module.KIND.name: module.KIND for module in (kafka,)}
)
"""Sources by the section of the settings that is about them."""
