"""A model predicts, and no label meets its predictions, or few do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight
from streamwatch.admin.doctor.id_texts import told_apart

MANY_LABELS: Final = 20


def _find(facts: Facts) -> Iterator[Finding]:
    for model, wrong in facts.now.by("nothing_joins", "model").items():
        if not wrong:
            continue
        predictions = facts.now.by("model_predictions_total", "model").get(model, 0.0)
        labels = facts.now.value("labels_accepted_total") or 0.0
        said = f"has no label for any of {predictions:,.0f} predictions"
        if labels < MANY_LABELS:
            cause, change = (
                f"only {labels:,.0f} labels were read at all",
                "check whether the label topics receive records, and whether kafka.start_from skips them",
            )
        elif (seen := told_apart(facts, model)) is not None:
            cause, change = (
                seen,
                "let one side write ids as the other does, or map another field: topics … mapping: id",
            )
        else:
            cause = f"{labels:,.0f} labels were read, so the two sides probably write ids differently"
            change = (
                "compare ids with streamwatch inspect, or this command with -c; then topics … mapping: id"
            )
        yield Finding(Weight.NOTHING_TRUE, f"model {model}", said, cause, change)


RULE = Rule("nothing_joins", _find)
