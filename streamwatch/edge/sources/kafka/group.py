"""Was the consumer group last used by this state? Its advisory offsets carry the name of theirs.

Without a group nothing outside the state directory remembers: one that was lost or restored goes unnoticed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.connection import Connection
from streamwatch.edge.sources.kafka.data_loss import DataLossTracker
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.wire import CONNECTION_ERRORS, worded
from streamwatch.telemetry import InternalEvent, OffsetsNotRead

_MARK = re.compile(r"state=(\S+) commit=(\d+)")


class Foreign(NamedTuple):
    """Reason why the group's offsets are not of this state as it is now."""

    cause: Literal["state_lost", "state_restored", "state_replaced"]
    what: str
    remedy: str


def foreign(group: str, own: str, theirs: Iterable[str], *, begun: bool) -> Foreign | None:
    """Compare this state's mark with those in the group; None if all is well or nothing is known.

    Parameters
    ----------
    group
        Name of the consumer group.
    own
        `state=<identity> commit=<number>` of the state as opened; empty if it is not durable.
    theirs
        Texts committed with the group's offsets; those of other programs are ignored.
    begun
        This state holds positions.
    """
    mine = _MARK.fullmatch(own)
    marks: dict[str, int] = {}
    for found in filter(None, map(_MARK.fullmatch, theirs)):
        marks[found[1]] = max(marks.get(found[1], 0), int(found[2]))
    if mine is None or not marks:
        return None
    identity, number = mine[1], int(mine[2])
    if identity in marks:
        if marks[identity] <= number:
            return None
        return Foreign(
            "state_restored",
            f"consumer group {group} was last used at commit {marks[identity]} of this state,"
            f" which is at commit {number}",
            "put the newer state directory back",
        )
    other, commit = max(marks.items(), key=lambda mark: mark[1])
    if begun:
        return Foreign(
            "state_replaced",
            f"consumer group {group} was last used by state {other}, and this is state {identity}",
            "put that state's directory back, or choose another kafka.group_id",
        )
    return Foreign(
        "state_lost",
        f"consumer group {group} was last used at commit {commit} of state {other}, and this state is empty",
        "put that state's directory back, or choose another kafka.group_id to start afresh",
    )


class Group:
    """Asks the group once, before anything is committed to it.

    Parameters
    ----------
    spec
        Names the group, if there is one.
    mark
        This state's mark.
    losses
        Told if the group was last used by another state; may refuse.
    emit
        Told if the group could not be asked.
    """

    def __init__(
        self,
        spec: KafkaSpec,
        mark: Callable[[], str],
        losses: DataLossTracker,
        emit: Callable[[InternalEvent], None],
    ) -> None:
        self._spec = spec
        self._offset_metadata = mark
        self._losses = losses
        self._emit = emit
        self._asked = False

    async def ask(self, connection: Connection, partitions: Iterable[Partition], *, begun: bool) -> None:
        """Read what was committed for these; under `on_data_loss: fail` an answer is waited for."""
        group, own = self._spec.group_id, self._offset_metadata()
        if group is None or not own or self._asked:
            return
        try:
            texts = await connection.texts(partitions)
        except CONNECTION_ERRORS as error:
            if self._spec.on_data_loss == "fail":
                raise
            self._emit(OffsetsNotRead(worded(error)))
            texts = []
        self._asked = True
        if found := foreign(group, own, texts, begun=begun):
            self._losses.foreign(*found)
