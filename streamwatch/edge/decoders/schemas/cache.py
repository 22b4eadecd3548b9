"""Readers by schema: each schema is fetched and compiled once.

Only a registry that cannot be asked is waited for, and asked again after ever longer pauses. Whatever else
happens while one schema is fetched or compiled makes that schema unusable, and nothing else. What a registry
answered is believed for a minute, but not just after it was away: one that comes back may have to load what
it knows. Fetching runs beside the loop, compiling in a thread: nobody waits in between.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from streamwatch.core.events import Partition
from streamwatch.core.metrics import single
from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import NeededSchemas, Record
from streamwatch.edge.decoders.schemas.schema import (
    Schema,
    SchemaRef,
    SchemaRequest,
    SchemaUnavailable,
    SchemaUnknown,
    SchemaUnusable,
    ValueReader,
)
from streamwatch.telemetry import (
    InternalEvent,
    SchemaAwaited,
    SchemaRegistryLost,
    SchemaRegistryRecovered,
    SchemaRejected,
)

UNAVAILABLE: Final = "schema_unavailable"
UNKNOWN: Final = "schema_unknown"
UNUSABLE: Final = "schema_unusable"
MAX_SCHEMAS: Final = 1_000
"""Readers and names of unknown schemas that are remembered, and all that one poll asks for."""
MAX_TEXT_BYTES: Final = 8 * 2**20
"""Texts of all schemas that are remembered: a reader takes several times as much memory."""
BELIEVED_SECONDS: Final = 60.0
"""Time after which a schema is asked for again that the registry did not know, or did not give."""
DOUBT_SECONDS: Final = 30.0
"""Time after the end of an outage in which a registry is not believed that it does not know a schema."""
WAIT_SECONDS: Final = 0.25
"""Time for which one call waits for what is being fetched."""
REPORTED_SECONDS: Final = 1.0
"""Time after which waiting for a schema is reported."""
FORGOTTEN_SECONDS: Final = 10.0
"""Time after which a schema that no record has needed is no longer waited for."""
AT_ONCE: Final = 8
"""Schemas that are fetched side by side."""
_MOST_CHARACTERS: Final = 300
RETRY_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Pauses after which a registry is asked again; the last one repeats."""


class Registry(Protocol):
    """Source of schemas."""

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


class _Ready(NamedTuple):
    """A reader, and the length of its schema's text."""

    reader: ValueReader
    size: int


@dataclass(slots=True)
class _Wait:
    """A schema that is waited for: since when, and when it was last asked for."""

    since: float
    asked: float
    reported: bool = False


_Entry: TypeAlias = _Ready | _Refusal


class SchemaCache:
    """Readers of everything records named so far.

    Parameters
    ----------
    registry
        Registry of the schemas.
    emit
        Receives internal events.
    monotonic
        Monotonic clock in seconds.
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
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._problem: str | None = None
        self._failures = 0
        self._lost_at = 0.0
        self._retry_at = 0.0
        # A thread of its own: a text that keeps protoc busy must not hold up flushes of the state.
        self._compiling = ThreadPoolExecutor(1, "schemas")
        self._doubt_until: float | None = 0.0
        """None from a failure to the next answer."""
        self._wanted: frozenset[SchemaRequest] = frozenset()
        self._awaited: dict[SchemaRequest, _Wait] = {}
        self._one_by_one = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def problem(self) -> str | None:
        """Reason why schemas cannot be had just now; None while they can."""
        return self._problem

    @property
    def waiting(self) -> str | None:
        """Say what records wait for; None while that takes less than a second."""
        waiting = next((each for each, wait in self._awaited.items() if wait.reported), None)
        if self._problem is not None or waiting is None:
            return self._problem
        return f"schema {waiting.ref} of the registry at {self._registry.host} is being fetched or compiled"

    def reader(self, wanted: SchemaRequest) -> ValueReader | str:
        """Return the reader of a schema that `fetch` loaded, or the reason why its records are invalid."""
        match self._entries.get(wanted):
            case _Ready(reader):
                return reader
            case _Refusal(reason):
                return reason
            case None:
                return UNAVAILABLE

    def why(self, wanted: SchemaRequest) -> str:
        """Say why the schema has no reader, for a person; empty if it has."""
        entry = self._entries[wanted]
        return entry.why if isinstance(entry, _Refusal) else ""

    def is_missing(self, wanted: SchemaRequest) -> bool:
        """Tell whether a schema is not at hand, or has to be asked for again."""
        entry = self._entries.get(wanted)
        return entry is None or (isinstance(entry, _Refusal) and entry.until <= self._monotonic())

    async def fetch(self, wanted: Collection[SchemaRequest], *, wait: bool = True) -> bool:
        """Load readers, waiting a moment at most; return whether all are there.

        What is not is being fetched, or will be once the registry may be asked again.
        """
        self._sweep()
        self._wanted = frozenset(wanted)
        missing = [each for each in wanted if self.is_missing(each)]
        if missing:
            if self._monotonic() >= self._retry_at:
                for each in missing:
                    if each not in self._fetching:
                        self._fetching[each] = asyncio.create_task(self._load(each))
            running = [self._fetching[each] for each in missing if each in self._fetching]
            if running and wait:
                await asyncio.wait(running, timeout=WAIT_SECONDS)
                self._sweep()
            missing = [each for each in missing if self.is_missing(each)]
        self._report(missing)
        if missing:
            return False
        for each in wanted:
            self._entries.move_to_end(each)
        while len(self._entries) > max(MAX_SCHEMAS, len(wanted)):
            self._entries.popitem(last=False)
        return True

    async def close(self) -> None:
        """Cancel what is being fetched, and close the registry."""
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

    def _report(self, missing: Sequence[SchemaRequest]) -> None:
        """Report which schemas are waited for, once that has taken a while."""
        now = self._monotonic()
        for each in missing:
            wait = self._awaited.setdefault(each, _Wait(now, now))
            wait.asked = now
            if not wait.reported and now - wait.since >= REPORTED_SECONDS:
                wait.reported = True
                if self._problem is None:
                    self._emit(SchemaAwaited(str(each.ref), self._registry.host))
        for each, wait in list(self._awaited.items()):
            if not self.is_missing(each) or now - wait.asked > FORGOTTEN_SECONDS:
                del self._awaited[each]

    async def _load(self, wanted: SchemaRequest) -> None:
        try:
            async with self._slots:
                schema = await self._registry.schema(wanted.ref)
        except SchemaUnavailable as error:
            self._doubt_until = None
            self._lost(str(error))
        except SchemaUnknown:
            self._refuse(wanted, UNKNOWN, f"{self._registry.host} does not know it")
        except Exception as error:  # noqa: BLE001 - whatever one answer is, others are read
            self._refuse(wanted, UNUSABLE, _description(error))
        else:
            self._answered()
            self._recovered()
            await self._compile(wanted, schema)

    async def _compile(self, wanted: SchemaRequest, schema: Schema) -> None:
        size = len(schema.text) + sum(len(text) for _, text in schema.references)
        made: ValueReader | Exception
        async with self._one_by_one:
            if self._has_room(size):
                loop = asyncio.get_running_loop()
                made = await loop.run_in_executor(self._compiling, _made, wanted, schema)
            else:
                made = MemoryError(f"schemas that are needed together have more than {MAX_TEXT_BYTES} bytes")
        if not isinstance(made, Exception):
            self._entries[wanted] = _Ready(made, size)
            return
        until = float("inf")
        if isinstance(made, OSError | MemoryError):  # perhaps the machine's fault
            until = self._monotonic() + BELIEVED_SECONDS
        self._reject(wanted, _Refusal(UNUSABLE, until, _description(made)))

    def _has_room(self, size: int) -> bool:
        """Forget readers that no record at hand needs until another fits; False if it does not."""
        room = MAX_TEXT_BYTES - size - sum(e.size for e in self._entries.values() if isinstance(e, _Ready))
        for each, entry in list(self._entries.items()):
            if room < 0 and isinstance(entry, _Ready) and each not in self._wanted:
                del self._entries[each]
                room += entry.size
        return room >= 0

    def _refuse(self, wanted: SchemaRequest, reason: str, why: str) -> None:
        """Note that a registry gave no schema, unless it was away just now: then it is asked again soon."""
        now = self._monotonic()
        if now < self._answered():
            self._lost(f"it was away, and now of schema {wanted.ref}: {why}")
            return
        self._recovered()
        refusal = _Refusal(reason, now + BELIEVED_SECONDS, why)
        if reason == UNKNOWN:
            self._entries[wanted] = refusal
        else:
            self._reject(wanted, refusal)

    def _reject(self, wanted: SchemaRequest, refusal: _Refusal) -> None:
        self._emit(SchemaRejected(str(wanted.ref), refusal.why, self._registry.host))
        self._entries[wanted] = refusal

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
        self._emit(SchemaRegistryLost(self._problem, self._registry.host, delay))


def _made(wanted: SchemaRequest, schema: Schema) -> ValueReader | Exception:
    """Compile a schema; any fault is a value: of some (StopIteration) a future never ends."""
    try:
        return wanted.compile(schema)
    except Exception as error:  # noqa: BLE001 - whatever one schema is, others are compiled
        return error


def _description(error: Exception) -> str:
    """Describe a fault; those of libraries with their type, as their messages may say little."""
    text = str(error) if isinstance(error, SchemaUnusable) else f"{type(error).__name__}: {error}"
    return text[:_MOST_CHARACTERS]


# Schemas of all topics, as the daemon waits for them.


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
        """Cancel what is being fetched, and close the registry."""
        await self._cache.close()
