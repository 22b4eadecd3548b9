"""The previous label is right more often than the model, and classes are far from balanced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight

RARE: Final = 0.9
"""Share of the most frequent class from which accuracy says little."""
ENOUGH: Final = 100


def _find(facts: Facts) -> Iterator[Finding]:
    for model in facts.models:
        forgetting = facts.forgetting(model)
        if forgetting is None or (facts.now.value("outcomes_total", model=model) or 0.0) < ENOUGH:
            continue
        accuracy = facts.now.value("accuracy_ratio", model=model, forgetting=forgetting)
        persistent = facts.now.value(
            "baseline_accuracy_ratio", model=model, forgetting=forgetting, baseline="persistent"
        )
        majority = facts.now.value(
            "baseline_accuracy_ratio", model=model, forgetting=forgetting, baseline="majority"
        )
        if (
            accuracy is None
            or persistent is None
            or majority is None
            or persistent <= accuracy
            or majority < RARE
        ):
            continue
        if _utility(facts, model) != "accuracy":
            continue
        yield Finding(
            Weight.WORTH_KNOWING,
            f"model {model}",
            f"is right in {accuracy:.1%}, the previous label in {persistent:.1%}, "
            f"but classes are {majority * 100:.0f} : {(1 - majority) * 100:.0f}",
            "with a rare class, a model that never predicts it is right most of the time: accuracy does not "
            "measure what the model is for",
            f"monitors: {{utility_by_model: {{{model}: balanced}}}}, or costs of each mistake",
        )


def _utility(facts: Facts, model: str) -> str:
    """Utility by which a model is judged; accuracy where settings are not known."""
    if facts.configured is None:
        return "accuracy"
    utilities = facts.configured.utilities
    return utilities.get(model, utilities.get("", "accuracy"))


RULE = Rule("persistent_wins", _find)
