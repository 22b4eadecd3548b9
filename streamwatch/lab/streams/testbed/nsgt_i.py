"""NSGT-I: NSGT's way in half the time, and then once more from its beginning."""

from __future__ import annotations

from streamwatch.lab.streams.gaussians import Distribution, Mixture, Phase
from streamwatch.lab.streams.testbed.kind import StreamKind

_WAYS = (
    Phase(5_000, move=(10.0, 10.0)),
    Phase(0, move=(-10.0, -10.0)),
    Phase(5_000, move=(10.0, 10.0)),
)

KIND = StreamKind(
    name="NSGT-I",
    section="4.3",
    asks="remembering in the second half of a lap what was learned in the first",
    drifts="both centres move by (10, 10) over half a lap, jump back at instance 5,000, and move again",
    mixture=Mixture(
        (
            Distribution("A", 0.5, (0.0, 0.0), (2.5, 1.0), _WAYS, rotation=45.0),
            Distribution("B", 0.5, (5.0, 0.0), (2.5, 1.0), _WAYS, rotation=-45.0),
        )
    ),
    printed_optimal=2.93,
    changes=(5_000,),
)
