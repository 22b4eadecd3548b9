"""Cold runs of a state that is only looked at."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from streamwatch.core.join.compiled.cold.store import KeyRange
from streamwatch.edge.stores.rocksdb.directory.database import COLD_RUNS
from streamwatch.edge.stores.rocksdb.reading.inspect import Inspection


class ReadRuns:
    """A `RunStore` that nothing is written to.

    Parameters
    ----------
    state
        The one looked at.
    """

    def __init__(self, state: Inspection) -> None:
        self._state = state

    def write(self, values: Sequence[tuple[bytes, bytes]]) -> None:
        """Refuse: raises RuntimeError."""
        raise RuntimeError(f"a state that is looked at is not written to, got {len(values)} values")

    def get_all(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Values of many keys."""
        return self._state.get_all(COLD_RUNS, list(keys))

    def keys(self, first: bytes, end: bytes) -> Sequence[bytes]:
        """Keys in a range, in order."""
        items = self._state.items(COLD_RUNS, first)
        return [key for key, _ in takewhile(lambda item: item[0] < end, items)]

    def next_key(self, first: bytes) -> bytes | None:
        """First key that is not before `first`."""
        return next((key for key, _ in self._state.items(COLD_RUNS, first)), None)

    def remove(self, ranges: Sequence[KeyRange]) -> None:
        """Refuse: raises RuntimeError."""
        raise RuntimeError(f"of a state that is looked at nothing is removed, got {len(ranges)} ranges")

    def reclaimable(self, entries: int) -> list[KeyRange]:
        """Nothing."""
        del entries
        return []

    def reclaim(self, ranges: Sequence[KeyRange]) -> None:
        """Do nothing."""
