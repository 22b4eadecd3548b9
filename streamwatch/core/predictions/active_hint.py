"""Active hint: what changed among a model's predictions, as notifications report it."""

from __future__ import annotations

import msgspec


class ActiveHint(msgspec.Struct, frozen=True):
    """Hint that was given and has not ended: predictions differ from earlier ones.

    Their labels are pending.
    """

    ordinal: int
    """Number of the hint among the model's, from 1."""
    given_ms: int
    """Record time at which it was given."""
    predicted_class: str | None
    """Class whose share changed most significantly; None if it is the mean score of the predicted class."""
    more: bool
    """Whether the share, or the score, has increased."""
    before: float
    """Share of the class among earlier predictions, or their mean score; NaN if undefined."""
    now: float
    """Share or mean score among the latest predictions."""
