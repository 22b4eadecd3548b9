"""The answer for a model in words: better or worse than what, and since when."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

UNKNOWN: Final = "–"
"""What is undefined."""
_OVERALL: Final = "landmark"
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
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def interval_of(document: Mapping[str, Any]) -> str:
    """Interval of *since* of a verdict by cohorts as the API has it, in words; empty where it has none."""
    names = ("earliest_timestamp_seconds", "latest_timestamp_seconds")
    earliest, latest = (moment(document.get(name)) for name in names)
    if latest == UNKNOWN:
        return ""
    return f"{latest} at the latest" if earliest == UNKNOWN else f"between {earliest} and {latest}"


def verdict_of(metrics: Mapping[str, Any], opponent: str) -> str:
    """The verdict on an opponent and since which outcome it holds."""
    value = leaf(metrics, "verdict", opponent)
    if not isinstance(value, int | float):
        return UNKNOWN
    since = leaf(metrics, "verdict_since_outcome", opponent)
    word = _WORDS.get(float(value), UNKNOWN)
    if since is None or word == "open":
        return word
    when = moment(leaf(metrics, "verdict_since_timestamp_seconds", opponent))
    return f"{word} since outcome {count(since)}" + ("" if when == UNKNOWN else f", {when}")


def headline_of(document: Mapping[str, Any]) -> str:
    """Verdict named first of all: by cohorts where the headline is by them, else on no change."""
    headline = leaf(document["details"], "headline")
    if leaf(headline, "basis") != "cohorts":
        return verdict_of(document["metrics"], "persistent")
    word = headline["verdict"]
    if word == "open":
        return word
    whom = {"majority": "than the majority", "persistent_at_prediction": "than no change"}
    verdict = f"{word} {whom.get(headline.get('opponent', ''), 'than no change and the majority')}"
    marks = ", ".join(filter(None, (interval_of(headline), headline["status"])))
    return f"{verdict} since {moment(headline['since_timestamp_seconds'])} ({marks})"


def counted_verdicts(models: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Names of models by verdict: worse, better, open (neither is shown so far)."""
    found: dict[str, list[str]] = {"worse": [], "better": [], "open": []}
    for name, model in models.items():
        word = headline_of(model).split()[0]
        found[word if word in found else "open"].append(name)
    return found


def worst_first(models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Names of models: those that are worse, those of which nothing is shown, those that are better."""
    order = ("worse", "open", UNKNOWN, "better")
    return sorted(models, key=lambda name: (order.index(headline_of(models[name]).split()[0]), name))


def answers(models: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each model of a document as of `/api/v1/models`; those that are worse come first.

    Parameters
    ----------
    models
        `metrics` and `details` of each model.
    """
    for name in worst_first(models):
        yield f"{name} {_sentence(headline_of(models[name]), models[name])}"


NO_CHANGE: Final = ("persistent", "persistent_at_prediction")
"""Baselines that are called no change: beside verdicts in the order of labels, and by cohorts."""


def no_change_of(document: Mapping[str, Any]) -> str:
    """Name the baseline that a model's headline calls no change: the one that its verdict is about.

    By cohorts it is the last label known when the prediction was made, else the previous label.
    """
    return NO_CHANGE[leaf(document["details"], "headline", "basis") == "cohorts"]


def _sentence(headline: str, document: Mapping[str, Any]) -> str:
    word, _, rest = headline.partition(" ")
    metrics = document["metrics"]
    right = leaf(metrics, "accuracy_ratio")
    majority = leaf(document["details"], "headline", "opponent") == "majority"
    baseline = "majority" if majority else no_change_of(document)
    opponent = leaf(metrics, "baseline_accuracy_ratio", baseline)
    whom = "the majority" if majority else "no change"
    known = f" ({_shares(right, opponent, whom)})" if right and opponent else ""
    if word not in ("better", "worse"):
        return f"is neither better nor worse than no change so far: {_NEEDED}{known}"
    return f"is {word} {rest if rest.startswith('than') else f'than no change {rest}'}{known}"


def _shares(right: Mapping[str, float], opponent: Mapping[str, float], whom: str) -> str:
    """Say how many were right lately, which is what a verdict is about, and over everything."""
    lately = next((name for name in right if name != _OVERALL and name in opponent), None)
    parts: list[str] = []
    if lately is not None:
        parts.append(f"lately {_percent(right[lately])} right, {whom} {_percent(opponent[lately])}")
    if _OVERALL in right and _OVERALL in opponent:
        words = "overall {} and {}" if parts else f"{{}} right, {whom} {{}}"
        parts.append(words.format(_percent(right[_OVERALL]), _percent(opponent[_OVERALL])))
    return "; ".join(parts)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
