"""How much of the tests runs: `fast` while writing code, `rotating` before handing it in, `all` now and then.

`make test-fast`, `make test` and `make test-all` set `STREAMWATCH_TESTS`; without it, as where a test is
named by hand, and in the gate it is `default`. A tier decides two things: which tests run (`slow` ones from
`default` on, of which `rotating` takes a sixteenth, another at every commit; `long` ones in `all` only; whole
rooms are slow, see `SLOW_ROOMS`), and how much of a test that draws examples, seeds, kills or power cuts.
Nothing is proved in a tier that those behind it leave out. What took `HEAVY_S` of processor time or more when
it was last measured there (`tests/heavy.txt`), much of it comparisons with slow twins, `rotating` takes a
quarter of; `fast`, where hundredths of a second are much, leaves out what took so long there
(`tests/heavy_fast.txt`), except the least of a file that would have none left. All other tiers run it, as do
both where `STREAMWATCH_HEAVY` is set: with mutants, and in the gate's other Pythons.
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
"""Of write points and the like, every tier but `all` does one in so many, others at every commit; `rotating`
one in so many of heavy tests."""
SHARES: Final = 16
"""Of slow tests, `rotating` runs one in so many by how long they take, others at every commit."""
REPRODUCED: Final = ("fast", "rotating")
"""Tiers in which hypothesis draws the same examples in every run; in others by a seed that is said."""
SECONDS: Final = Path(__file__).parent / "seconds.txt"
"""Slow tests that take long. A run of `default` in which `STREAMWATCH_SECONDS` is set writes it; a name too
many or too few makes shares less even, nothing else."""
LONG_S: Final = 3.0
HEAVY: Final = {
    "fast": Path(__file__).parent / "heavy_fast.txt",
    "rotating": Path(__file__).parent / "heavy.txt",
}
"""Tests that take much of the processor time of a tier. Once kernels are compiled,
`STREAMWATCH_TESTS=fast STREAMWATCH_HEAVY=write python -m pytest` writes it, or with `rotating`."""
HEAVY_S: Final = {"fast": 0.02, "rotating": 0.2}
MUCH: Final = 10

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
def turn(shares: int = ROTATION, of: str = "") -> int:
    """Which share is due, 0 … shares - 1: `STREAMWATCH_ROTATION`, else of the commit that is checked out.

    Commits are as good as drawn, so that all shares come round, of 4 whichever is due of 16, and `of` heavy
    tests whichever of their seeds are. Without a repository it is 0.
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
    drawn = sha256(f"{of}{shares} {head.stdout.strip()}".encode())
    return int(drawn.hexdigest(), 16) % shares if head.stdout else 0


def rotated(several: Sequence[Item]) -> list[Item]:
    """Those whose turn it is: every fourth, or all of them in the tier `all`."""
    return list(several) if TIER == "all" else list(several[turn() :: ROTATION])


def runs(name: str, markers: Collection[str]) -> bool:
    """Whether this tier has a test, or the tests of a group, of this name and with these markers."""
    if TIER == "all":
        return True
    if "long" in markers:
        return False
    if "slow" in markers:
        return TIER == "default" or (TIER == "rotating" and share_of(name, SECONDS, SHARES) == turn(SHARES))
    if name not in heavy():
        return True
    return TIER == "rotating" and share_of(name, HEAVY[TIER], ROTATION) == turn(ROTATION, "heavy")


def share_of(name: str, measured: Path, number: int) -> int:
    """Which share of so many a test is in: of those measured all take about as long, others are drawn."""
    share = _shares(measured, number).get(name)
    return crc32(name.encode()) % number if share is None else share


def shares(seconds: Mapping[str, float], number: int) -> dict[str, int]:
    """Share all of them out so that every share takes about as long: longest first, each where least is."""
    shared: dict[str, int] = {}
    lightest = [(0.0, share) for share in range(number)]
    for name, took in sorted(seconds.items(), key=lambda item: (-item[1], item[0])):
        taken, share = lightest[0]
        shared[name] = share
        heapreplace(lightest, (taken + took, share))
    return shared


@cache
def _shares(measured: Path, number: int) -> dict[str, int]:
    return shares(_measured(measured), number)


def expected() -> dict[str, float]:
    """Seconds that tests of this tier take whose turn it is, as far as they were measured, longest or not."""
    slow = {name: took for name, took in seconds().items() if TIER != "fast" and runs(name, {"slow"})}
    return slow | {name: took for name, took in _measured(HEAVY["rotating"]).items() if runs(name, ())}


def seconds() -> dict[str, float]:
    """How long a slow test, or group, took in a run of the tier `default`, where that was over `LONG_S`."""
    return _measured(SECONDS)


def heavy() -> dict[str, float]:
    """Processor seconds of tests that `fast` leaves out and `rotating` takes a share of: none in other tiers,
    or with `STREAMWATCH_HEAVY`.
    """
    return {} if TIER not in HEAVY or os.environ.get("STREAMWATCH_HEAVY") else _measured(HEAVY[TIER])


def too_heavy(took: Mapping[str, float], tier: str) -> dict[str, float]:
    """Of tests with their processor seconds, those that are heavy in a tier.

    Of a file of which all are so the least is not, unless it takes `MUCH` times as long.
    """
    least: dict[str, str] = {}
    for name in sorted(took, key=lambda name: took[name]):
        least.setdefault(name.partition("::")[0], name)
    kept = {name for name in least.values() if took[name] < MUCH * HEAVY_S[tier]}
    return {name: seconds for name, seconds in took.items() if seconds >= HEAVY_S[tier] and name not in kept}


@cache
def _measured(file: Path) -> dict[str, float]:
    if not file.exists():
        return {}
    lines = (line.split(maxsplit=1) for line in file.read_text(encoding="utf-8").splitlines())
    return {name: float(took) for took, name in lines}


def seeds(first: int, number: int, shares: int = ROTATION) -> range:
    """So many seeds from the first on; `rotating` takes one in `shares` of them, others at every commit.

    For tests each of whose seeds takes tenths of a second.
    """
    own = turn(shares) if TIER == "rotating" else 0
    return range(first + own, first + number, shares if TIER == "rotating" else 1)


def is_due(index: int) -> bool:
    """Whether it is the turn of the item with this index."""
    return TIER == "all" or index % ROTATION == turn()
