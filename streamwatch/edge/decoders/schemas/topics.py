"""Schemas of all topics, as the daemon waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

from streamwatch.core.events import Partition
from streamwatch.core.metrics import single
from streamwatch.core.ports import NeededSchemas, Record
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

    @property
    def problem(self) -> str | None:
        """Reason why schemas cannot be had just now; None while they can."""
        return self._cache.problem

    @property
    def waiting(self) -> str | None:
        """Words for what records wait for; None while nothing does, or not for long."""
        return self._cache.waiting

    async def needed(self, records: Mapping[Partition, Sequence[Record]]) -> NeededSchemas:
        """Name the schemas of these records, by partition, looked at in turns."""
        needed: dict[Partition, set[SchemaRequest]] = {}
        for partition, delivered in records.items():
            if (decoder := self._decoders.get(partition.topic)) is None:
                continue
            wanted: set[SchemaRequest] = set()
            for start in range(0, len(delivered), RECORDS_PER_TURN):
                wanted.update(decoder.wanted(delivered[start : start + RECORDS_PER_TURN]))
                await asyncio.sleep(0)
            if wanted:
                needed[partition] = wanted
        return needed

    async def missing(self, needed: NeededSchemas, *, wait: bool = True) -> Collection[Partition]:
        """Have schemas at hand; the partitions of which some are not, after a moment at most."""
        wanted: set[SchemaRequest] = set().union(*needed.values())
        if not wanted or await self._cache.fetch(wanted, wait=wait):
            return ()
        return [partition for partition, each in needed.items() if any(map(self._cache.is_missing, each))]

    def families(self) -> Sequence[Family]:
        """State of the registry, and the number of schemas at hand."""
        return (
            single("schema_registry_up", float(self._cache.problem is None)),
            single("schemas_cached", float(len(self._cache))),
        )

    async def close(self) -> None:
        """Give up what is being fetched, and leave."""
        await self._cache.close()
