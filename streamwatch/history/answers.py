"""Sentences that answer for a model whether it is better or worse than its opponents, and since when."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from streamwatch.core.metrics.series import Family, detail_at
from streamwatch.edge.web.routes.overview import warnings_of

UNKNOWN: Final = "–"
"""Text of an undefined value."""
_OVERALL: Final = "landmark"
_YEAR_2000: Final = 946_684_800.0
_YEAR_10000: Final = 253_402_300_800.0
_WORDS: Final = {1.0: "better", -1.0: "worse", 0.0: "open"}
_NEEDED: Final = "more outcomes are needed for a verdict"


def count(value: Any) -> str:
    """Format a whole number with thousands separators."""
    return f"{value:,.0f}" if isinstance(value, int | float) and math.isfinite(value) else UNKNOWN


def moment(seconds: Any) -> str:
    """Format date and time in UTC; `UNKNOWN` before 2000, as without timestamps, or after 9999."""
    if not isinstance(seconds, int | float) or not _YEAR_2000 <= seconds < _YEAR_10000:
        return UNKNOWN
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def interval_of(document: Mapping[str, Any]) -> str:
    """Format the interval of the time since which a verdict by cohorts holds; empty without one.

    `document` is the verdict as the API has it.
    """
    names = ("earliest_timestamp_seconds", "latest_timestamp_seconds")
    earliest, latest = (moment(document.get(name)) for name in names)
    if latest == UNKNOWN:
        return ""
    return f"{latest} at the latest" if earliest == UNKNOWN else f"between {earliest} and {latest}"


def verdict_of(metrics: Mapping[str, Any], opponent: str) -> str:
    """Format the verdict on an opponent, and the outcome since which it holds."""
    value = detail_at(metrics, "verdict", opponent)
    if not isinstance(value, int | float):
        return UNKNOWN
    since = detail_at(metrics, "verdict_since_outcome", opponent)
    word = _WORDS.get(float(value), UNKNOWN)
    if since is None or word == "open":
        return word
    when = moment(detail_at(metrics, "verdict_since_timestamp_seconds", opponent))
    return f"{word} since outcome {count(since)}" + ("" if when == UNKNOWN else f", {when}")


def headline_of(document: Mapping[str, Any]) -> str:
    """Format a model's headline: the verdict by cohorts if it is by them, else that on no change."""
    headline = detail_at(document["details"], "headline")
    if detail_at(headline, "basis") != "cohorts":
        return verdict_of(document["metrics"], "persistent")
    word = headline["verdict"]
    if word == "open":
        return word
    whom = {"majority": "than the majority", "persistent_at_prediction": "than no change"}
    verdict = f"{word} {whom.get(headline.get('opponent', ''), 'than no change and the majority')}"
    marks = ", ".join(filter(None, (interval_of(headline), headline["status"])))
    return f"{verdict} since {moment(headline['since_timestamp_seconds'])} ({marks})"


def counted_verdicts(models: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Group the names of models by verdict: `worse`, `better` and `open`, which includes undefined ones."""
    found: dict[str, list[str]] = {"worse": [], "better": [], "open": []}
    for name, model in models.items():
        word = headline_of(model).split()[0]
        found[word if word in found else "open"].append(name)
    return found


def worst_first(models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Sort the names of models by verdict: worse, open, undefined, better; then by name."""
    order = ("worse", "open", UNKNOWN, "better")
    return sorted(models, key=lambda name: (order.index(headline_of(models[name]).split()[0]), name))


def answers(models: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each model, those that are worse first (`worst_first`).

    Parameters
    ----------
    models
        `metrics` and `details` of each model, as in `/api/v1/models`.
    """
    for name in worst_first(models):
        wrong = "; ".join(warning for warning, _ in warnings_of(models[name]["details"]))
        yield f"{name} {_sentence(headline_of(models[name]), models[name], wrong)}"


_SHOWN: Final = 20


def first_answers(found: Iterable[str]) -> list[str]:
    """Return the first sentences, and how many models the others are of."""
    listed = list(found)
    more = [f"… and {len(listed) - _SHOWN:,} more models"] if len(listed) > _SHOWN else []
    return listed[:_SHOWN] + more


def documents_of(
    families: Iterable[Family], details: Mapping[str, Mapping[str, object]]
) -> dict[str, dict[str, Any]]:
    """Return `metrics` and `details` of each model, as in `/api/v1/models`."""
    from streamwatch.edge.web.routes.json_api import by_model  # noqa: PLC0415 - loads the web server

    models, _ = by_model(families)
    return {name: {"metrics": tree, "details": details.get(name, {})} for name, tree in models.items()}


NO_CHANGE: Final = ("persistent", "persistent_at_prediction")
"""Baselines called no change: that of verdicts in the order of labels, and that of verdicts by cohorts."""


def no_change_of(document: Mapping[str, Any]) -> str:
    """Return the baseline that is called no change in a model's headline.

    By cohorts it is the last label known when the prediction was made, else the previous label.
    """
    return NO_CHANGE[detail_at(document["details"], "headline", "basis") == "cohorts"]


def _sentence(headline: str, document: Mapping[str, Any], wrong: str) -> str:
    word, _, rest = headline.partition(" ")
    metrics = document["metrics"]
    right = detail_at(metrics, "accuracy_ratio")
    majority = detail_at(document["details"], "headline", "opponent") == "majority"
    baseline = "majority" if majority else no_change_of(document)
    opponent = detail_at(metrics, "baseline_accuracy_ratio", baseline)
    whom = "the majority" if majority else "no change"
    known = f" ({_shares(right, opponent, whom)})" if right and opponent else ""
    if word == UNKNOWN and wrong:
        return f"has no verdict, because {wrong}{known}"
    if wrong:
        known += f"; but {wrong}"
    if word not in ("better", "worse"):
        return f"is neither better nor worse than no change so far: {_NEEDED}{known}"
    return f"is {word} {rest if rest.startswith('than') else f'than no change {rest}'}{known}"


def _shares(right: Mapping[str, float], opponent: Mapping[str, float], whom: str) -> str:
    """Format the accuracy of the model and of the opponent, lately and over all outcomes."""
    lately = next((name for name in right if name != _OVERALL and name in opponent), None)
    parts: list[str] = []
    if lately is not None:
        parts.append(f"lately {percent(right[lately])} right, {whom} {percent(opponent[lately])}")
    if _OVERALL in right and _OVERALL in opponent:
        words = "overall {} and {}" if parts else f"{{}} right, {whom} {{}}"
        parts.append(words.format(percent(right[_OVERALL]), percent(opponent[_OVERALL])))
    return "; ".join(parts)


def percent(share: float) -> str:
    """Format a share as a percentage with one decimal."""
    return f"{100 * share:.1f} %"
