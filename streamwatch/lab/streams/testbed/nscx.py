"""NSCX: a class that appears and wanders through another one, which grows and turns."""

from __future__ import annotations

from streamwatch.lab.streams.gaussians import Distribution, Mixture, Phase
from streamwatch.lab.streams.testbed.kind import StreamKind

KIND = StreamKind(
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
