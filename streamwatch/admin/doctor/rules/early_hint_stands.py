"""Predictions of a model have changed, and their labels are not in yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight
from streamwatch.core.series import detail_at


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
    hint = detail_at(details, "early_hints", "hint")
    more, name = detail_at(hint, "more"), detail_at(hint, "class")
    if not isinstance(more, bool) or not isinstance(name, str | None):
        return "its predictions differ from earlier ones"
    if name is None:
        return f"scores of predicted classes are {'higher' if more else 'lower'} than before"
    which = "classes beyond its first eight are" if name == "__other__" else f"{name!r} is"
    return f"{which} predicted {'more' if more else 'less'} often than before"


RULE = Rule("early_hint_stands", _find)
