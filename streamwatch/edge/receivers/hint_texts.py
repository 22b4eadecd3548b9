"""Texts of early hints: what changed among predictions, and that it is no verdict."""

from __future__ import annotations

from streamwatch.core.alerting.notification import ToldHint
from streamwatch.core.predictions.standing import StandingHint
from streamwatch.edge.receivers.times import iso, share

LOOK_AT = "the shares of the predicted classes, and what changed upstream at that time"
"""What to look at first."""
_OVER = {
    "stands_no_longer": "it stands no longer, as a hint ends as many predictions later as it looks back",
    "model_retired": "the model has been idle for long and is not watched any more",
}


def hint_title(hint: ToldHint) -> str:
    """One line, for a phone."""
    if hint.reason is not None:
        return f"Early hint on {hint.model} is over"
    return f"Early hint, labels not yet in: {hint.model} {_changed(hint.standing)}, {figures(hint.standing)}"


def hint_sentences(hint: ToldHint) -> str:
    """A few sentences: what changed, since when, and what that does not say."""
    given = iso(hint.standing.given_ms)
    if hint.reason is not None:
        return f"The early hint on {hint.model}, given at {given}, is over: {_OVER[hint.reason]}."
    return (
        f"An early hint, no verdict: {hint.model} {_changed(hint.standing)} than among earlier "
        f"predictions, {figures(hint.standing)} (given at {given}). Their labels are not yet in: "
        "whether the model errs more, only those will tell."
    )


def figures(hint: StandingHint) -> str:
    """From what to what: shares in percent, scores as they are."""
    if hint.predicted_class is not None:
        return f"{share(hint.before)} → {share(hint.now)} of predictions"
    return f"{_score(hint.before)} → {_score(hint.now)}"


def _changed(hint: StandingHint) -> str:
    if hint.predicted_class is None:
        return f"has {'higher' if hint.more else 'lower'} scores of the class it predicts"
    return f"predicts {hint.predicted_class} {'more' if hint.more else 'less'} often"


def _score(value: float) -> str:
    return "unknown" if value != value else f"{value:.3f}"  # noqa: PLR0124  # NaN is not itself
