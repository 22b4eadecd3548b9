"""The answer for a model in words: better or worse than what, and since when."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

UNKNOWN: Final = "–"
"""What is undefined."""
_YEAR_2000: Final = 946_684_800.0
_WORDS: Final = {1.0: "better", -1.0: "worse", 0.0: "open"}
_NEEDED: Final = "more outcomes are needed for a verdict"


def leaf(tree: Any, *path: str) -> Any:
    """Value at a path of names in a document; None where there is none."""
    for name in path:
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(name)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return tree


def count(value: Any) -> str:
    """A whole number."""
    return f"{value:,.0f}" if isinstance(value, int | float) and math.isfinite(value) else UNKNOWN


def moment(seconds: Any) -> str:
    """Date and time in UTC; a recording without timestamps has none worth showing."""
    if not isinstance(seconds, int | float) or seconds < _YEAR_2000:
        return UNKNOWN
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(sep=" ", timespec="seconds")


def verdict_of(metrics: Mapping[str, Any], opponent: str) -> str:
    """The verdict on an opponent and since which outcome it holds."""
    value = leaf(metrics, "verdict", opponent)
    if not isinstance(value, int | float):
        return UNKNOWN
    since = leaf(metrics, "verdict_since_outcome", opponent)
    word = _WORDS.get(float(value), UNKNOWN)
    return word if since is None or word == "open" else f"{word} since outcome {count(since)}"


def headline_of(document: Mapping[str, Any]) -> str:
    """Verdict named first of all: by cohorts where the headline is by them, else on no change."""
    headline = leaf(document["details"], "headline")
    if leaf(headline, "basis") != "cohorts":
        return verdict_of(document["metrics"], "persistent")
    word = headline["verdict"]
    if word == "open":
        return word
    whom = {"majority": "than the majority", "persistent_at_prediction": "than no change"}
    said = f"{word} {whom.get(headline.get('opponent', ''), 'than no change and the majority')}"
    return f"{said} since {moment(headline['since_timestamp_seconds'])} ({headline['status']})"


def answers(models: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each model of a document as of `/api/v1/models`; those that are worse come first.

    Parameters
    ----------
    models
        `metrics` and `details` of each model.
    """
    found = {name: headline_of(model) for name, model in models.items()}
    order = ("worse", "open", UNKNOWN, "better")
    for name in sorted(found, key=lambda name: (order.index(found[name].split()[0]), name)):
        yield f"{name} {_sentence(found[name], models[name]['metrics'])}"


def _sentence(headline: str, metrics: Mapping[str, Any]) -> str:
    word, _, rest = headline.partition(" ")
    right, unchanged = leaf(metrics, "accuracy_ratio"), leaf(metrics, "baseline_accuracy_ratio", "persistent")
    known = f" ({_share(right)} right, no change {_share(unchanged)})" if right and unchanged else ""
    if word not in ("better", "worse"):
        return f"is neither better nor worse than no change so far: {_NEEDED}{known}"
    return f"is {word} {rest if rest.startswith('than') else f'than no change {rest}'}{known}"


def _share(by_forgetting: Mapping[str, float]) -> str:
    """Over everything where a landmark is kept, else under the first forgetting."""
    return f"{100 * by_forgetting.get('landmark', next(iter(by_forgetting.values()))):.1f} %"
