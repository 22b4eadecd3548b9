"""Texts of early hints: what changed among predictions, and that it is no verdict."""

from __future__ import annotations

from streamwatch.core.alerting.notification import ToldHint
from streamwatch.core.predictions.active_hint import ActiveHint
from streamwatch.core.predictions.early_hints.view import OTHERS
from streamwatch.edge.receivers.times import iso, share

LOOK_AT = "the shares of the predicted classes, and what changed upstream at that time"
"""What to look at first."""
_OVER = {
    "stands_no_longer": (
        "it no longer stands: a hint ends as many predictions later as it looks back, or when hints are no "
        "longer sent"
    ),
    "model_retired": "the model has been idle for a long time and is no longer watched",
}


def hint_title(hint: ToldHint) -> str:
    """One line, for a phone."""
    if hint.reason is not None:
        return f"Early hint on {hint.model} is over"
    return f"Early hint, labels not yet in: {hint.model} {_changed(hint.as_told)}, {figures(hint.as_told)}"


def hint_sentences(hint: ToldHint) -> str:
    """A few sentences: what changed, since when, and what that does not say."""
    given = iso(hint.as_told.given_ms)
    if hint.reason is not None:
        return f"The early hint on {hint.model}, given at {given}, is over: {_OVER[hint.reason]}."
    return (
        f"This is an early hint, not a verdict: {hint.model} {_changed(hint.as_told)} than in earlier "
        f"predictions, {figures(hint.as_told)} (given at {given}). The labels are not in yet; only "
        "they can show whether the model errs more."
    )


def figures(hint: ActiveHint) -> str:
    """From what to what: shares in percent, scores as they are."""
    if hint.predicted_class is not None:
        return f"{share(hint.before)} → {share(hint.now)} of predictions"
    return f"{_score(hint.before)} → {_score(hint.now)}"


def _changed(hint: ActiveHint) -> str:
    if hint.predicted_class is None:
        return f"has {'higher' if hint.more else 'lower'} scores of the class it predicts"
    return f"predicts {class_of(hint)} {'more' if hint.more else 'less'} often"


def class_of(hint: ActiveHint) -> str:
    """Name the class whose share changed; all beyond those told apart are named together."""
    return "classes beyond its first eight" if hint.predicted_class == OTHERS else f"{hint.predicted_class}"


def _score(value: float) -> str:
    return "unknown" if value != value else f"{value:.3f}"  # noqa: PLR0124  # NaN is not itself
