"""Parts that id buckets send to model buckets: outcomes, what each model did, and when time passed."""

from __future__ import annotations

from typing import Final

import msgspec

from streamwatch.core.buckets.places import Place, unspelt
from streamwatch.core.events import Outcome


class Resolved(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An outcome, and where it and its prediction stand in the sequence."""

    place: Place
    id: str
    outcome: Outcome
    """With the place of its prediction, spelt, where the label at the prediction belongs: only the model's
    bucket knows that."""

    @property
    def accepted(self) -> tuple[Place, int]:
        """Place of the prediction, and its own time."""
        return unspelt(self.outcome.label_at_prediction or "")


class Activity(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Doings of a model in one id bucket in one batch, while it was never idle there.

    A model is idle where `2 * horizon` went by without a prediction accepted. One that was idle in between
    has one of these for each time before, between and after.
    """

    model: str
    first: Place
    """Of the first prediction accepted in the batch; empty without one."""
    goes_on: bool
    """It was not idle since the batch before."""
    accepted: int
    joined: int
    left: int
    last_ms: int
    """Latest record time of a prediction accepted, up to now."""
    last_event_ms: int
    """Latest event time of one, none believed beyond its record time; -1 for none."""


class InvalidOf(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An invalid record whose model could be read."""

    place: Place
    model: str


class Windows(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The newest of the predictions resolved at one time, of whatever model, for the order of predictions."""

    place: Place
    """(time, DUE) of those that expired, (time, BEHIND) of those that met their labels."""
    own_ms: int
    resolved: Place


class Part(msgspec.Struct, array_like=True, frozen=True):
    """Share of one model bucket in what one id bucket did in one batch."""

    bucket: int
    """Number of the model bucket."""
    sender: int
    """Number of the id bucket."""
    reached_ms: int
    """Time to which the batch has come; -1 if no record has a time yet."""
    ended: bool
    """The log ends here."""
    ticks: list[int]
    """Times of records of this id bucket at which something may be due that no record of it says: the first
    of each second, or with the order of predictions all of them; each once."""
    outcomes: list[Resolved]
    activities: list[Activity]
    invalid: list[InvalidOf]
    windows: list[Windows]


ENCODER: Final = msgspec.msgpack.Encoder()
PARTS: Final = msgspec.msgpack.Decoder(Part)
