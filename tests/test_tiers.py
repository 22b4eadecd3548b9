"""Every test is in some tier, and rotation comes round to all that are slow."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import pytest

from tests import tiers

NAMES = [f"tests/integration/test_{number}.py::test_it[{number}]" for number in range(200)]


def _chosen(monkeypatch: pytest.MonkeyPatch, tier: str, turn: int, markers: set[str]) -> set[str]:
    monkeypatch.setattr(tiers, "TIER", tier)
    monkeypatch.setattr(tiers, "turn", lambda *_: turn)
    return {name for name in NAMES if tiers.runs(name, markers)}


def _measure(monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float]) -> None:
    monkeypatch.setattr(tiers, "_measured", lambda _: seconds)
    monkeypatch.setattr(tiers, "_shares", lambda _, number: tiers.shares(seconds, number))
    monkeypatch.delenv("STREAMWATCH_HEAVY", raising=False)


@pytest.mark.parametrize(("markers", "number"), [({"slow"}, tiers.SHARES), (set[str](), tiers.ROTATION)])
def test_of_slow_and_of_heavy_ones_each_has_its_turn_once(
    monkeypatch: pytest.MonkeyPatch, markers: set[str], number: int
) -> None:
    _measure(monkeypatch, dict.fromkeys(NAMES if not markers else NAMES[:150], 4.0))
    shares = [_chosen(monkeypatch, "rotating", turn, markers) for turn in range(number)]
    assert set().union(*shares) == set(NAMES)
    assert sum(map(len, shares)) == len(NAMES)
    assert min(map(len, shares)) >= 150 // number


def test_shares_take_about_as_long_as_each_other() -> None:
    chance = Random(1)
    seconds = {name: 3 + 100 * chance.random() ** 6 for name in NAMES}
    shared = tiers.shares(seconds, 16)
    assert shared.keys() == seconds.keys()
    took = [sum(seconds[name] for name in NAMES if shared[name] == share) for share in range(16)]
    assert max(took) - min(took) < 5


def test_heavy_tests_are_known_to_the_quick_tiers_alone_and_not_where_all_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = {}
    for tier, asked in (*((tier, "") for tier in tiers.TIERS), ("fast", "1"), ("fast", "write")):
        monkeypatch.setattr(tiers, "TIER", tier)
        monkeypatch.setenv("STREAMWATCH_HEAVY", asked)
        left[tier, asked] = len(tiers.heavy())
    assert left.pop(("fast", "")) > 0
    assert left.pop(("rotating", "")) > 0
    assert set(left.values()) == {0}


def test_of_a_file_of_heavy_tests_the_least_is_none() -> None:
    took = {"a.py::1": 0.3, "a.py::2": 0.06, "b.py::1": 0.01, "b.py::2": 0.07, "c.py::1": 0.6, "c.py::2": 0.6}
    assert set(tiers.too_heavy(took, "fast")) == {"a.py::1", "b.py::2", "c.py::1", "c.py::2"}


def test_a_slow_or_heavy_test_takes_other_seeds_whenever_its_turn_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("STREAMWATCH_ROTATION", raising=False)
    pairs: set[tuple[int, int]] = set()
    heavy: set[tuple[int, int]] = set()
    for commit in range(1_000):
        monkeypatch.setattr(
            tiers, "run", lambda *_, commit=commit, **__: SimpleNamespace(stdout=f"{commit}\n")
        )
        pairs.add((tiers.turn.__wrapped__(tiers.SHARES), tiers.turn.__wrapped__()))
        heavy.add((tiers.turn.__wrapped__(tiers.ROTATION, "heavy"), tiers.turn.__wrapped__()))
    assert len(pairs) == tiers.SHARES * tiers.ROTATION
    assert len(heavy) == tiers.ROTATION**2


@pytest.mark.parametrize("shares", [4, 8])
def test_each_seed_of_the_gate_has_its_turn_once(monkeypatch: pytest.MonkeyPatch, shares: int) -> None:
    monkeypatch.setattr(tiers, "TIER", "default")
    every = list(tiers.seeds(50, 30, shares))
    assert every == list(range(50, 80))
    monkeypatch.setattr(tiers, "TIER", "rotating")
    found: list[int] = []
    for turn in range(shares):
        monkeypatch.setattr(tiers, "turn", lambda _, turn=turn: turn)
        found += tiers.seeds(50, 30, shares)
    assert sorted(found) == every


def test_what_was_measured_are_names_and_seconds() -> None:
    assert min(tiers.seconds().values()) >= tiers.LONG_S
    assert all(name.startswith("tests/") for name in tiers.seconds())


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
