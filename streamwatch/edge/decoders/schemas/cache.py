"""Readers by schema: each schema is fetched and compiled once.

Records wait only for a registry that is unreachable or has an internal error, which is asked again after
growing pauses. Where it has such an error for one schema and returns others, only that one is waited for, and
named, for as long as it takes. Any other failure to fetch or compile a schema makes only that schema
unusable. A registry's refusal counts for a minute, but is doubted shortly after an outage, because a registry
that restarts may still be loading its schemas. Fetching runs in tasks beside the consume loop, compiling in a
thread.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from streamwatch.core.metrics import single
from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import NeededSchemas, Record
from streamwatch.core.records.events import Partition
from streamwatch.edge.decoders.schemas.schema import (
    Schema,
    SchemaRequest,
    SchemaUnavailable,
    SchemaUnknown,
    SchemaUnusable,
    SchemaWithheldError,
    ValueReader,
)
from streamwatch.telemetry import (
    InternalEvent,
    SchemaAwaited,
    SchemaRegistryLost,
    SchemaRegistryRecovered,
    SchemaRejected,
    SchemaWithheld,
)

if TYPE_CHECKING:  # aiohttp is loaded where there is a registry
    from streamwatch.edge.decoders.schemas.client import RegistryClient

UNAVAILABLE: Final = "schema_unavailable"
UNKNOWN: Final = "schema_unknown"
UNUSABLE: Final = "schema_unusable"
MAX_SCHEMAS: Final = 1_000
"""Readers and refusals that are remembered at most; more only while one call of `fetch` needs more."""
MAX_TEXT_BYTES: Final = 8 * 2**20
"""Bytes of the texts of remembered schemas at most; readers take several times as much memory."""
BELIEVED_SECONDS: Final = 60.0
"""Time for which a registry's refusal of a schema counts, before it is asked again."""
DOUBT_SECONDS: Final = 30.0
"""Time after an outage in which a registry's answer that a schema is unknown is doubted."""
WAIT_SECONDS: Final = 0.25
"""Time that one call of `fetch` waits at most."""
REPORTED_SECONDS: Final = 1.0
"""Time after which waiting for a schema is reported."""
FORGOTTEN_SECONDS: Final = 10.0
"""Time without a record that needs a schema, after which it no longer counts as waited for."""
AT_ONCE: Final = 8
"""Schemas that are fetched at the same time, at most."""
_MOST_CHARACTERS: Final = 300
RETRY_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Pauses between requests to an unreachable registry; the last one repeats."""


class _Refusal(NamedTuple):
    """Result without a reader: until a time, every record with this schema is invalid."""

    reason: str
    until: float


class _Ready(NamedTuple):
    """A reader, and the length of its schema's text."""

    reader: ValueReader
    size: int


@dataclass(slots=True)
class _Wait:
    """A schema that records wait for: since when, and when `fetch` last asked for it (monotonic seconds)."""

    since: float
    asked: float
    reported: bool = False
    error: str | None = None
    """Error that the registry last answered for this schema; None if it answered none."""
    failed_at: float = 0.0
    """Time of its first such answer."""
    withheld: int = 0
    """Requests that failed in a row while the registry returned other schemas."""
    retry_at: float = 0.0
    """Time before which this schema is not asked for again."""


_Entry: TypeAlias = _Ready | _Refusal


class SchemaCache:
    """Cache of readers of the schemas that records named.

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
        registry: RegistryClient,
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
        self._doubt_until: float | None = 0.0
        """Time until which a refusal is doubted; None from a failure to the next answer."""
        self._answered_at = float("-inf")
        """Time of the last answer about a schema that was no error of the registry."""
        self._wanted: frozenset[SchemaRequest] = frozenset()
        self._awaited: dict[SchemaRequest, _Wait] = {}
        self._one_by_one = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def problem(self) -> str | None:
        """Reason why the registry cannot be reached; None while it can."""
        return self._problem

    @property
    def waiting(self) -> str | None:
        """Describe why records wait: the registry's problem, or else one schema that they wait for.

        None if no records wait. A schema is named at once if the registry returns others but not this one,
        else after `REPORTED_SECONDS` of waiting. Records count as waiting until `FORGOTTEN_SECONDS` after
        `fetch` was last called for their schema.
        """
        awaited = self._waited_for()
        if not awaited:
            return None
        waiting = next((each for each, wait in awaited.items() if wait.reported), None)
        if self._problem is not None:
            return self._problem
        if (withheld := self.withheld) is not None:
            why = f"{awaited[withheld].error}, while other schemas are returned"
            return f"schema {withheld.ref} of the registry at {self._registry.host}: {why}"
        if waiting is None:
            return None
        return f"schema {waiting.ref} of the registry at {self._registry.host} is being fetched or compiled"

    @property
    def withheld(self) -> SchemaRequest | None:
        """A schema that records wait for and that alone the registry does not return; None without one."""
        return next((each for each, wait in self._waited_for().items() if wait.withheld), None)

    def reader(self, wanted: SchemaRequest) -> ValueReader | str:
        """Return the reader of a schema that `fetch` loaded, or the reason why its records are invalid."""
        match self._entries.get(wanted):
            case _Ready(reader):
                return reader
            case _Refusal(reason):
                return reason
            case None:
                return UNAVAILABLE

    def is_missing(self, wanted: SchemaRequest) -> bool:
        """Tell whether a schema has neither a reader nor a refusal that still counts."""
        entry = self._entries.get(wanted)
        return entry is None or (isinstance(entry, _Refusal) and entry.until <= self._monotonic())

    async def fetch(self, wanted: Collection[SchemaRequest], *, wait: bool = True) -> bool:
        """Load readers, waiting up to `WAIT_SECONDS`; return whether none is missing.

        Missing schemas are being fetched, or will be once the registry may be asked again.
        """
        self._sweep()
        self._wanted = frozenset(wanted)
        missing = [each for each in wanted if self.is_missing(each)]
        if missing:
            now = self._monotonic()
            if now >= self._retry_at:
                for each in missing:
                    wait_for = self._awaited.setdefault(each, _Wait(now, now))
                    if each not in self._fetching and now >= wait_for.retry_at:
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
        """Cancel fetches, and close the registry."""
        for task in self._fetching.values():
            task.cancel()
        await asyncio.gather(*self._fetching.values(), return_exceptions=True)
        self._fetching.clear()
        await self._registry.close()

    def _waited_for(self) -> Mapping[SchemaRequest, _Wait]:
        """Schemas that are missing and were asked for a moment ago."""
        now = self._monotonic()
        return {each: wait for each, wait in self._awaited.items() if now - wait.asked <= FORGOTTEN_SECONDS}

    def _sweep(self) -> None:
        """Remove finished fetches; raises the exception of a fetch that failed by a bug."""
        for wanted in [wanted for wanted, task in self._fetching.items() if task.done()]:
            self._fetching.pop(wanted).result()

    def _report(self, missing: Sequence[SchemaRequest]) -> None:
        """Report schemas that records have waited for longer than `REPORTED_SECONDS`, once each."""
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
        except SchemaWithheldError as error:
            self._withheld(wanted, str(error))
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
                made = await _compiled(wanted, schema)
            else:
                made = MemoryError(f"schemas that are needed together have more than {MAX_TEXT_BYTES} bytes")
        if not isinstance(made, Exception):
            self._entries[wanted] = _Ready(made, size)
            return
        until = float("inf")
        if isinstance(made, OSError | MemoryError):  # may be temporary
            until = self._monotonic() + BELIEVED_SECONDS
        self._reject(wanted, until, _description(made))

    def _has_room(self, size: int) -> bool:
        """Drop readers that no current record needs until a text of `size` bytes fits; False if it cannot."""
        room = MAX_TEXT_BYTES - size - sum(e.size for e in self._entries.values() if isinstance(e, _Ready))
        for each, entry in list(self._entries.items()):
            if room < 0 and isinstance(entry, _Ready) and each not in self._wanted:
                del self._entries[each]
                room += entry.size
        return room >= 0

    def _refuse(self, wanted: SchemaRequest, reason: str, why: str) -> None:
        """Store a refusal, unless the registry was unreachable just before: then it is asked again soon."""
        now = self._monotonic()
        if now < self._answered():
            self._lost(f"it was away, and now of schema {wanted.ref}: {why}")
            return
        self._recovered()
        until = now + BELIEVED_SECONDS
        if reason == UNKNOWN:
            self._entries[wanted] = _Refusal(reason, until)
        else:
            self._reject(wanted, until, why)

    def _reject(self, wanted: SchemaRequest, until: float, why: str) -> None:
        """Store and report that a schema cannot be used."""
        self._emit(SchemaRejected(str(wanted.ref), why, self._registry.host))
        self._entries[wanted] = _Refusal(UNUSABLE, until)

    def _answered(self) -> float:
        """Note that the registry answered; returns the time until which its refusals are doubted."""
        self._answered_at = self._monotonic()
        if self._doubt_until is None:
            self._doubt_until = self._monotonic() + DOUBT_SECONDS
        return self._doubt_until

    def _recovered(self) -> None:
        self._retry_at, self._failures = 0.0, 0
        if self._problem is not None:
            self._problem = None
            self._emit(SchemaRegistryRecovered(round(self._monotonic() - self._lost_at, 3)))

    def _withheld(self, wanted: SchemaRequest, error: str) -> None:
        """Note an error that the registry answers: its own, unless it has answered about others since."""
        now = self._monotonic()
        wait = self._awaited.setdefault(wanted, _Wait(now, now))
        if wait.error is None:
            wait.failed_at = now
        wait.error = error
        if self._answered_at <= wait.failed_at:
            self._doubt_until = None
            self._lost(f"{error}, asked for schema {wanted.ref}")
            return
        wait.retry_at = now + RETRY_SECONDS[min(wait.withheld, len(RETRY_SECONDS) - 1)]
        wait.withheld += 1
        if wait.withheld == 1:
            self._emit(SchemaWithheld(str(wanted.ref), error, self._registry.host))

    def _lost(self, error: str) -> None:
        """Note that the registry is unreachable; several requests that fail together count as one failure."""
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


async def _compiled(wanted: SchemaRequest, schema: Schema) -> ValueReader | Exception:
    """Compile a schema in a thread of its own, which neither delays flushes of the state nor the exit.

    At its end the interpreter waits for the threads of executors, and protoc may take half a minute.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[ValueReader | Exception] = loop.create_future()

    def deliver(made: ValueReader | Exception) -> None:
        if not future.done():  # else it was cancelled
            future.set_result(made)

    def compile_it() -> None:
        made = _made(wanted, schema)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(deliver, made)

    thread = threading.Thread(target=compile_it, name="schemas", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # the system allows no more threads
        return OSError(str(error))
    return await future


def _made(wanted: SchemaRequest, schema: Schema) -> ValueReader | Exception:
    """Compile a schema; exceptions are returned, as a future cannot carry all of them (StopIteration)."""
    try:
        return wanted.compile(schema)
    except Exception as error:  # noqa: BLE001 - whatever one schema is, others are compiled
        return error


def _description(error: Exception) -> str:
    """Describe an exception; those of libraries with their type, as their messages may say little."""
    text = str(error) if isinstance(error, SchemaUnusable) else f"{type(error).__name__}: {error}"
    return text[:_MOST_CHARACTERS]


# Schemas of all topics, for which the consume loop waits.


RECORDS_PER_TURN: Final = 2_000
"""Records searched for names of schemas before control returns to the event loop."""


@runtime_checkable
class WantsSchemas(Protocol):
    """A decoder that needs schemas to be fetched before it decodes."""

    def wanted(self, records: Sequence[Record]) -> Collection[SchemaRequest]:
        """Return the schemas that these records need and that have to be fetched."""
        ...


class TopicSchemas:
    """Fetches the schemas that records of all topics need; implements `core.ports.Schemas`.

    Parameters
    ----------
    cache
        Fetches and keeps schemas.
    decoders
        Decoders that need schemas, by topic.
    """

    def __init__(self, cache: SchemaCache, decoders: Mapping[str, WantsSchemas]) -> None:
        self._cache = cache
        self._decoders = decoders

    @property
    def problem(self) -> str | None:
        """Reason why the registry cannot be reached; None while it can."""
        return self._cache.problem

    @property
    def waiting(self) -> str | None:
        """Describe why records wait, as `SchemaCache.waiting`; None if none wait."""
        return self._cache.waiting

    async def needed(self, records: Mapping[Partition, Sequence[Record]]) -> NeededSchemas:
        """Collect the schemas that records need, by partition; yields to the event loop on the way."""
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
        """Fetch schemas, waiting up to `WAIT_SECONDS`; return the partitions for which some are missing."""
        wanted: set[SchemaRequest] = set().union(*needed.values())
        if not wanted or await self._cache.fetch(wanted, wait=wait):
            return ()
        return [partition for partition, each in needed.items() if any(map(self._cache.is_missing, each))]

    def families(self) -> Sequence[Family]:
        """Return metrics: whether the registry returns what records need, and the number of schemas."""
        returns = self._cache.problem is None and self._cache.withheld is None
        return (
            single("schema_registry_up", float(returns)),
            single("schemas_cached", float(len(self._cache))),
        )

    async def close(self) -> None:
        """Cancel fetches, and close the registry."""
        await self._cache.close()
