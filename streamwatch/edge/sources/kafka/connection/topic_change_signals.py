"""Signs that a log may not be the one that was read: seen before more is fetched."""

from __future__ import annotations

from typing import Any

from aiokafka.conn import CloseReason
from aiokafka.errors import (
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
)
from aiokafka.protocol.fetch import FetchRequest

_BROKEN = (CloseReason.CONNECTION_BROKEN, CloseReason.CONNECTION_TIMEOUT)
_REFUSED = (UnknownTopicOrPartitionError.errno, NotLeaderForPartitionError.errno)


class TopicChangeSignals:
    """Notifications refused fetches and broken connections of a client, which hides both and reads on.

    A topic deleted and made anew shows itself by nothing else, once the new log is longer than the position:
    fetches in flight are refused when the topic goes. A partition that is held back has none in flight.

    Parameters
    ----------
    client
        aiokafka's, watched from now on.
    """

    def __init__(self, client: Any) -> None:
        self.latest = 0
        """Number of the last change signal."""
        self._of_all = 0
        self._of_topic: dict[str, int] = {}
        send, closed = client.send, client._on_connection_closed  # noqa: SLF001 - there is no other hook

        async def watched(node: int, request: Any, **options: Any) -> Any:
            answer = await send(node, request, **options)
            if answer.API_KEY == FetchRequest.API_KEY:
                for topic, partitions in answer.topics:
                    if any(error in _REFUSED for _, error, *_ in partitions):
                        self.latest += 1
                        self._of_topic[topic] = self.latest
            return answer

        def parted(connection: Any, reason: CloseReason) -> None:
            if reason in _BROKEN:
                self.latest += 1
                self._of_all = self.latest
            closed(connection, reason)

        client.send, client._on_connection_closed = watched, parted  # noqa: SLF001

    def about(self, topic: str, settled: int) -> bool:
        """Tell whether this topic is suspect since change signal number `settled`."""
        return max(self._of_all, self._of_topic.get(topic, 0)) > settled
