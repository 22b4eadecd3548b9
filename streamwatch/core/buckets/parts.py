"""Parts that id buckets send to model buckets: outcomes, activity of models, and times that passed."""

from __future__ import annotations

from typing import Final

import msgspec

from streamwatch.core.buckets.places import Place, decode_place
from streamwatch.core.events import Outcome


class Resolved(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Outcome, with the places of its resolution and of its prediction in the sequence."""

    place: Place
    id: str
    outcome: Outcome
    """The outcome, with its prediction's place (see `encode_place`) in the field of the label at prediction.

    The label itself is known in the model's bucket only.
    """

    @property
    def accepted(self) -> tuple[Place, int]:
        """Place of the prediction, and its own time."""
        return decode_place(self.outcome.label_at_prediction or "")


class Activity(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Activity of a model in one id bucket during one batch, without being idle there in between.

    A model is idle if no prediction was accepted for `2 * horizon`. If it was idle in between, there is one
    such record for each period before, between and after.
    """

    model: str
    first: Place
    """Place of the first prediction accepted in the batch; empty without one."""
    was_active: bool
    """Whether it was not idle since the batch before."""
    accepted: int
    joined: int
    left: int
    last_ms: int
    """Latest record time of an accepted prediction so far."""
    last_event_ms: int
    """Latest event time of one, limited to its record time; -1 without one."""


class InvalidOfModel(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Invalid record whose model could be read."""

    place: Place
    model: str


class Windows(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Newest prediction of all those resolved at one time, of any model, for the order of predictions."""

    place: Place
    """(time, DUE) for those that expired, (time, BEHIND) for those that met their labels."""
    own_ms: int
    resolved: Place


class Part(msgspec.Struct, array_like=True, frozen=True):
    """Share of one model bucket in the results of one id bucket in one batch."""

    bucket: int
    """Number of the model bucket."""
    sender: int
    """Number of the id bucket."""
    reached_ms: int
    """Time that the batch has reached; -1 if no record has a time yet."""
    ended: bool
    """Whether the log ends here."""
    ticks: list[int]
    """Distinct times of this id bucket's records, at which something may fall due.

    The first of each second, or all of them if outcomes wait for the order of predictions.
    """
    outcomes: list[Resolved]
    activities: list[Activity]
    invalid: list[InvalidOfModel]
    windows: list[Windows]


ENCODER: Final = msgspec.msgpack.Encoder()
PARTS: Final = msgspec.msgpack.Decoder(Part)
