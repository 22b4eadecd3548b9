"""How the ids of a model and those of labels are written, where a sample shows both."""

from __future__ import annotations

from streamwatch.admin.doctor.facts import Facts
from streamwatch.lab.inspection.columns import Column
from streamwatch.lab.inspection.ids import affix_of


def told_apart(facts: Facts, model: str) -> str | None:
    """Say what keeps ids of a model from meeting those of labels; None where a sample does not show it."""
    predicted = [id_ for topic in facts.topics.values() for id_ in topic.ids.get(model, ())]
    labelled = [id_ for topic in facts.topics.values() for id_ in topic.ids.get("", ())]
    if not predicted or not labelled:
        return None
    affix = affix_of(Column("predictions", predicted), Column("labels", labelled))
    if affix is not None:
        return f"{affix.said}: {predicted[-1]!r} beside {labelled[-1]!r}"
    return f"ids of its predictions look like {predicted[-1]!r}, those of labels like {labelled[-1]!r}"
