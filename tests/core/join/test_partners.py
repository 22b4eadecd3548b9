"""Who is waited for, and in which order partners are named, on arrays made up here."""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.layout import ACTIVITY, ADMITTED, PARTNER, REFUSED, TOTALS, UNDECIDED
from streamwatch.core.join.names import NumberedNames
from streamwatch.core.join.pairing import PairOrder, open_generation
from streamwatch.core.records.outcomes import PAIR_COLUMNS
from tests.mutants.interpreted import call


class Table(NamedTuple):
    """What the opening of a generation takes of the arrays of the join."""

    totals: NDArray[np.void]
    partners: NDArray[np.void]
    activity: NDArray[np.void]


def test_a_generation_waits_for_the_models_admitted_when_it_is_opened() -> None:
    """A model that is gone and returns is waited for from then on only; numbers may have no model yet."""
    chance, since = Random(1), dict.fromkeys(range(9), -1)
    table = Table(np.zeros(1, TOTALS), np.zeros(9, PARTNER), np.zeros(7, ACTIVITY))
    table.partners["known_since"], table.totals["pair_generation"] = -1, -1
    for generation in range(3, 60, 2):
        admission = [chance.choice([ADMITTED, ADMITTED, UNDECIDED, REFUSED]) for _ in range(7)]
        table.activity["admission"], table.totals["generation"] = admission, generation
        table.partners["expected"] = 5
        call(open_generation, table)
        # The first that is opened waits for nobody: its entries did not when they came.
        first = generation + 1 if generation == 3 else generation
        admitted = [number for number in range(7) if admission[number] == ADMITTED]
        since = {n: (since[n] if since[n] >= 0 else first) if n in admitted else -1 for n in since}
        assert table.partners["known_since"].tolist() == list(since.values())
        assert table.partners["expected"].tolist() == [-1] * 9
        assert table.totals["known_models"][0] == len(admitted)
        assert table.partners["listed"].tolist()[: len(admitted)] == admitted
        assert table.totals["pair_generation"][0] == generation


def test_pairs_of_an_outcome_are_in_the_order_of_their_partners_names_as_these_become_known() -> None:
    chance, order, names = Random(2), PairOrder(), NumberedNames()
    shuffled = chance.sample([f"model {k:02}" for k in range(40)], 40)
    coming, sorted_before = iter(shuffled), 0
    for batch in range(20):
        for name in islice(coming, 2):
            assert names[name] >= 0
        partners = [
            chance.sample(range(len(names)), chance.randrange(min(len(names), 4) + 1)) for _ in range(5)
        ]
        pairs = [
            (outcome, partner, batch, k)
            for outcome, each in enumerate(partners)
            for k, partner in enumerate(each)
        ]
        given = np.array(pairs, np.int32).reshape(-1, PAIR_COLUMNS)
        found = order.ordered(given, names)
        expected = sorted(pairs, key=lambda pair: (pair[0], names.names[pair[1]]))
        assert [tuple(pair) for pair in found.tolist()] == expected
        assert given.tolist() == [list(pair) for pair in pairs]
        assert found is not given
        sorted_before += pairs == expected
    assert 0 < sorted_before < 20
