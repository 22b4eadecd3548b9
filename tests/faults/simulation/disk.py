"""A disk that keeps promises and no more: what is flushed stays, what is written may stay, in order.

It also keeps, beside every commit, the events that led to it: that is the audit log.
"""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Literal

from streamwatch.core.merge import MergeProgress
from streamwatch.core.ports import CommitBatch, RecoveredState
from streamwatch.core.records.events import Alarm, Event
from streamwatch.daemon.source_positions import (
    MERGE,
    POSITIONS,
    DataLossTotals,
    SourcePositions,
    decode_positions,
    restored_progress,
)
from streamwatch.edge.stores.kind import StateFailed
from streamwatch.edge.stores.memory import MemoryStore
from tests.core.model_store import ModelStore


class BrokenPromiseError(AssertionError):
    """What must not happen in any seed."""


def require(holds: bool, what: object) -> None:  # noqa: FBT001 - reads like an assertion
    if not holds:
        raise BrokenPromiseError(str(what))


Defect = Literal["", "torn", "positions", "forgets"]
"""Of a disk that shows whether checks can fail: a commit that fails leaves the records of ids without the
rest, or positions without the rest; a flush is none."""


@dataclass(frozen=True)
class Image:
    """What the disk holds after one commit."""

    number: int
    content: bytes
    saved: RecoveredState = field(default_factory=RecoveredState)
    events: tuple[Event, ...] = ()
    """Of this commit, in the order in which they were evaluated."""
    alarms: tuple[Alarm, ...] = ()
    """Of this commit."""

    @cached_property
    def _sources(self) -> SourcePositions:
        return decode_positions(self.saved.sections[POSITIONS]) if self.number else SourcePositions()

    @property
    def positions(self):
        return self._sources.positions

    @property
    def progress(self) -> MergeProgress:
        return restored_progress(self.saved.sections.get(MERGE))

    @property
    def counts(self) -> DataLossTotals:
        return self._sources.counts


@dataclass(frozen=True)
class Troubles:
    """How likely each operation fails."""

    commit: float = 0.0
    flush: float = 0.0
    open: float = 0.0
    most: int = 6
    """In all; at some time the disk has been replaced."""


class Disk:
    """All commits that may be found at the next opening.

    Parameters
    ----------
    chance
        What fails, and what survives.
    troubles
        How often.
    defect
        What is wrong with it.
    """

    def __init__(self, chance: Random, troubles: Troubles, defect: Defect = "") -> None:
        self.chance = chance
        self.troubles = troubles
        self.defect: Defect = defect
        self.images = [Image(0, b"")]
        self.durable = 0
        """Place among `images` of the newest that was flushed."""
        self.failures = 0
        self.store: DiskStore | None = None

    def fails(self, operation: str) -> bool:
        if self.failures >= self.troubles.most:
            return False
        if self.chance.random() >= getattr(self.troubles, operation):
            return False
        self.failures += 1
        return True

    def lose_power(self) -> Image:
        """Everything flushed survives, and some of what was written since."""
        promised = 0 if self.defect == "forgets" else self.durable
        last = self.chance.randint(promised, len(self.images) - 1)
        del self.images[last + 1 :]
        self.durable = last
        self.store = None
        return self.images[-1]

    def open(self) -> DiskStore:
        if self.store is not None:
            raise BrokenPromiseError("opened while it is open")
        if self.fails("open"):
            raise StateFailed("input/output error at the opening")
        self.lose_power()
        self.store = DiskStore(self)
        return self.store

    @property
    def all_durable(self) -> bool:
        return self.durable == len(self.images) - 1

    def history(self) -> list[Image]:
        return self.images[1:]

    def at(self, positions) -> Image | None:
        """The newest durable image with these positions."""
        for image in reversed(self.images[: self.durable + 1]):
            if image.positions == positions:
                return image
        return None


class DiskStore(MemoryStore):
    """One opening of the disk; of no use after a failure or the end of its process."""

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self._disk = disk
        self._model_store = ModelStore()
        image = disk.images[-1]
        if image.number:
            self._model_store = pickle.loads(image.content)  # noqa: S301 - our own
        self._events: list[Event] = []
        self._alarms: list[Alarm] = []
        self._failed = self._unflushed = False

    def _used(self) -> bool:
        """Whether the process lives; if it does, the store must be open and sound."""
        if self._disk.store is not self:
            return False
        if self._failed:
            raise BrokenPromiseError("used after a failure")
        return True

    def _fail(self, what: str) -> None:
        self._failed = True
        raise StateFailed(what)

    @property
    def durable(self):
        return True

    def load(self):
        return self._model_store.saved()

    def note(self, events, alarms):
        """These are of the next commit."""
        self._events += events
        self._alarms += alarms

    def commit(self, changes: CommitBatch) -> None:
        if not self._used():
            return
        if self._unflushed:
            raise BrokenPromiseError("committed after a flush that failed")
        disk = self._disk
        fails, written = disk.fails("commit"), disk.chance.random() < 0.5
        if fails and not written and not disk.defect:
            self._fail("no space left on device")
        before = copy.deepcopy(self._model_store) if fails and disk.defect == "torn" else None
        positions_only = fails and disk.defect == "positions"
        positions = {name: value for name, value in changes.sections.items() if name == POSITIONS}
        self._model_store.commit(CommitBatch(positions) if positions_only else changes)
        model_store = before or self._model_store
        if before:
            before.columns = self._model_store.columns
        content, saved = pickle.dumps(model_store), model_store.saved()
        image = Image(model_store.commits, content, saved, tuple(self._events), tuple(self._alarms))
        self._events, self._alarms = [], []
        disk.images.append(image)
        if fails:
            self._fail("input/output error at a write")

    def flush(self) -> None:
        disk = self._disk
        if disk.store is not self:
            raise BrokenPromiseError("closed while it was being flushed")
        fails, flushed = disk.fails("flush"), disk.chance.random() < 0.5
        if flushed or not fails:
            disk.durable = len(disk.images) - 1
        if fails:
            self._unflushed = True  # reading goes on until the loop hears of it
            raise StateFailed("input/output error at a flush")

    def close(self) -> None:
        if self._disk.store is self:
            self._disk.store = None
