"""Sources of records: one package or file per kind, by name; each builds a `core.ports.Source`.

===========  =========================================================================================
``kafka``    all partitions of the configured topics, from Apache Kafka
===========  =========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streamwatch.edge.sources import kafka
from streamwatch.edge.sources.kind import SourceKind

__all__ = ["KINDS", "SourceKind"]

KINDS: Mapping[str, SourceKind] = MappingProxyType({module.KIND.name: module.KIND for module in (kafka,)})
"""Sources by the name of their section in the settings."""
