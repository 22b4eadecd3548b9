"""One thing a look at a daemon has found, and the rule that found it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from streamwatch.admin.doctor.facts import Facts


class Weight(IntEnum):
    """Importance of a finding, the most important first."""

    NOTHING_WORKS = 0
    """Nothing is read or shown."""
    NOTHING_TRUE = 1
    """Numbers of a model or topic are missing or mean nothing."""
    INCOMPLETE = 2
    """Events or notifications are left out."""
    AT_RISK = 3
    """It works now and may not later."""
    WORTH_KNOWING = 4
    """Numbers are right and may mislead."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: the figure, the likely cause, and what to change, as settings where settings cure it."""

    weight: Weight
    subject: str
    said: str
    cause: str
    change: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule by name; `find` yields its findings, none where all is well or nothing is known."""

    name: str
    find: Callable[[Facts], Iterator[Finding]]
