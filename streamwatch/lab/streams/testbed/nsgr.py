"""NSGR: two classes far apart turn once around the point between them."""

from __future__ import annotations

from streamwatch.lab.streams.gaussians import Distribution, Mixture, Phase
from streamwatch.lab.streams.testbed.kind import StreamKind

_TURN = (Phase(10_000, circle=360.0, turn=360.0),)

KIND = StreamKind(
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
