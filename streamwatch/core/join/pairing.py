"""Pairs of outcomes, compiled: two models compared with each other, resolved on the same id with one label.

The partners of an outcome are found in the chain of its id: dedup entries hold a model's class and its label
for `join.dedup_horizon`, so the model that is resolved later finds the others there, and nothing else has to
be stored. The pair belongs to the later outcome. Predictions that expired under `join.on_expiry: assume`
count as resolved.

A dedup entry waits for every partner that was known when its generation was opened and is not yet resolved on
the id. Partners that an entry still waits for when its generation is dropped have expired. Only their sum by
generation is kept. So a partner that predicts an id again, after its own dedup entry was dropped, is counted
as met twice.

Models that predict in folds have no partners: several answers of one model on one id are no pair, and folds
are compared by other means.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import hot, inner
from streamwatch.core.join.counters import EXPIRED, RESOLVED
from streamwatch.core.join.layout import ADMITTED, GENERATIONS_KEPT, PARTNER, Arrays, room_for_pairs
from streamwatch.core.join.names import NumberedNames
from streamwatch.core.join.table import NUMBERS, is_alive, made_by
from streamwatch.core.records.events import Name, fold_of
from streamwatch.core.records.outcomes import Pairs
from streamwatch.core.specs import ComparisonSpec


@dataclass(frozen=True, slots=True)
class PairingState:
    """State of the pairing, from which expired pairs are counted."""

    rules: str = ""
    """`repr` of the comparisons between models; if these have changed, the rest is not restored."""
    generation: int = -1
    known_since: dict[Name, int] = field(default_factory=dict[str, int])
    waiting: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Pairs of a generation's number and the number of partners that its entries wait for, if any."""


_LEAST_ROOM: Final = 16
_WORD: Final = 64


@hot
def are_related(relations, one, other):
    """Return whether two models are compared: one leads a group that the other follows."""
    if one == other:
        return False
    for word in range(relations.shape[2]):
        if relations[one, 0, word] & relations[other, 1, word] != np.uint64(0):
            return True
        if relations[one, 1, word] & relations[other, 0, word] != np.uint64(0):
            return True
    return False


@hot
def is_related(relations, model):
    """Return whether a model is compared with any other at all."""
    for word in range(relations.shape[2]):
        if relations[model, 0, word] | relations[model, 1, word] != np.uint64(0):
            return True
    return False


@inner
def open_generation(t):
    """Make dedup entries of the open generation wait for the models that are admitted now."""
    totals = t.totals[0]
    since = totals.generation + (0 if totals.pair_generation >= 0 else 1)
    totals.pair_generation = totals.generation
    known = 0
    for number in range(t.partners.shape[0]):
        p = t.partners[number]
        p.expected = -1
        if number < t.activity.shape[0] and t.activity[number]["admission"] == ADMITTED:
            if p.known_since < 0:
                p.known_since = since
            t.partners[known].listed = number
            known += 1
        else:
            p.known_since = -1
    totals.known_models = known


@inner
def expected_of(t, model):
    """Count the partners that an entry of a model in the open generation waits for."""
    generation = t.totals[0].generation
    expected = 0
    for k in range(t.totals[0].known_models):
        other = np.int64(t.partners[k].listed)
        if t.partners[other].known_since <= generation and are_related(t.relations, model, other):
            expected += 1
    return expected


@hot
def wait_for(t, generation, count):
    """Add to the number of partners that the entries of a generation wait for."""
    totals = t.totals[0]
    behind = (totals.generation - generation) & NUMBERS
    if behind == 0:
        totals.open_partners += count
    else:
        closed = (totals.closed_start + totals.closed - behind) % t.generations.shape[0]
        t.generations[closed].partners += count


@inner
def meet(t, x, first, true_class):
    """Write the pairs of the outcome that is written next, that of entry x in the chain from `first` on."""
    totals, entries, counters = t.totals[0], t.entries, t.counters[0]
    generation = totals.generation
    if totals.pair_generation != generation:
        open_generation(t)
    model = np.int64(entries[x].model)
    if not is_related(t.relations, model):
        return
    still = t.partners[model].expected
    if still < 0:
        still = expected_of(t, model)
        t.partners[model].expected = still
    known = t.partners[model].known_since
    y = first
    while y >= 0:
        e = entries[y]
        if (
            y != x
            and (e.state == RESOLVED or (e.state == EXPIRED and e.true_or_scores >= 0))
            and is_alive(totals, e)
            and are_related(t.relations, model, np.int64(e.model))
        ):
            settled = totals.generation - ((totals.generation - e.earlier_or_generation) & NUMBERS)
            if 0 <= known <= settled:
                wait_for(t, e.earlier_or_generation, -1)
            if 0 <= t.partners[e.model].known_since <= generation:
                still -= 1
            if e.true_or_scores == true_class:
                t.pairs[totals.pairs, 0] = totals.outcomes
                t.pairs[totals.pairs, 1] = e.model
                t.pairs[totals.pairs, 2] = e.predicted_class
                t.pairs[totals.pairs, 3] = np.int32(made_by(t.activity[e.model]))
                totals.pairs += 1
                counters.pairs_made += 1
            else:
                counters.pairs_labels_differ += 1
        y = np.int64(e.next)
    totals.open_partners += still


@hot
def most_pairs(t, first, everyone):
    """Bound the number of pairs made by resolving one prediction of a chain, or all (`everyone`)."""
    length = 1
    x = first
    while x >= 0:
        length += 1
        x = np.int64(t.entries[x].next)
    return length * length if everyone else length


class Relations:
    """Comparisons between models as bits by model number (`Arrays.relations`).

    Comparisons of one champion form a group, which the champion leads and its challengers follow. Two models
    are compared if one leads a group that the other follows (`specs.champion_of` returns the champion).

    Parameters
    ----------
    comparisons
        Comparisons between models.
    """

    __slots__ = ("_groups", "_known", "_version", "comparisons")

    def __init__(self, comparisons: Sequence[ComparisonSpec]) -> None:
        self.comparisons = comparisons
        self._groups: dict[str, list[str]] = {}
        for each in comparisons:
            self._groups.setdefault(each.champion, []).extend(each.challengers)
        self._known = 0
        self._version = -1

    def refreshed(self, arrays: Arrays, models: NumberedNames) -> Arrays:
        """Return arrays in which every model number has its relations; the same ones if nothing changed."""
        if not self._groups or (self._version == models.version and self._known == len(models.assigned)):
            return arrays
        fresh = models.assigned_since(self._version, self._known)
        if self._version != models.version:
            arrays.partners["expected"] = -1
        relations, partners = arrays.relations, arrays.partners
        if len(relations) < len(models.names):
            room = max(len(models.names), 2 * len(relations), _LEAST_ROOM)
            relations = np.zeros((room, 2, -(-len(self._groups) // _WORD)), np.uint64)
            if len(arrays.relations):
                relations[: len(arrays.relations)] = arrays.relations
            partners = new_partners(room)
            partners[: len(arrays.partners)] = arrays.partners
        for number in fresh:
            self._relate(relations[number], models.names[number])
        self._version, self._known = models.version, len(models.assigned)
        return arrays._replace(relations=relations, partners=partners)

    def _relate(self, relation: NDArray[np.uint64], name: str) -> None:
        relation[:] = 0
        if fold_of(name) is not None:  # a pattern may match the name of a fold
            return
        for group, (champion, patterns) in enumerate(self._groups.items()):
            bit = np.uint64(1 << group % _WORD)
            if name == champion:
                relation[0, group // _WORD] |= bit
            elif any(fnmatchcase(name, pattern) for pattern in patterns):
                relation[1, group // _WORD] |= bit


class PairOrder:
    """Orders the pairs of each outcome by the partner's name, however entries were stored."""

    __slots__ = ("_ranks", "_version")

    def __init__(self) -> None:
        self._ranks = np.full(0, -1, np.int64)
        self._version = -1

    def ordered(self, pairs: Pairs, models: NumberedNames) -> Pairs:
        """Copy pairs, sorted by outcome, with those of each outcome sorted by the partner's name."""
        partners = pairs[:, 1]
        if self._version != models.version or len(self._ranks) < len(models.names):
            ranks = np.full(2 * len(models.names), -1, np.int64)
            if self._version == models.version:
                ranks[: len(self._ranks)] = self._ranks
            self._ranks, self._version = ranks, models.version
        if (self._ranks[partners] < 0).any():
            named = np.union1d(np.flatnonzero(self._ranks >= 0), partners).tolist()
            by_name = sorted(named, key=models.names.__getitem__)
            self._ranks[by_name] = np.arange(len(by_name))
        keys = pairs[:, 0].astype(np.int64) << 32 | self._ranks[partners]
        return pairs[np.argsort(keys, kind="stable")] if (np.diff(keys) < 0).any() else pairs.copy()


def new_partners(room: int) -> NDArray[np.void]:
    """Build `PARTNER` records, (room,), of models that are not known yet."""
    partners = np.zeros(room, PARTNER)
    partners["known_since"] = partners["expected"] = -1
    return partners


def with_room_for_pairs(arrays: Arrays, needed: int) -> Arrays:
    """Return arrays with room for twice `needed` pairs; the arrays must have no pairs now."""
    return arrays._replace(pairs=room_for_pairs(2 * needed))


def pairing_state(arrays: Arrays, models: NumberedNames, relations: Relations) -> PairingState:
    """Build the state of the pairing that a commit writes; empty without comparisons."""
    if not relations.comparisons:
        return PairingState()
    t = arrays.totals[0]
    known = np.flatnonzero(arrays.partners["known_since"] >= 0).tolist()
    since = {models.names[number]: int(arrays.partners["known_since"][number]) for number in known}
    ring = arrays.generations[(int(t["closed_start"]) + np.arange(int(t["closed"]))) % GENERATIONS_KEPT]
    waiting = [*zip(ring["number"].tolist(), ring["partners"].tolist(), strict=True)]
    waiting.append((int(t["generation"]), int(t["open_partners"])))
    return PairingState(
        repr(relations.comparisons),
        int(t["pair_generation"]),
        dict(sorted(since.items())),
        [(generation, count) for generation, count in waiting if count],
    )


def restore_pairing(
    arrays: Arrays, models: NumberedNames, relations: Relations, state: PairingState
) -> Arrays:
    """Continue from a state of the pairing, after all entries were restored."""
    arrays.totals["pair_generation"] = -1
    if not relations.comparisons:
        return arrays
    same = state.rules == repr(relations.comparisons)
    known = {models[name]: since for name, since in state.known_since.items()} if same else {}
    arrays = relations.refreshed(arrays, models)
    arrays.totals["pair_generation"] = state.generation if same else -1
    arrays.totals["known_models"] = len(known)
    arrays.partners["known_since"] = -1
    for listed, (number, since) in enumerate(known.items()):
        arrays.partners["known_since"][number] = since
        arrays.partners["listed"][listed] = number
    waiting = dict(state.waiting)
    arrays.totals["open_partners"] = waiting.get(int(arrays.totals["generation"][0]), 0)
    for generation in arrays.generations[: int(arrays.totals["closed"][0])]:
        generation["partners"] = waiting.get(int(generation["number"]), 0)
    return arrays
