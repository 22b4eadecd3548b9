"""Every test is in some tier, and rotation comes round to all that are slow."""

from __future__ import annotations

from collections import Counter
from random import Random
from types import SimpleNamespace

import pytest

from tests import parts, tiers

NAMES = [f"tests/integration/test_{number}.py::test_it[{number}]" for number in range(200)]


def _chosen(monkeypatch: pytest.MonkeyPatch, tier: str, turn: int, markers: set[str]) -> set[str]:
    monkeypatch.setattr(tiers, "TIER", tier)
    monkeypatch.setattr(tiers, "turn", lambda _: turn)
    return tiers.in_tier(dict.fromkeys(NAMES, markers))


def test_of_the_slow_ones_each_has_its_turn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = [_chosen(monkeypatch, "rotating", turn, {"slow"}) for turn in range(tiers.SHARES)]
    assert set().union(*shares) == set(NAMES)
    assert sum(map(len, shares)) == len(NAMES)
    assert min(map(len, shares)) >= len(NAMES) // tiers.SHARES


def test_shares_take_about_as_long_as_each_other() -> None:
    chance = Random(1)
    seconds = {name: 100 * chance.random() ** 6 for name in NAMES[:150]}
    parts = tiers.shares(NAMES, seconds)
    assert sorted(name for part in parts for name in part) == sorted(NAMES)
    took = [sum(seconds.get(name, tiers.UNMEASURED_S) for name in part) for part in parts]
    assert max(took) - min(took) < 5


def test_heavy_tests_are_left_out_by_fast_alone_and_not_where_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = {}
    for tier, asked in (*((tier, "") for tier in tiers.TIERS), ("fast", "1"), ("fast", "write")):
        monkeypatch.setattr(tiers, "TIER", tier)
        monkeypatch.setenv("STREAMWATCH_HEAVY", asked)
        left[tier, asked] = len(tiers.heavy.__wrapped__())
    assert left.pop(("fast", "")) > 0
    assert set(left.values()) == {0}


@pytest.mark.parametrize("several", [1, 2, 3, 7])
def test_every_file_is_in_one_part_and_parts_are_about_as_large_as_each_other(several: int) -> None:
    chance = Random(several)
    sizes = {f"test_{number}.py": chance.randrange(100, 10_000) for number in range(300)}
    shared = [tiers.part_of(sizes, part, several) for part in range(several)]
    assert Counter(file for part in shared for file in part) == Counter(sizes.keys())
    taken = [sum(sizes[file] for file in part) for part in shared]
    assert max(taken) - min(taken) < 10_000


@pytest.mark.parametrize(
    ("codes", "code"),
    [([0, 0], 0), ([0, 5], 0), ([5, 0], 0), ([5, 5], 5), ([0, 1], 1), ([2, 5], 2), ([-9, 0], -9)],
)
def test_parts_fail_where_one_does_and_have_no_tests_where_none_has(codes: list[int], code: int) -> None:
    assert parts.ended(codes) == code


def test_a_slow_test_takes_other_seeds_whenever_its_turn_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMWATCH_ROTATION", raising=False)
    pairs: set[tuple[int, int]] = set()
    for commit in range(1_000):
        monkeypatch.setattr(
            tiers, "run", lambda *_, commit=commit, **__: SimpleNamespace(stdout=f"{commit}\n")
        )
        pairs.add((tiers.turn.__wrapped__(tiers.SHARES), tiers.turn.__wrapped__()))
    assert len(pairs) == tiers.SHARES * tiers.ROTATION


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
    assert sum(name.startswith("tests/") for name in tiers.seconds()) > 0.9 * len(tiers.seconds())


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
