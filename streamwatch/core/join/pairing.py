"""Pairs of outcomes: two models compared with each other, resolved on the same id with the same label.

A dedup entry keeps a model's class and its label for `join.dedup_horizon`, so whichever model of an id is
resolved later finds the others there, and nothing else has to be remembered. The pair belongs to the later
outcome. Predictions that expired under `join.on_expiry: assume` count as resolved.

Models that predict in folds have no partners: several answers of one model on one id are no pair, and folds
are compared by themselves (`estimators.folds.comparison`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from streamwatch.core.events import PairedAnswer
from streamwatch.core.fold_names import fold_of
from streamwatch.core.join.chain_index import ChainIndex
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.dedup import DedupIndex
from streamwatch.core.join.entry import EXPIRED, RESOLVED, JoinEntry
from streamwatch.core.specs import ComparisonSpec, champion_of

WALKED: Final = 16
"""Where so few models are known, a chain is walked: it is shorter than an index of it is made."""


@dataclass(frozen=True, slots=True)
class PairingState:
    """State of the pairing, from which expired pairs are counted."""

    rules: str = ""
    """By which models were partners; under others the count of what waits begins anew."""
    generation: int = -1
    known_since: dict[str, int] = field(default_factory=dict[str, int])
    waiting: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """By generation."""


class Pairing:
    """Finds the paired outcomes of an outcome, and counts pairs that never came about.

    A dedup entry waits for every partner that was known when its generation was opened and is not yet
    resolved on the id. What still waits when the generation is dropped has expired. Only the sum is kept, by
    generation: a partner that predicts an id once more, its own dedup entry being gone, is counted as met
    twice.

    Parameters
    ----------
    comparisons
        Which models are partners.
    dedup
        The dedup entries that hold classes.
    """

    __slots__ = (
        "_chains",
        "_comparisons",
        "_dedup",
        "_expected",
        "_generation",
        "_known_since",
        "_related",
        "_waiting",
        "_wanted",
    )

    def __init__(self, comparisons: Sequence[ComparisonSpec], dedup: DedupIndex) -> None:
        self._comparisons = comparisons
        self._dedup = dedup
        self._generation = -1
        self._known_since: dict[str, int] = {}  # the first generation that a model was known in
        self._waiting: dict[int, int] = {}  # partners not resolved yet, by generation
        self._related: dict[str, dict[str, bool]] = {}
        self._expected: dict[str, int] = {}  # partners that an entry of the open generation waits for
        self._chains = ChainIndex()
        self._wanted: dict[str, tuple[int, dict[str, None]]] = {}  # partners of a model among so many names

    def begin(self) -> None:
        """Begin a batch, and drop the index of the chains before."""
        self._chains.begin()

    def meet(
        self,
        first: JoinEntry | None,
        record: JoinEntry,
        true_class: str,
        models: Collection[str],
        counters: JoinCounters,
    ) -> tuple[PairedAnswer, ...] | None:
        """Pair a prediction that is being resolved with those of its partners that are; None without any.

        Parameters
        ----------
        first
            First entry of the id's chain. Pairs are in the order of the partners' names.
        record
            Entry of the prediction, not yet a dedup entry.
        true_class
            The label it is resolved with.
        models
            Names of the models that are known now.
        counters
            Where pairs are counted.
        """
        dedup, model = self._dedup, record.model or ""
        generation, floor = dedup.number, dedup.floor
        if generation != self._generation:
            self._open(generation, models)
        related = self._related.setdefault(model, {})
        since, never = self._known_since, generation + 1
        known = since.get(model, never)
        still = self._expected.get(model)
        if still is None:
            still = self._expected[model] = sum(
                self._are_related(related, model, each) for each, known in since.items() if known < never
            )
        found: list[PairedAnswer] = []
        for entry in self._candidates(first, model, related, len(models)):
            partner = entry.model
            # Evaluated: with its label, or with the class assumed for it (only then an expired one has any).
            if (
                (entry.state == RESOLVED or (entry.state == EXPIRED and entry.true_class))
                and entry.generation >= floor
                and partner is not None
                and entry is not record
                and self._are_related(related, model, partner)
            ):
                if known <= entry.generation:
                    self._waiting[entry.generation] = self._waiting.get(entry.generation, 0) - 1
                if since.get(partner, never) < never:
                    still -= 1
                if entry.true_class == true_class:
                    found.append(PairedAnswer(partner, entry.predicted_class))
                else:
                    counters.pairs_labels_differ += 1
        if still:
            self._waiting[generation] = self._waiting.get(generation, 0) + still
        if not found:
            return None
        counters.pairs_made += len(found)
        return tuple(sorted(found))

    def drop(self, generations: Iterable[int], counters: JoinCounters) -> None:
        """Count as expired the pairs that waited in generations of dedup entries dropped now."""
        for generation in generations:
            counters.pairs_expired += max(0, self._waiting.pop(generation, 0))

    def state(self) -> PairingState:
        """State that `restore` continues from; between batches."""
        return PairingState(
            repr(self._comparisons),
            self._generation,
            dict(sorted(self._known_since.items())),
            sorted((generation, count) for generation, count in self._waiting.items() if count),
        )

    def restore(self, state: PairingState) -> None:
        """Continue from a `state`."""
        same = state.rules == repr(self._comparisons)
        self._generation = state.generation if same else -1
        self._known_since = dict(state.known_since) if same else {}
        self._waiting = dict(state.waiting)
        self._related = {}
        self._expected = {}
        self._wanted = {}
        self._chains.clear()

    def _open(self, generation: int, models: Collection[str]) -> None:
        """From here on entries wait for the models known now; in the very first generation for none."""
        since = generation if self._generation >= 0 else generation + 1
        self._generation = generation
        self._known_since = {model: self._known_since.get(model, since) for model in models}
        self._related = {}
        self._expected = {}
        self._wanted = {}
        self._chains.clear()

    def _candidates(
        self, first: JoinEntry | None, model: str, related: dict[str, bool], models: int
    ) -> Iterable[JoinEntry]:
        """Entries of a chain, in its order, among which all partners of a model are."""
        if first is None:
            return ()
        if models <= WALKED:
            return _entries(first)
        chains = self._chains
        chains.update(first)
        seen, wanted = self._wanted.get(model) or (0, {})
        if seen < len(chains.names):
            news = islice(chains.names, seen, None)
            wanted |= dict.fromkeys(name for name in news if self._are_related(related, model, name))
            self._wanted[model] = len(chains.names), wanted
        return chains.find(first, wanted)

    def _are_related(self, related: dict[str, bool], model: str, partner: str) -> bool:
        try:
            return related[partner]
        except KeyError:
            found = related[partner] = (
                fold_of(model) is None  # a pattern may match the name of a fold
                and fold_of(partner) is None
                and champion_of(self._comparisons, model, partner) is not None
            )
            return found


def _entries(first: JoinEntry) -> list[JoinEntry]:
    """Entries of a chain."""
    found, entry = [first], first.next
    while entry is not None:
        found.append(entry)
        entry = entry.next
    return found
