"""Schemas of all topics, as the daemon waits for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from streamwatch.core.events import Partition
from streamwatch.core.metrics import single
from streamwatch.core.ports import Record
from streamwatch.core.series import Family
from streamwatch.edge.decoders.schemas.cache import SchemaCache
from streamwatch.edge.decoders.schemas.schema import Wanted


class WantsSchemas(Protocol):
    """A decoder that needs schemas at hand."""

    def wanted(self, records: Sequence[Record]) -> Collection[Wanted]:
        """Name the schemas that these records need."""
        ...


class TopicSchemas:
    """Implements `core.ports.Schemas`.

    Parameters
    ----------
    cache
        Fetches them.
    decoders
        Those that need schemas, by topic.
    """

    def __init__(self, cache: SchemaCache, decoders: Mapping[str, WantsSchemas]) -> None:
        self._cache = cache
        self._decoders = decoders

    @property
    def problem(self) -> str | None:
        """Reason why schemas cannot be had just now; None while they can."""
        return self._cache.problem

    async def ready(self, records: Mapping[Partition, Sequence[Record]]) -> bool:
        """Have the schemas of these records at hand; False, after a moment, if they are not yet."""
        wanted: set[Wanted] = set()
        for partition, delivered in records.items():
            if (decoder := self._decoders.get(partition.topic)) is not None:
                wanted.update(decoder.wanted(delivered))
        return not wanted or await self._cache.fetch(wanted)

    def families(self) -> Sequence[Family]:
        """State of the registry, and the number of schemas at hand."""
        return (
            single("schema_registry_up", float(self._cache.problem is None)),
            single("schemas_cached", float(len(self._cache))),
        )

    async def close(self) -> None:
        """Give up what is being fetched, and leave."""
        await self._cache.close()
