"""Bets of a model that is judged by costs, run by Python on records made up here."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import floor, log
from random import Random

import numpy as np
import pytest

from streamwatch.core.estimators.registers.cohorts import settled
from streamwatch.core.estimators.registers.cohorts.state import (
    BY_COSTS,
    CLASS,
    COHORT,
    FAST_RULE,
    SETTLED_RULE,
    SLOTS,
    WHOLE_HORIZON,
)
from streamwatch.core.estimators.verdicts.state import STAKES
from tests.mutants.interpreted import call

UNIT = 1 << 24


def test_a_lead_is_that_of_the_table_of_the_model() -> None:
    tables = np.random.default_rng(1).random((3, 4, 4))
    costs = np.zeros(1, BY_COSTS)[0]
    for table, label, own, other in product(range(3), range(4), range(4), range(4)):
        costs["table"] = table + 1
        lead = tables[table][label][own] - tables[table][label][other]
        assert call(settled.lead_by_costs, costs, tables, label, own, other) == lead


def test_leads_by_costs_are_counted_in_units_and_others_one_by_one() -> None:
    costs = np.zeros(1, BY_COSTS)[0]
    assert call(settled.unit_of, costs) == 1
    costs["table"] = 2
    assert call(settled.unit_of, costs) == UNIT


def test_a_lead_is_rounded_to_the_nearest_unit() -> None:
    chance = Random(1)
    leads = [chance.uniform(-1.0, 1.0) for _ in range(100)] + [-1.0, 0.0, 1.0, 0.25, 1 / UNIT, -3 / UNIT]
    for lead in leads:
        assert call(settled.in_units, lead) == floor(Fraction(lead) * UNIT + Fraction(1, 2))


def logarithms(
    leads: list[float], lower: list[float], upper: list[float], scale: float, sign: int
) -> list[float]:
    """Logarithm of the product of a side's bets by λ: a lead against the side weighs by the lower limit."""
    bets = [
        sign * lead * scale / (most if sign * lead > 0 else least)
        for lead, least, most in zip(leads, lower, upper, strict=True)
    ]
    return [sum(log(1 + stake * bet) for bet in bets) for stake in STAKES.tolist()]


@pytest.mark.parametrize("rule", [SETTLED_RULE, FAST_RULE, WHOLE_HORIZON])
def test_the_bets_of_a_cohort_are_by_the_shares_of_each_kind_if_its_age_is_from_settled_outcomes(
    rule: int,
) -> None:
    """Shares of .98 and .08 may be wrong by .05 and .04; limits are .05 at least and 1 at most."""
    chance, slot, opponent = Random(rule), 5, 1
    costs, cohort, kind = (np.zeros(1, each)[0] for each in (BY_COSTS, COHORT, CLASS))
    costs["bets"]["total"] = costs["bets"]["squares"] = costs["bets"]["logarithms"] = 7.0
    call(settled.empty_bets, costs, slot)
    emptied = [2 * slot, 2 * slot + 1]
    for name in ("total", "squares", "logarithms"):
        is_empty = ~costs["bets"][name].reshape(2 * SLOTS, -1).any(axis=1)
        assert np.flatnonzero(is_empty).tolist() == emptied
    kind["share"][slot], kind["band"][slot] = (0.98, 0.08), (0.05, 0.04)
    cohort["rule"], cohort["scale"] = rule, 0.05
    leads: list[float] = []
    sides = [chance.randrange(2) for _ in range(40)]
    for side in sides:
        leads.append(chance.choice([-1.0, 1.0]) * chance.uniform(0.01, 1.0))
        call(settled.count_bet, costs, cohort, kind, opponent, slot, side, leads[-1])
    limits = {0: (0.93, 0.98, 1.0), 1: (0.05, 0.08, 0.12)} if rule == SETTLED_RULE else {}
    lower, share, upper = map(list, zip(*(limits.get(side, (1.0,) * 3) for side in sides), strict=True))
    bets = costs["bets"][2 * slot + opponent]
    weighted = [lead / g for lead, g in zip(leads, share, strict=True)]
    assert bets["total"] == pytest.approx(sum(weighted))
    assert bets["squares"] == pytest.approx(sum(each**2 for each in weighted))
    for index, sign in enumerate((1, -1)):
        assert bets["logarithms"][index] == pytest.approx(logarithms(leads, lower, upper, 0.05, sign))
    assert not costs["bets"][2 * slot]["total"], "the other opponent has none"
