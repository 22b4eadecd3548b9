"""One partition as it is being fetched."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.batches.damage import Damage
from streamwatch.edge.sources.kafka.batches.reader import PartitionReader
from streamwatch.edge.sources.kafka.fetch.backoff import Backoff


@dataclass(slots=True, eq=False)
class Slot:
    """Replaced when partitions are assigned anew: an answer to an earlier request finds nobody."""

    partition: Partition
    position: int
    """Offset of the next record to be taken."""
    backoff: Backoff
    """After errors that concern this partition alone."""
    reader: PartitionReader | None = None
    """An answer that is being taken."""
    since: float = 0.0
    """When that came."""
    retry_at: float = 0.0
    """Nothing is asked before this."""
    high_watermark: int = -1
    """As of the last answer; -1 before the first."""
    answer: int = 0
    """Number of the last answer without an error, among those of all partitions."""
    sent_at: float = 0.0
    """When the request of the last answer was sent."""
    out_of_range: bool = False
    """The log does not hold the position."""
    damage: Damage | None = None
    """What stands at the position cannot be read, be it tried again."""
    asked: int = -1
    """Later offset by which brokers find the position, after damage in the log; -1 for itself."""
    suspected: int = -1
    """Offset at which an answer was broken once, or a broker failed."""
    error: str = ""
    """A failure that is to be told."""
    failures: int = 0
    """Errors of a broker at `suspected`."""
    salvage: asyncio.Task[None] | None = None
    """Searches where reading can go on."""
    denied_since: float | None = None
    """Nothing but denials came since then."""

    @property
    def idle(self) -> bool:
        """Nothing of it is left to be taken or to be told."""
        return self.reader is None and self.damage is None and self.salvage is None and not self.out_of_range

    def seek(self, position: int) -> None:
        """Go on from another offset; what came of this one is void."""
        self.position = position
        self.reader = self.damage = self.denied_since = None
        self.asked = -1
        self.out_of_range = False
        self.suspected, self.failures, self.retry_at = -1, 0, 0.0
        if self.salvage is not None:
            self.salvage.cancel()
            self.salvage = None
        self.backoff.reset()
