"""How much of the tests runs: `fast` while writing code, `rotating` before handing it in, `all` now and then.

`make test-fast`, `make test` and `make test-all` set `STREAMWATCH_TESTS`; without it, as where a test is
named by hand, and in the gate it is `default`. A tier decides two things: which tests run (`slow` ones from
`default` on, of which `rotating` takes a sixteenth, another at every commit; `long` ones in `all` only; whole
rooms are slow, see `SLOW_ROOMS`), and how much of a test that draws examples, seeds, kills or power cuts.
Nothing is proved in a tier that those behind it leave out. `fast` leaves out what took `HEAVY_S` of processor
time or more when it was last measured (`tests/heavy.txt`), much of it comparisons with slow twins. All other
tiers run it, as does `fast` where `STREAMWATCH_HEAVY` is set: with mutants, and in the gate's other Pythons.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from heapq import heapreplace
from pathlib import Path
from subprocess import run
from typing import Final, TypeVar
from zlib import crc32

Item = TypeVar("Item")
TIERS: Final = ("fast", "rotating", "default", "all")
TIER: Final = os.environ.get("STREAMWATCH_TESTS") or "default"
EXAMPLES: Final = {"fast": 5, "rotating": 20, "default": 50, "all": 100}
"""Examples that hypothesis draws for a property, of which a test may ask for a multiple."""
SLOW_ROOMS: Final = ("attack", "browser", "calibration", "faults", "golden", "integration")
"""Folders of tests that start brokers, browsers and processes, or draw by the thousand."""
ROTATION: Final = 4
"""Of write points and the like, every tier but `all` does one in so many, others at every commit."""
SHARES: Final = 16
"""Of slow tests, `rotating` runs one in so many by how long they take, others at every commit."""
SECONDS: Final = Path(__file__).parent / "seconds.txt"
"""Tests that take long. A run in which `STREAMWATCH_SECONDS` is set writes it; a name too many or too few
makes shares less even, nothing else."""
LONG_S: Final = 3.0
HEAVY: Final = Path(__file__).parent / "heavy.txt"
"""Tests that take tenths of a second of processor time. Once kernels are compiled,
`STREAMWATCH_TESTS=fast STREAMWATCH_HEAVY=write python -m pytest -n 0` writes it."""
HEAVY_S: Final = 0.2
UNMEASURED_S: Final = 0.5
"""What a slow test takes that is not among them, about."""

if TIER not in TIERS:
    raise ValueError(f"STREAMWATCH_TESTS must be one of {', '.join(TIERS)}, got {TIER!r}")


def by_tier(*, fast: Item, default: Item, everything: Item, rotating: Item | None = None) -> Item:
    """What to take at this tier; `rotating` takes what `default` does where nothing is given."""
    taken = {"fast": fast, "all": everything, "rotating": default if rotating is None else rotating}
    return taken.get(TIER, default)


def few(several: Iterable[Item], number: int) -> list[Item]:
    """The first of them in `fast`, in `rotating` one more, another at every commit; all from `default` on.

    For tests that take a second or so each.
    """
    each = list(several)
    others = each[number:]
    if not others or TIER not in {"fast", "rotating"}:
        return each
    return each[:number] + ([others[turn(len(others))]] if TIER == "rotating" else [])


def examples(multiple: float) -> int:
    """A multiple of the tier's number of examples, for `@settings(max_examples=examples(1.5))`."""
    return max(1, round(multiple * EXAMPLES[TIER]))


def number(name: str, *, default: int, everything: int) -> int:
    """So many kills, power cuts …; the environment variable `name` wins."""
    return int(os.environ.get(name) or by_tier(fast=default, default=default, everything=everything))


@cache
def turn(shares: int = ROTATION) -> int:
    """Which share is due, 0 … shares - 1: `STREAMWATCH_ROTATION`, else of the commit that is checked out.

    Commits are as good as drawn, so that all shares come round, of 4 whichever is due of 16. Without a
    repository it is 0.
    """
    given = os.environ.get("STREAMWATCH_ROTATION")
    if given is not None:
        return int(given) % shares
    head = run(
        ["git", "rev-parse", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    drawn = sha256(f"{shares} {head.stdout.strip()}".encode())
    return int(drawn.hexdigest(), 16) % shares if head.stdout else 0


def rotated(several: Sequence[Item]) -> list[Item]:
    """Those whose turn it is: every fourth, or all of them in the tier `all`."""
    return list(several) if TIER == "all" else list(several[turn() :: ROTATION])


def in_tier(tests: Mapping[str, Collection[str]]) -> set[str]:
    """Those that this tier has, of tests, or groups of them, by name with their markers."""
    chosen = {name for name, markers in tests.items() if TIER == "all" or not {"slow", "long"} & set(markers)}
    slow = [name for name, markers in tests.items() if "slow" in markers and "long" not in markers]
    if TIER == "rotating":
        return chosen.union(shares(slow, seconds())[turn(SHARES)])
    return chosen if TIER == "fast" else chosen.union(slow)


def shares(names: Iterable[str], weights: Mapping[str, float]) -> list[list[str]]:
    """Share all of them out so that every share takes about as long: longest first, each where least is."""
    parts: list[list[str]] = [[] for _ in range(SHARES)]
    lightest = [(0.0, number) for number in range(SHARES)]
    ordered = sorted((-weights.get(name, UNMEASURED_S), crc32(name.encode()), name) for name in names)
    for weight, _, name in ordered:
        taken, number = lightest[0]
        parts[number].append(name)
        heapreplace(lightest, (taken - weight, number))
    return parts


@cache
def seconds() -> dict[str, float]:
    """How long a test, or group, took in a run of the tier `default`, where that was `LONG_S` or more."""
    return _measured(SECONDS)


@cache
def heavy() -> dict[str, float]:
    """Processor seconds of tests that `fast` leaves out: none in other tiers, or with `STREAMWATCH_HEAVY`."""
    return {} if TIER != "fast" or os.environ.get("STREAMWATCH_HEAVY") else _measured(HEAVY)


def _measured(file: Path) -> dict[str, float]:
    if not file.exists():
        return {}
    lines = (line.split(maxsplit=1) for line in file.read_text(encoding="utf-8").splitlines())
    return {name: float(took) for took, name in lines}


def part_of(sizes: Mapping[Item, int], part: int, parts: int) -> set[Item]:
    """Share files out among processes so that each has about as much to read, and return those of one."""
    taken: list[set[Item]] = [set() for _ in range(parts)]
    lightest = [(0, number) for number in range(parts)]
    for file in sorted(sizes, key=lambda file: (-sizes[file], str(file))):
        size, number = lightest[0]
        taken[number].add(file)
        heapreplace(lightest, (size + sizes[file], number))
    return taken[part]


def seeds(first: int, number: int, shares: int = ROTATION) -> range:
    """So many seeds from the first on; `rotating` takes one in `shares` of them, others at every commit.

    For tests each of whose seeds takes tenths of a second.
    """
    own = turn(shares) if TIER == "rotating" else 0
    return range(first + own, first + number, shares if TIER == "rotating" else 1)


def is_due(index: int) -> bool:
    """Whether it is the turn of the item with this index."""
    return TIER == "all" or index % ROTATION == turn()
