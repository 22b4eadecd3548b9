"""NSGT-F: NSGT at three times its speed."""

from __future__ import annotations

from streamwatch.lab.streams.gaussians import Distribution, Mixture, Phase
from streamwatch.lab.streams.testbed.kind import StreamKind

_WAY = (Phase(10_000, move=(30.0, 30.0)),)

KIND = StreamKind(
    name="NSGT-F",
    section="4.6",
    asks="fast forgetting",
    drifts="both centres move by (30, 30) over a lap, three times as fast as in NSGT; steadily",
    mixture=Mixture(
        (
            Distribution("A", 0.5, (0.0, 0.0), (2.5, 1.0), _WAY, rotation=45.0),
            Distribution("B", 0.5, (5.0, 0.0), (2.5, 1.0), _WAY, rotation=-45.0),
        )
    ),
    printed_optimal=2.91,
)
