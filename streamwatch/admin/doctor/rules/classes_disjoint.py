"""Predicted and true classes of a model have nothing in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight
from streamwatch.core.series import detail_at
from streamwatch.lab.inspection.classes import matched


def _find(facts: Facts) -> Iterator[Finding]:
    for model, details in sorted(facts.details.items()):
        predicted = detail_at(details, "classes_disjoint", "predicted_class")
        true = detail_at(details, "classes_disjoint", "true")
        if isinstance(predicted, list) and isinstance(true, list):
            yield _finding(model, [str(name) for name in predicted], [str(name) for name in true])


def _finding(model: str, predicted: Sequence[str], true: Sequence[str]) -> Finding:
    ours, theirs = ", ".join(map(repr, predicted)), ", ".join(map(repr, true))
    said = f"is right in no outcome: it predicts {ours}, but labels say {theirs}"
    aliases = matched(predicted, true)
    if aliases:
        shown = ", ".join(f"{written!r}: {meant!r}" for written, meant in aliases.items())
        change = f"in the mapping of the label topic: classes: {{{shown}}}"
    else:
        change = "in the mapping of one of the topics: classes: {name in records: name that is meant}"
    if _are_scores(predicted):
        return Finding(
            Weight.NOTHING_TRUE,
            f"model {model}",
            said,
            "the mapped field holds a score instead of a class",
            "map the field with the class that the score led to: topics.predictions … mapping: prediction",
        )
    return Finding(
        Weight.NOTHING_TRUE, f"model {model}", said, "the two sides write classes differently", change
    )


def _are_scores(names: Sequence[str]) -> bool:
    return all(name.replace(".", "", 1).isdigit() and "." in name for name in names)


RULE = Rule("classes_disjoint", _find)
