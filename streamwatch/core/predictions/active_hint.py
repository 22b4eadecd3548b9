"""An active hint: what changed among a model's predictions, as a notification tells it."""

from __future__ import annotations

import msgspec


class ActiveHint(msgspec.Struct, frozen=True):
    """A hint, given and not over: predictions differ from earlier ones, and labels are not in yet."""

    ordinal: int
    """1-based, among the model's hints."""
    given_ms: int
    """When it was given, in the time of records."""
    predicted_class: str | None
    """The class whose share changed most surely; None: the mean score of the predicted class did."""
    more: bool
    """Whether there is more of it, or the score is higher."""
    before: float
    """Its share among earlier predictions, or their mean score; NaN where it is undefined."""
    now: float
    """The same of the latest predictions."""
