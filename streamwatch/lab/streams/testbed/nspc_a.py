"""NSPC-A: one half of a class gives way to the other at once."""

from __future__ import annotations

from streamwatch.lab.streams.gaussians import Distribution, Mixture, Phase
from streamwatch.lab.streams.testbed.kind import StreamKind


def _at_once(weight: float) -> tuple[Phase, ...]:
    return (Phase(5_000), Phase(0, weight=weight), Phase(5_000))


KIND = StreamKind(
    name="NSPC-A",
    section="4.5",
    asks="learning a concept that was never seen before, quickly",
    drifts="class A lies right until instance 5,000, and left from then on",
    mixture=Mixture(
        (
            Distribution("A", 0.0, (-2.0, 0.0), (2.5, 1.0), _at_once(0.5), rotation=45.0),
            Distribution("A", 0.5, (2.0, 0.0), (2.5, 1.0), _at_once(0.0), rotation=-45.0),
            Distribution("B", 0.5, (0.0, 3.5), (1.0, 1.0), (Phase(10_000),)),
        )
    ),
    printed_optimal=5.37,
    changes=(5_000,),
)
