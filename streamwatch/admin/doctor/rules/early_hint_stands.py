"""Predictions of a model have changed, and their labels are not in yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight


def _find(facts: Facts) -> Iterator[Finding]:
    for model, active in facts.now.by("early_hint", "model").items():
        if not active:
            continue
        yield Finding(
            Weight.WORTH_KNOWING,
            f"model {model}",
            f"has an early hint: {_changed(facts.details.get(model, {}))}; the labels are not in yet",
            "the world, the input of the model or the model itself has changed; without labels, it is "
            "unknown which, and whether the model errs more",
            "examine the input of the model since then; its accuracy will be known once labels are in "
            "(if day and night differ: monitors: {early_hints: {reach: …}} of several days of predictions)",
        )


def _changed(details: Mapping[str, object]) -> str:
    """What differs, as far as it is told."""
    match details:
        case {"early_hints": {"hint": {"class": None, "more": bool(more)}}}:
            return f"scores of predicted classes are {'higher' if more else 'lower'} than before"
        case {"early_hints": {"hint": {"class": "__other__", "more": bool(more)}}}:
            return (
                f"classes beyond its first eight are predicted {'more' if more else 'less'} often than before"
            )
        case {"early_hints": {"hint": {"class": str(name), "more": bool(more)}}}:
            return f"{name!r} is predicted {'more' if more else 'less'} often than before"
        case _:
            return "its predictions differ from earlier ones"


RULE = Rule("early_hint_stands", _find)
