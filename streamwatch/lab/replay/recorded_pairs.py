"""Pairs of outcomes in recordings whose lines hold a prediction and its label, which no join has seen."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from streamwatch.core.events import Outcome
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.dedup import DedupIndex
from streamwatch.core.join.entry import PENDING, RESOLVED, JoinEntry, append, forget
from streamwatch.core.join.pairing import Pairing
from streamwatch.core.specs import JoinSpec
from streamwatch.lab.recordings.recorded_events import RecordedOutcome


class RecordedPairs:
    """Pairs such outcomes by id, by the rules of the join; of a model's outcomes of one id the first counts.

    Parameters
    ----------
    spec
        Which models are compared, and how long an id is remembered.
    """

    def __init__(self, spec: JoinSpec) -> None:
        self._dedup = DedupIndex(spec.dedup_horizon_ms, spec.max_dedup_entries)
        self._pairing = Pairing(spec.comparisons, self._dedup) if spec.comparisons else None
        self.counters = JoinCounters()
        """Where pairs are counted."""
        self._models: dict[str, None] = {}
        self._by_id: dict[str, JoinEntry] = {}
        self._generations: dict[int, list[JoinEntry]] = {}

    def paired(self, outcomes: Sequence[RecordedOutcome], clock_ms: Sequence[int]) -> Sequence[Outcome]:
        """The same outcomes with their partners' answers, at these times of the clock."""
        pairing = self._pairing
        if pairing is None:
            return outcomes
        found = [
            self._one(pairing, outcome, at_ms) for outcome, at_ms in zip(outcomes, clock_ms, strict=True)
        ]
        added, dropped = self._dedup.end_batch()
        for generation, entries in added:
            self._generations.setdefault(generation, []).extend(entries)
        for generation in dropped:
            for entry in self._generations.pop(generation, ()):
                forget(self._by_id, entry)
        pairing.drop(dropped, self.counters)
        return found

    def _one(self, pairing: Pairing, outcome: RecordedOutcome, at_ms: int) -> Outcome:
        self._dedup.pass_time(at_ms)
        self._models[outcome.model] = None
        first = entry = self._by_id.get(outcome.id)
        while entry is not None:
            if entry.model == outcome.model and entry.generation >= self._dedup.floor:
                return outcome
            entry = entry.next
        entry = JoinEntry(outcome.id, outcome.model, PENDING, outcome.predicted_class, "", at_ms)
        pairs = pairing.meet(first, entry, outcome.true_class, self._models, self.counters)
        append(self._by_id, entry)
        entry.true_class = outcome.true_class
        self._dedup.add(entry, RESOLVED, at_ms)
        return outcome if pairs is None else msgspec.structs.replace(outcome, pairs=pairs)
