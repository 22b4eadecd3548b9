"""NSGT: both classes wander along the same straight way."""

from __future__ import annotations

from streamwatch.lab.streams.gaussians import Distribution, Mixture, Phase
from streamwatch.lab.streams.testbed.kind import StreamKind

_WAY = (Phase(10_000, move=(10.0, 10.0)),)

KIND = StreamKind(
    name="NSGT",
    section="4.1",
    asks="forgetting: later instances contradict what was learned from earlier ones",
    drifts="both centres move by (10, 10) over a lap, keeping their distance; steadily",
    mixture=Mixture(
        (
            Distribution("A", 0.5, (0.0, 0.0), (2.5, 1.0), _WAY, rotation=45.0),
            Distribution("B", 0.5, (5.0, 0.0), (2.5, 1.0), _WAY, rotation=-45.0),
        )
    ),
    printed_optimal=2.95,
)
