"""Schemas of all topics, as the daemon waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

from streamwatch.core.events import Partition
from streamwatch.core.metrics import single
from streamwatch.core.ports import Record
from streamwatch.core.series import Family
from streamwatch.edge.decoders.schemas.cache import SchemaCache
from streamwatch.edge.decoders.schemas.schema import SchemaRequest

RECORDS_PER_TURN: Final = 2_000
"""Records that are asked for their schemas before others have a turn."""


@runtime_checkable
class WantsSchemas(Protocol):
    """A decoder that needs schemas at hand."""

    def wanted(self, records: Sequence[Record]) -> Collection[SchemaRequest]:
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
        self._looked_at: object = None
        self._wanted: set[SchemaRequest] = set()

    @property
    def problem(self) -> str | None:
        """Reason why schemas cannot be had just now; None while they can."""
        return self._cache.problem

    async def ready(self, records: Mapping[Partition, Sequence[Record]]) -> bool:
        """Have the schemas of these records at hand; False, after a moment, if they are not yet."""
        if records is not self._looked_at:
            self._wanted = await self._wanted_by(records)
            self._looked_at = records
        if self._wanted and not await self._cache.fetch(self._wanted):
            return False
        self._looked_at = None
        return True

    async def _wanted_by(self, records: Mapping[Partition, Sequence[Record]]) -> set[SchemaRequest]:
        """The schemas that records name, looked at in turns."""
        wanted: set[SchemaRequest] = set()
        for partition, delivered in records.items():
            if (decoder := self._decoders.get(partition.topic)) is None:
                continue
            for start in range(0, len(delivered), RECORDS_PER_TURN):
                wanted.update(decoder.wanted(delivered[start : start + RECORDS_PER_TURN]))
                await asyncio.sleep(0)
        return wanted

    def families(self) -> Sequence[Family]:
        """State of the registry, and the number of schemas at hand."""
        return (
            single("schema_registry_up", float(self._cache.problem is None)),
            single("schemas_cached", float(len(self._cache))),
        )

    async def close(self) -> None:
        """Give up what is being fetched, and leave."""
        await self._cache.close()
