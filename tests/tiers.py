"""How much of the tests runs: `fast` while writing code, `rotating` before handing it in, `all` now and then.

`make test-fast`, `make test` and `make test-all` set `STREAMWATCH_TESTS`; without it, as where a test is
named by hand, and in the gate it is `default`. A tier decides two things: which tests run (`slow` ones from
`default` on, of which `rotating` takes a twelfth, another at every commit; `long` ones in `all` only; whole
rooms are slow, see `SLOW_ROOMS`), and how much of a test that draws examples, seeds, kills or power cuts.
Nothing is proved in a tier that those behind it leave out.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from hashlib import sha256
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
SHARES: Final = 12
"""Of slow tests, `rotating` runs one in so many, others at every commit."""

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

    Commits are as good as drawn, so that all shares come round; 0 where there is no repository.
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
    return int(sha256(head.stdout.strip().encode()).hexdigest(), 16) % shares if head.stdout else 0


def rotated(several: Sequence[Item]) -> list[Item]:
    """Those whose turn it is: every fourth, or all of them in the tier `all`."""
    return list(several) if TIER == "all" else list(several[turn() :: ROTATION])


def is_in_tier(name: str, markers: Collection[str]) -> bool:
    """Tell whether this tier has a test, by its name, or that of its group, and its markers."""
    if "long" in markers:
        return TIER == "all"
    if "slow" not in markers:
        return True
    if TIER == "rotating":
        return crc32(name.encode()) % SHARES == turn(SHARES)
    return TIER != "fast"


def is_due(index: int) -> bool:
    """Whether it is the turn of the item with this index."""
    return TIER == "all" or index % ROTATION == turn()
