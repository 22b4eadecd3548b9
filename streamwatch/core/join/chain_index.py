"""Index of long chains by model: of the many models that predicted an id, the few that one is compared with.

A chain is walked once in a batch, and from where it ended when it has grown. One whose first or last entry
has left it is walked again.
"""

from __future__ import annotations

from collections.abc import Collection

from streamwatch.core.join.entry import GONE, JoinEntry


class _Chain:
    """Entries of one id: place in the chain and entry by model, a later one in place of an earlier."""

    __slots__ = ("by_model", "first", "last", "length")

    def __init__(self, first: JoinEntry) -> None:
        self.first = first
        self.last: JoinEntry | None = None
        self.by_model: dict[str, tuple[int, JoinEntry]] = {}
        self.length = 0


class ChainIndex:
    """Finds entries by model in the chains of a batch."""

    __slots__ = ("_chains", "names")

    def __init__(self) -> None:
        self._chains: dict[str, _Chain] = {}
        self.names: dict[str, None] = {}
        """Models that were met in any chain, in that order."""

    def begin(self) -> None:
        """Drop the chains of the batch before, as the store may have changed them."""
        self._chains.clear()

    def clear(self) -> None:
        """Drop the chains and the names of models."""
        self._chains.clear()
        self.names.clear()

    def update(self, first: JoinEntry) -> None:
        """Index the entries that were added to a chain."""
        chain = self._chains.get(first.id)
        if chain is None or chain.first is not first or chain.last is None or chain.last.state == GONE:
            chain = self._chains[first.id] = _Chain(first)
        last = chain.last
        entry = first if last is None else last.next
        by_model, names, length = chain.by_model, self.names, chain.length
        while entry is not None:
            if entry.model is not None:
                by_model[entry.model] = length, entry
                names[entry.model] = None
            length += 1
            last, entry = entry, entry.next
        chain.last, chain.length = last, length

    def find(self, first: JoinEntry, wanted: Collection[str]) -> list[JoinEntry]:
        """Return the entries of the wanted models, in the order of the chain; call `update` first."""
        by_model = self._chains[first.id].by_model
        if len(wanted) < len(by_model):
            found = [by_model[model] for model in wanted if model in by_model]
        else:
            found = [each for model, each in by_model.items() if model in wanted]
        found.sort(key=_place)
        return [entry for _, entry in found]


def _place(found: tuple[int, JoinEntry]) -> int:
    return found[0]
