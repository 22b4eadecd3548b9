"""NSGT-5D: both classes wander along the same straight way in five dimensions."""

from __future__ import annotations

from streamwatch.lab.streams.gaussians import Distribution, Mixture, Phase
from streamwatch.lab.streams.testbed.kind import StreamKind

_WAY = (Phase(10_000, move=(6.3,) * 5),)
_ROUND = (1.0,) * 5

KIND = StreamKind(
    name="NSGT-5D",
    section="4.7",
    asks="forgetting in more dimensions, where neighbours are few",
    drifts="both centres move by 6.3 in each of five dimensions over a lap, as fast as in NSGT; steadily",
    mixture=Mixture(
        (
            Distribution("A", 0.5, (0.0,) * 5, _ROUND, _WAY),
            Distribution("B", 0.5, (3.15, 0.0, 0.0, 0.0, 0.0), _ROUND, _WAY),
        )
    ),
    printed_optimal=5.74,
)
