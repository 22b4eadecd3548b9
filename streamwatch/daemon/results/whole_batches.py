"""Results as they are read, held until the mark of their batch says that it is whole."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamwatch.core.ports import Record
from streamwatch.core.results import MARK, ResultRecord, result_of


@dataclass(slots=True)
class WholeBatches:
    """Holds results; of several of one name the latest counts."""

    whole: dict[tuple[str, str], ResultRecord] = field(default_factory=dict[tuple[str, str], ResultRecord])
    """Of batches that are whole and not taken in yet, by kind and name."""
    marked_ms: int = 0
    """Time of the mark that was read last."""
    _held: dict[tuple[str, str], ResultRecord] = field(default_factory=dict[tuple[str, str], ResultRecord])
    """Of a batch whose mark has yet to come."""

    def add(self, record: Record) -> None:
        """Hold a record of the topic.

        Raises
        ------
        ResultsFormatError
            If it is none of results.
        """
        if record.key is None:
            return  # no key is compacted away, and none of ours lacks it
        result = result_of(record.key, record.value)
        self._held[result.kind, result.name] = result
        if result.kind == MARK:
            self.marked_ms = record.timestamp
            self.whole |= self._held
            self._held.clear()

    def take(self) -> dict[tuple[str, str], ResultRecord]:
        """Hand over what is whole, with the latest mark."""
        whole, self.whole = self.whole, {}
        return whole

    def clear(self) -> None:
        """Drop everything."""
        self._held.clear()
        self.whole.clear()
