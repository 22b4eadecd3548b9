"""A register that explains alarms is asked about them, whoever brought it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from streamwatch.core.estimators import registers
from streamwatch.core.estimators.registers.kind import RegisterKind
from streamwatch.core.estimators.registers.segments import SegmentChange
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from tests.contracts.toy_register import LongestRun, LongestRunSpec
from tests.layouts import DEFAULT

CHANGE = SegmentChange("country", "AT", 0.9, 0.1, 0.1, 0.5)


@dataclass(frozen=True, slots=True)
class ExplainingSpec(LongestRunSpec):
    """Specification by which the register below is chosen."""


class Explaining(LongestRun):
    """Longest run of errors, which knows the segment of every alarm."""

    def changes_at(self, batch, positions):
        del batch
        return [None] * len(positions)

    def change_of(self, row):
        del row
        return CHANGE

    def only_quick_labels(self, age_ms):
        del age_ms
        return False


def test_a_register_of_somebody_else_is_asked_about_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    toys = (
        RegisterKind("toy", LongestRunSpec, (), LongestRun),
        RegisterKind("explaining", ExplainingSpec, (), Explaining),
    )
    monkeypatch.setattr(registers, "KINDS", (*registers.KINDS, *toys))
    for chosen, expected in (((LongestRunSpec(),), None), ((LongestRunSpec(), ExplainingSpec()), CHANGE)):
        watched = EstimatorSet(replace(DEFAULT, registers=chosen))
        watched.fold([Outcome("m", "a", "b", 1_760_000_000_000, 1_000)])
        assert watched.facts.segment_change("m") == expected
