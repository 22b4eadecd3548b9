"""Labels come in runs of one class, as from a dump that is sorted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight

NEARLY_ALWAYS: Final = 0.97
FAR: Final = 0.3
ENOUGH: Final = 200


def _find(facts: Facts) -> Iterator[Finding]:
    if facts.configured is not None and facts.configured.order == "prediction_time":
        return
    for model in facts.models:
        forgetting = facts.forgetting(model)
        if forgetting is None or (facts.now.value("outcomes_total", model=model) or 0.0) < ENOUGH:
            continue
        persistent = facts.now.value(
            "baseline_accuracy_ratio", model=model, forgetting=forgetting, baseline="persistent"
        )
        majority = facts.now.value(
            "baseline_accuracy_ratio", model=model, forgetting=forgetting, baseline="majority"
        )
        if (
            persistent is None
            or majority is None
            or persistent < NEARLY_ALWAYS
            or persistent < majority + FAR
        ):
            continue
        yield Finding(
            Weight.WORTH_KNOWING,
            f"model {model}",
            f"has labels that repeat the previous one in {persistent:.1%} of its outcomes, although the most "
            f"frequent class has only {majority:.1%}",
            "labels come sorted by class, as from a nightly dump, and not in the order of events",
            "join: {order: prediction_time, reorder_window: …}, with a window longer than a dump takes",
        )


RULE = Rule("labels_sorted", _find)
