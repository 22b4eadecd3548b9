"""NSLC: two classes pass each other in opposite directions."""

from __future__ import annotations

from streamwatch.lab.streams.gaussians import Distribution, Mixture, Phase
from streamwatch.lab.streams.testbed.kind import StreamKind

KIND = StreamKind(
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
