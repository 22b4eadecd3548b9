"""Outcomes given as objects, put into columns."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from streamwatch.core.records.events import Outcome, carried_by_all, segments_text
from streamwatch.core.records.outcomes import OUTCOME, PAIR_COLUMNS, SEGMENTS_FROM, OutcomeBatch
from streamwatch.core.records.scores import lists_of


def in_columns(given: Iterable[Outcome]) -> OutcomeBatch:
    """Convert outcomes to columns, names numbered in order of occurrence; a batch is returned as it is."""
    if isinstance(given, OutcomeBatch):
        return given
    outcomes = list(given)
    models: dict[str, int] = {}
    classes: dict[str, int] = {}
    texts: dict[str, int] = {}
    records = np.zeros(len(outcomes), OUTCOME)
    records["model"] = [models.setdefault(each.model, len(models)) for each in outcomes]
    for name in ("true_class", "predicted_class", "label_at_prediction", "last_class"):
        named = [getattr(each, name) for each in outcomes]
        records[name] = [-1 if one is None else classes.setdefault(one, len(classes)) for one in named]
    records["last_class"] += 1
    for name in ("event_ms", "delay_ms", "resolved_ms", "waited_ms", "assumed"):
        records[name] = [getattr(each, name) for each in outcomes]
    records["made"] = [each.made % 2**32 for each in outcomes]
    records["carried"] = carried_by_all(outcomes)
    segments = [
        texts.setdefault(segments_text(each.segments), len(texts)) if each.segments else -1
        for each in outcomes
    ]
    records["scores"] = [number + SEGMENTS_FROM if number >= 0 else -1 for number in segments]
    scored = [position for position, each in enumerate(outcomes) if each.scores]
    records["scores"][scored] = np.arange(len(scored))
    of_scored = [outcomes[position].scores or {} for position in scored]
    by_number = [{classes.setdefault(name, len(classes)): each[name] for name in each} for each in of_scored]
    pairs = [
        (
            position,
            models.setdefault(pair.model, len(models)),
            classes.setdefault(pair.predicted_class, len(classes)),
            pair.made % 2**32,
        )
        for position, each in enumerate(outcomes)
        for pair in each.pairs or ()
    ]
    return OutcomeBatch(
        records,
        list(models),
        list(classes),
        lists_of(by_number, [segments[position] for position in scored]),
        list(texts),
        np.array(pairs, np.int64).reshape(-1, PAIR_COLUMNS).astype(np.int32),
    )
