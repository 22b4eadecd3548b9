"""Every kind of register keeps the contract, and one that is added is held to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamwatch.core.estimators import catalogue, registers
from streamwatch.core.estimators.registers import KINDS, RegisterKind
from streamwatch.core.estimators.set import EstimatorSet
from tests.contracts.register_rules import faults, stream
from tests.contracts.toy_register import FORGETFUL, LONGEST_RUN, METRIC, LongestRunSpec
from tests.layouts import TINY


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_keeps_the_contract(kind: RegisterKind) -> None:
    assert faults(kind) == []


def _add(kind: RegisterKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registers, "KINDS", (*KINDS, kind))
    monkeypatch.setattr(catalogue, "OF_REGISTERS", (*catalogue.OF_REGISTERS, METRIC))


def test_a_kind_that_is_added_is_held_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _add(LONGEST_RUN, monkeypatch)
    assert faults(LONGEST_RUN) == []


def test_what_is_wrong_with_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _add(FORGETFUL, monkeypatch)
    assert faults(FORGETFUL) == [
        "its state depends on how the stream is cut",
        "its state differs after it was written and read",
        "its series differ after its state was written and read",
        "it remembers models that have retired",
    ]


def test_its_series_and_details_are_those_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    _add(LONGEST_RUN, monkeypatch)
    estimators = EstimatorSet(replace(TINY, max_models=4, registers=(LongestRunSpec(at_least=1),)))
    outcomes = stream()
    estimators.fold(outcomes)
    longest, now = 0, 0
    for outcome in outcomes:
        if outcome.model == "m":
            now = 0 if outcome.true_class == outcome.predicted_class else now + 1
            longest = max(longest, now)
    (family,) = [family for family in estimators.families() if family.name == METRIC.name]
    assert dict(family.samples)[("m",)] == longest
    assert estimators.details()["m"]["toy_run"] == now
    assert "longest run of errors" in estimators.estimators().values()


def test_a_kind_asked_for_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _add(LONGEST_RUN, monkeypatch)
    with pytest.raises(ValueError, match="of different kinds"):
        EstimatorSet(replace(TINY, registers=(LongestRunSpec(), LongestRunSpec(2))))


def test_a_register_of_other_parameters_begins_empty_and_keeps_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _add(LONGEST_RUN, monkeypatch)
    before, after = (
        EstimatorSet(replace(TINY, max_models=4, registers=(LongestRunSpec(at_least),)))
        for at_least in (1, 2)
    )
    before.fold(stream())
    after.restore(before.snapshot("m"))
    assert after.details()["m"]["toy_run"] == 0
    counted = {family.name: dict(family.samples) for family in after.families()}
    assert counted["outcomes_total"][("m",)] > 200
