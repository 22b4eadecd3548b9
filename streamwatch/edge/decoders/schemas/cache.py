"""Readers by schema: each schema is fetched and compiled once, and waited for as long as it takes.

What a registry says does not exist is believed for a minute, but not just after it was away: one that comes
back may have to load what it knows. What it cannot be asked is asked again, after ever longer pauses.
Fetching runs beside the loop, compiling in a thread: nobody waits in between.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, Protocol, TypeAlias

from streamwatch.edge.decoders.schemas.schema import (
    Schema,
    SchemaRef,
    SchemaRequest,
    SchemaUnavailable,
    SchemaUnknown,
    SchemaUnusable,
    ValueReader,
)
from streamwatch.telemetry import InternalEvent, SchemaRegistryLost, SchemaRegistryRecovered, SchemaRejected

UNKNOWN: Final = "schema_unknown"
UNUSABLE: Final = "schema_unusable"
MAX_SCHEMAS: Final = 1_000
"""Readers and names of unknown schemas that are remembered, and all that one poll asks for."""
BELIEVED_SECONDS: Final = 60.0
"""Time after which a schema that the registry did not know is asked for again."""
DOUBT_SECONDS: Final = 30.0
"""Time after the end of an outage in which a registry is not believed that it does not know a schema."""
WAIT_SECONDS: Final = 0.25
"""Time for which one call waits for what is being fetched."""
RETRY_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Pauses after which a registry is asked again; the last one repeats."""


class Registry(Protocol):
    """A place to fetch schemas from."""

    @property
    def host(self) -> str:
        """Host of the registry."""
        ...

    async def schema(self, ref: SchemaRef) -> Schema:
        """Fetch a schema; raises SchemaUnknown, SchemaUnusable or SchemaUnavailable."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class _Refusal(NamedTuple):
    """No reader: every record with this schema is invalid."""

    reason: str
    until: float
    why: str


_Entry: TypeAlias = ValueReader | _Refusal


class SchemaCache:
    """Readers of everything records named so far.

    Parameters
    ----------
    registry
        Asked for schemas.
    emit
        Where internal events go.
    monotonic
        Seconds that never go back.
    """

    def __init__(
        self,
        registry: Registry,
        emit: Callable[[InternalEvent], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = registry
        self._emit = emit
        self._monotonic = monotonic
        self._entries: OrderedDict[SchemaRequest, _Entry] = OrderedDict()
        self._fetching: dict[SchemaRequest, asyncio.Task[None]] = {}
        self._problem: str | None = None
        self._failures = 0
        self._lost_at = 0.0
        self._retry_at = 0.0
        # A thread of its own: a text that keeps protoc busy must not hold up flushes of the state.
        self._compiling = ThreadPoolExecutor(1, "schemas")
        self._doubt_until: float | None = 0.0
        """None from a failure to the next answer."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def problem(self) -> str | None:
        """Reason why schemas cannot be had just now; None while they can."""
        return self._problem

    def reader(self, wanted: SchemaRequest) -> ValueReader | str:
        """The reader of a schema that `fetch` had at hand, or the reason why its records are invalid."""
        entry = self._entries[wanted]
        return entry.reason if isinstance(entry, _Refusal) else entry

    def why(self, wanted: SchemaRequest) -> str:
        """Say why the schema has no reader, for a person; empty if it has."""
        entry = self._entries[wanted]
        return entry.why if isinstance(entry, _Refusal) else ""

    async def fetch(self, wanted: Collection[SchemaRequest]) -> bool:
        """Have readers of these; whether they are all at hand now, after a moment at most.

        What is not is being fetched, or will be once the registry may be asked again.
        """
        self._sweep()
        missing = [each for each in wanted if self._is_missing(each)]
        if missing:
            if self._monotonic() >= self._retry_at:
                for each in missing:
                    if each not in self._fetching:
                        self._fetching[each] = asyncio.create_task(self._load(each))
            running = [self._fetching[each] for each in missing if each in self._fetching]
            if running:
                await asyncio.wait(running, timeout=WAIT_SECONDS)
                self._sweep()
            if any(self._is_missing(each) for each in missing):
                return False
        for each in wanted:
            self._entries.move_to_end(each)
        while len(self._entries) > max(MAX_SCHEMAS, len(wanted)):
            self._entries.popitem(last=False)
        return True

    async def close(self) -> None:
        """Give up what is being fetched, and leave."""
        for task in self._fetching.values():
            task.cancel()
        await asyncio.gather(*self._fetching.values(), return_exceptions=True)
        self._fetching.clear()
        self._compiling.shutdown(wait=False, cancel_futures=True)
        await self._registry.close()

    def _sweep(self) -> None:
        """Forget fetches that are over; a bug in one of them is raised here."""
        for wanted in [wanted for wanted, task in self._fetching.items() if task.done()]:
            self._fetching.pop(wanted).result()

    def _is_missing(self, wanted: SchemaRequest) -> bool:
        entry = self._entries.get(wanted)
        return entry is None or (isinstance(entry, _Refusal) and entry.until <= self._monotonic())

    async def _load(self, wanted: SchemaRequest) -> None:
        try:
            schema = await self._registry.schema(wanted.ref)
            self._answered()
            self._recovered()
            loop = asyncio.get_running_loop()
            self._entries[wanted] = await loop.run_in_executor(self._compiling, wanted.compile, schema)
        except SchemaUnknown:
            now = self._monotonic()
            if now < self._answered():
                self._lost(f"it was away, and does not know schema {wanted.ref} yet")
                return
            self._recovered()
            why = f"{self._registry.host} does not know it"
            self._entries[wanted] = _Refusal(UNKNOWN, now + BELIEVED_SECONDS, why)
        except SchemaUnusable as error:
            self._emit(SchemaRejected(str(wanted.ref), str(error)))
            self._entries[wanted] = _Refusal(UNUSABLE, float("inf"), str(error))
        except SchemaUnavailable as error:
            self._doubt_until = None
            self._lost(str(error))

    def _answered(self) -> float:
        """Note that the registry answers; the time until which its not knowing is doubted."""
        if self._doubt_until is None:
            self._doubt_until = self._monotonic() + DOUBT_SECONDS
        return self._doubt_until

    def _recovered(self) -> None:
        self._retry_at, self._failures = 0.0, 0
        if self._problem is not None:
            self._problem = None
            self._emit(SchemaRegistryRecovered(round(self._monotonic() - self._lost_at, 3)))

    def _lost(self, error: str) -> None:
        """Note that the registry cannot be asked; of several requests that fail together the first counts."""
        now = self._monotonic()
        if self._problem is None:
            self._lost_at = now
        elif now < self._retry_at:
            return
        delay = RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
        self._problem = f"schema registry at {self._registry.host}: {error}"
        self._retry_at = now + delay
        self._failures += 1
        self._emit(SchemaRegistryLost(self._problem, delay))
