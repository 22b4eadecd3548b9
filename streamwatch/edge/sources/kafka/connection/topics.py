"""Topics that have to exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from streamwatch.edge.sources.kafka.fetch.wire import Listing


class TopicsMissing(Exception):  # noqa: N818 - it names what is the case
    """Configured topics that the cluster does not have; none was created by asking.

    Attributes
    ----------
    nearest
        For each missing topic the existing names most like it.
    """

    def __init__(self, nearest: Mapping[str, Sequence[str]], servers: str) -> None:
        self.nearest = dict(nearest)
        parts = [
            f"topic {name!r} does not exist" + (f" (did you mean {' or '.join(near)}?)" if near else "")
            for name, near in nearest.items()
        ]
        super().__init__(
            f"{'; '.join(parts)} on {servers}, or this user may not see it; nothing was created by asking"
        )


def require_topics(topics: Sequence[str], listing: Listing, servers: str) -> None:
    """Raise `TopicsMissing` unless the cluster has every topic."""
    there = [name for name, listed in listing.items() if listed.partitions]
    missing = {t: get_close_matches(t, there, n=3, cutoff=0.6) for t in topics if t not in there}
    if missing:
        raise TopicsMissing(missing, servers)
