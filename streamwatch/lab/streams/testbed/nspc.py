"""NSPC: the two halves of a class change their shares."""

from __future__ import annotations

from streamwatch.lab.streams.gaussians import Distribution, Mixture, Phase
from streamwatch.lab.streams.testbed.kind import StreamKind


def _to(weight: float) -> tuple[Phase, ...]:
    return (Phase(500), Phase(9_000, weight=weight), Phase(500))


KIND = StreamKind(
    name="NSPC",
    section="4.4",
    asks="following shares that change within a class; nothing that was learned becomes wrong",
    drifts="the left part of class A grows from .05 to .45 of all instances, and its right part shrinks to "
    ".05, from instance 500 to 9,500; steadily",
    mixture=Mixture(
        (
            Distribution("A", 0.05, (-2.0, 0.0), (2.5, 1.0), _to(0.45), rotation=45.0),
            Distribution("A", 0.45, (2.0, 0.0), (2.5, 1.0), _to(0.05), rotation=-45.0),
            Distribution("B", 0.5, (0.0, 3.5), (1.0, 1.0), (Phase(10_000),)),
        )
    ),
    printed_optimal=5.76,
)
