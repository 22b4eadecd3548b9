"""Every test is in some tier, and rotation comes round to all that are slow."""

from __future__ import annotations

import pytest

from tests import tiers

NAMES = [f"tests/integration/test_{number}.py::test_it[{number}]" for number in range(200)]


def _chosen(monkeypatch: pytest.MonkeyPatch, tier: str, turn: int, markers: set[str]) -> set[str]:
    monkeypatch.setattr(tiers, "TIER", tier)
    monkeypatch.setattr(tiers, "turn", lambda _: turn)
    return {name for name in NAMES if tiers.is_in_tier(name, markers)}


def test_of_the_slow_ones_each_has_its_turn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = [_chosen(monkeypatch, "rotating", turn, {"slow"}) for turn in range(tiers.SHARES)]
    assert set().union(*shares) == set(NAMES)
    assert sum(map(len, shares)) == len(NAMES)
    assert min(map(len, shares)) > len(NAMES) // (2 * tiers.SHARES)


@pytest.mark.parametrize(
    ("markers", "tier", "share"),
    [
        (set[str](), "fast", 1),
        (set[str](), "rotating", 1),
        ({"slow"}, "fast", 0),
        ({"slow"}, "default", 1),
        ({"slow"}, "all", 1),
        ({"slow", "long"}, "rotating", 0),
        ({"slow", "long"}, "default", 0),
        ({"long"}, "all", 1),
    ],
)
def test_a_tier_has_what_it_says(
    monkeypatch: pytest.MonkeyPatch, markers: set[str], tier: str, share: int
) -> None:
    assert len(_chosen(monkeypatch, tier, 1, markers)) == share * len(NAMES)
