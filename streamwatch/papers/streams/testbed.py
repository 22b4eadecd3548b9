"""Testbed: the nine non-stationary streams of Cervantes et al."""

from __future__ import annotations

from dataclasses import dataclass

from streamwatch.papers.streams.gaussians import Distribution, Mixture, Phase

# Description of a stream: its mixture, its drift, and the printed optimal error.


@dataclass(frozen=True, slots=True)
class StreamKind:
    """Stream of the testbed; `KINDS` lists all.

    Source: Cervantes, Gagné, Isasi, Parizeau, "Evaluating and characterizing incremental learning from
    non-stationary data", Tables 3 and 4.
    """

    name: str
    """Name in the paper."""
    section: str
    """Section of the paper."""
    asks: str
    """Ability that a learner needs to do well on it."""
    drifts: str
    """Description of the drift and its pace."""
    mixture: Mixture
    """Mixture; the paper's stream is one lap of 10,000 instances."""
    printed_optimal: float
    """Error of the optimal classifier in Table 3, percent (mean of ten streams)."""
    changes: tuple[int, ...] = ()
    """Instances of a lap (0-based) with an abrupt change."""
    returns: bool = False
    """Whether a lap ends in its initial state, so that the next one begins without an abrupt change."""

    def known_changes(self, outcomes: int) -> tuple[int, ...]:
        """Return the abrupt changes among the first `outcomes` instances, including those between laps."""
        lap = self.mixture.lap
        starts = range(0, outcomes, lap)
        found = {start + change for start in starts for change in self.changes}
        if not self.returns:
            found.update(start for start in starts if start)
        return tuple(sorted(at for at in found if at < outcomes))


# NSCX: a class that appears and wanders through another one, which grows and turns.


NSCX = StreamKind(
    name="NSCX",
    section="4.8",
    asks="several of these at once: a new class, shares, moves, turns and growth",
    drifts="one half of class A moves by (5, 5), turns by 90° and spreads to twice its variance up to "
    "instance 5,000, then moves by (5, 5) again; class B appears within the first 500 instances, crosses A "
    "in three ways and grows to be as frequent",
    mixture=Mixture(
        (
            Distribution(
                "A",
                0.65,
                (0.0, 0.0),
                (2.5, 1.0),
                (
                    Phase(5_000, move=(5.0, 5.0), turn=90.0, scale=2.0),
                    Phase(5_000, move=(5.0, 5.0), weight=1.0),
                ),
                rotation=30.0,
            ),
            Distribution("A", 0.35, (0.0, -4.0), (0.6, 2.0), (Phase(10_000),)),
            Distribution(
                "B",
                0.0,
                (-2.0, 3.0),
                (1.5, 0.5),
                (
                    Phase(500, weight=0.2),
                    Phase(1_500, move=(3.0, -4.0), turn=30.0, weight=0.5),
                    Phase(2_500, move=(4.0, -1.0), turn=30.0, weight=0.8),
                    Phase(5_500, move=(6.0, 5.0), turn=30.0, weight=1.0),
                ),
            ),
        )
    ),
    printed_optimal=4.18,
)


# NSGR: two classes far apart turn once around the point between them.


_TURN = (Phase(10_000, circle=360.0, turn=360.0),)

NSGR = StreamKind(
    name="NSGR",
    section="4.1",
    asks="forgetting: after half a turn each class is where the other one was",
    drifts="centres and principal axes turn by 360° around the origin over a lap; steadily",
    mixture=Mixture(
        (
            Distribution("A", 0.5, (10.0, 0.0), (2.0, 5.0), _TURN, rotation=45.0),
            Distribution("B", 0.5, (-10.0, 0.0), (2.0, 5.0), _TURN, rotation=45.0),
        )
    ),
    printed_optimal=0.0,
    returns=True,
)


# NSGT: both classes wander along the same straight way.


def _along(way: tuple[Phase, ...]) -> Mixture:
    """Build two classes beside each other that both move along a way."""
    return Mixture(
        (
            Distribution("A", 0.5, (0.0, 0.0), (2.5, 1.0), way, rotation=45.0),
            Distribution("B", 0.5, (5.0, 0.0), (2.5, 1.0), way, rotation=-45.0),
        )
    )


NSGT = StreamKind(
    name="NSGT",
    section="4.1",
    asks="forgetting: later instances contradict what was learned from earlier ones",
    drifts="both centres move by (10, 10) over a lap, keeping their distance; steadily",
    mixture=_along((Phase(10_000, move=(10.0, 10.0)),)),
    printed_optimal=2.95,
)


# NSGT-5D: both classes wander along the same straight way in five dimensions.


_NSGT_5D_WAY = (Phase(10_000, move=(6.3,) * 5),)
_ROUND = (1.0,) * 5

NSGT_5D = StreamKind(
    name="NSGT-5D",
    section="4.7",
    asks="forgetting in more dimensions, where neighbours are few",
    drifts="both centres move by 6.3 in each of five dimensions over a lap, as fast as in NSGT; steadily",
    mixture=Mixture(
        (
            Distribution("A", 0.5, (0.0,) * 5, _ROUND, _NSGT_5D_WAY),
            Distribution("B", 0.5, (3.15, 0.0, 0.0, 0.0, 0.0), _ROUND, _NSGT_5D_WAY),
        )
    ),
    printed_optimal=5.74,
)


# NSGT-F: NSGT at three times its speed.


NSGT_F = StreamKind(
    name="NSGT-F",
    section="4.6",
    asks="fast forgetting",
    drifts="both centres move by (30, 30) over a lap, three times as fast as in NSGT; steadily",
    mixture=_along((Phase(10_000, move=(30.0, 30.0)),)),
    printed_optimal=2.91,
)


# NSGT-I: NSGT's way in half the time, and then once more from its beginning.


_WAYS = (
    Phase(5_000, move=(10.0, 10.0)),
    Phase(0, move=(-10.0, -10.0)),
    Phase(5_000, move=(10.0, 10.0)),
)

NSGT_I = StreamKind(
    name="NSGT-I",
    section="4.3",
    asks="remembering in the second half of a lap what was learned in the first",
    drifts="both centres move by (10, 10) over half a lap, jump back at instance 5,000, and move again",
    mixture=_along(_WAYS),
    printed_optimal=2.93,
    changes=(5_000,),
)


# NSLC: two classes pass each other in opposite directions.


NSLC = StreamKind(
    name="NSLC",
    section="4.2",
    asks="turning the border between classes while they overlap most, in the middle of a lap",
    drifts="A moves by (0, −4) and B by (0, 4) over a lap; steadily",
    mixture=Mixture(
        (
            Distribution("A", 0.5, (-2.0, 2.0), (2.5, 1.0), (Phase(10_000, move=(0.0, -4.0)),), 45.0),
            Distribution("B", 0.5, (2.0, -2.0), (2.5, 1.0), (Phase(10_000, move=(0.0, 4.0)),), -45.0),
        )
    ),
    printed_optimal=4.05,
)


# NSPC: the two halves of a class change their shares.


def _in_parts(left: float, to_left: tuple[Phase, ...], right: float, to_right: tuple[Phase, ...]) -> Mixture:
    """Build class A of a left and a right part, with their weights and phases, beside a constant class B."""
    return Mixture(
        (
            Distribution("A", left, (-2.0, 0.0), (2.5, 1.0), to_left, rotation=45.0),
            Distribution("A", right, (2.0, 0.0), (2.5, 1.0), to_right, rotation=-45.0),
            Distribution("B", 0.5, (0.0, 3.5), (1.0, 1.0), (Phase(10_000),)),
        )
    )


def _to(weight: float) -> tuple[Phase, ...]:
    return (Phase(500), Phase(9_000, weight=weight), Phase(500))


NSPC = StreamKind(
    name="NSPC",
    section="4.4",
    asks="following shares that change within a class; nothing that was learned becomes wrong",
    drifts="the left part of class A grows from .05 to .45 of all instances, and its right part shrinks to "
    ".05, from instance 500 to 9,500; steadily",
    mixture=_in_parts(0.05, _to(0.45), 0.45, _to(0.05)),
    printed_optimal=5.76,
)


# NSPC-A: one half of a class gives way to the other at once.


def _at_once(weight: float) -> tuple[Phase, ...]:
    return (Phase(5_000), Phase(0, weight=weight), Phase(5_000))


NSPC_A = StreamKind(
    name="NSPC-A",
    section="4.5",
    asks="learning a concept that was never seen before, quickly",
    drifts="class A lies right until instance 5,000, and left from then on",
    mixture=_in_parts(0.0, _at_once(0.5), 0.5, _at_once(0.0)),
    printed_optimal=5.37,
    changes=(5_000,),
)


KINDS: tuple[StreamKind, ...] = (
    NSGT,
    NSGT_F,
    NSGR,
    NSLC,
    NSGT_I,
    NSPC,
    NSPC_A,
    NSGT_5D,
    NSCX,
)
"""All streams, in the order of the paper's Table 3."""


def named(name: str) -> StreamKind:
    """Find a stream by its name, in upper or lower case.

    Raises
    ------
    ValueError
        If there is no stream of this name.
    """
    for kind in KINDS:
        if kind.name.lower() == name.lower():
            return kind
    raise ValueError(f"expected one of {', '.join(kind.name for kind in KINDS)}, got {name!r}")
