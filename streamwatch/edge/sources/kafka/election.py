"""Election of one of several replicas by a consumer group.

The group subscribes to a topic of one partition: the member that is assigned it is elected. Properties of
aiokafka's consumer that matter here:

- It only logs that its session is lost, and keeps its assignment until it has joined again, which takes as
  long as a network outage. So the elected replica commits every `SessionSpec.renewal` seconds, which brokers
  refuse to all but the newest generation; `Candidacy` computes for how long an answer is a proof.
- `commit` retries without end. The time of its first attempt counts.
- It leaves the group if it is not polled for `max_poll_interval_ms`.
- Its sticky assignor stores its memory in the class, so each election has a class of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import CommitFailedError, IllegalStateError
from aiokafka.structs import OffsetAndMetadata

from streamwatch.core.publishing.candidacy import Candidacy, SessionSpec
from streamwatch.edge.sources.kafka.client import Client, attempted, connection_options
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.wire import CONNECTION_ERRORS, worded

_HEARTBEAT_SECONDS: Final = 0.5
"""Time until a member learns that another one has left, at most."""
_POLL_MS: Final = 100
_RETRY_SECONDS: Final = 1.0


def steady_seconds() -> float:
    """Return seconds of a monotonic clock that also runs while the process is stopped and the host sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass(frozen=True, slots=True)
class ElectionSpec:
    """The group, and the topic of one partition to which it subscribes."""

    kafka: KafkaSpec
    group: str
    topic: str
    session: SessionSpec


class Election(ConsumerRebalanceListener):
    """Membership of this replica in the electing group, from `run` until it is cancelled.

    Parameters
    ----------
    spec
        Group and topic.
    candidacy
        Is updated when this replica joins, is elected, renews its proof, loses or leaves.
    changed
        Called after each of these.
    clock
        Monotonic clock in seconds.
    """

    def __init__(
        self,
        spec: ElectionSpec,
        candidacy: Candidacy,
        changed: Callable[[], None],
        clock: Callable[[], float] = steady_seconds,
    ) -> None:
        self._spec = spec
        self._candidacy = candidacy
        self._changed = changed
        self._clock = clock
        self._partition = TopicPartition(spec.topic, 0)
        self._consumer: Any = None
        self._elected = asyncio.Event()
        self.problem: str | None = None
        """Reason why it is no member of the group; None while it is one."""

    async def run(self) -> None:
        """Be a member of the group, and join again after failures, until cancelled; then leave it."""
        while True:
            self._consumer = consumer = self._made()
            try:
                await self._take_part(consumer)
            except CONNECTION_ERRORS as error:
                self.problem = worded(error)
            finally:
                self._candidacy.leave()
                self._changed()
                seconds = self._spec.kafka.stop_timeout_ms / 1_000
                await attempted(consumer.stop(), seconds)
                await Client(consumer._client).close(seconds)  # noqa: SLF001 - consumers do not expose it
            await asyncio.sleep(_RETRY_SECONDS)

    def _made(self) -> Any:
        session = self._spec.session
        assignor = type("Sticky", (StickyPartitionAssignor,), {})
        options: dict[str, Any] = connection_options(self._spec.kafka)
        options["request_timeout_ms"] = int(2_000 * session.timeout)
        return AIOKafkaConsumer(
            **options,
            group_id=self._spec.group,
            enable_auto_commit=False,
            auto_offset_reset="latest",
            session_timeout_ms=int(1_000 * session.timeout),
            rebalance_timeout_ms=int(1_000 * session.timeout),
            heartbeat_interval_ms=int(1_000 * min(_HEARTBEAT_SECONDS, session.timeout / 4)),
            partition_assignment_strategy=(assignor,),
        )

    async def _take_part(self, consumer: Any) -> None:
        await consumer.start()
        consumer.subscribe([self._spec.topic], listener=self)
        self._candidacy.join()
        self.problem = None
        self._changed()
        renewing = asyncio.create_task(self._renew(consumer))
        try:
            while not renewing.done():
                await consumer.getmany(timeout_ms=_POLL_MS)
                await asyncio.sleep(_POLL_MS / 1_000)
            renewing.result()
        finally:
            renewing.cancel()
            await asyncio.wait({renewing})

    async def _renew(self, consumer: Any) -> None:
        """Prove by a commit, every `SessionSpec.renewal` seconds, that the group elected no other replica."""
        session, candidacy = self._spec.session, self._candidacy
        while True:
            self._elected.clear()
            asked, term = self._clock(), candidacy.terms
            if candidacy.is_elected:
                with suppress(CommitFailedError, IllegalStateError, TimeoutError):
                    async with asyncio.timeout(session.timeout):
                        await consumer.commit({self._partition: OffsetAndMetadata(0, "")})
                    candidacy.renew(term, asked)
                    self._changed()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.05, asked + session.renewal - self._clock())):
                    await self._elected.wait()

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Note an assignment: this replica is elected if it has the partition.

        The assignment was requested some time ago, so the term begins unproven: its first renewal proves it.
        """
        if self._partition in assigned:
            self._consumer.pause(self._partition)  # the topic serves the election only, and is not read
            self._elected.set()
            self._candidacy.win(self._clock() - self._spec.session.timeout)
        self._changed()

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Note that the group holds a new election, so that this replica is not elected."""
        del revoked
        self._candidacy.lose()
        self._changed()
