"""Outcomes as the compiled join hands them over."""

from __future__ import annotations

import numpy as np

from streamwatch.core.pipeline.journal import EntryWriter
from streamwatch.core.records.events import carried_by
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch
from streamwatch.core.records.scores import lists_of


def batch_of(outcomes):
    """The same outcomes in columns."""
    models, classes, pairs, scores = {}, {}, [], []
    records = np.zeros(len(outcomes), OUTCOME)
    for number, (record, outcome) in enumerate(zip(records, outcomes, strict=True)):
        record["model"] = models.setdefault(outcome.model, len(models))
        for name in ("true_class", "predicted_class", "label_at_prediction"):
            value = getattr(outcome, name)
            record[name] = -1 if value is None else classes.setdefault(value, len(classes))
        record["event_ms"], record["delay_ms"] = outcome.event_ms, outcome.delay_ms
        record["made"], record["resolved_ms"] = outcome.made, outcome.resolved_ms
        record["waited_ms"] = outcome.waited_ms
        record["carried"] = carried_by(outcome)
        record["assumed"], record["scores"] = outcome.assumed, -1
        if outcome.scores is not None:
            record["scores"] = len(scores)
            numbered = classes.setdefault
            scores.append({numbered(name, len(classes)): score for name, score in outcome.scores.items()})
        if outcome.last_class is not None:
            record["last_class"] = 1 + classes.setdefault(outcome.last_class, len(classes))
        for partner, answer, made in outcome.pairs or ():
            of_partner = models.setdefault(partner, len(models)), classes.setdefault(answer, len(classes))
            pairs.append((number, *of_partner, made))
    paired = np.array(pairs, np.int64).reshape(-1, 4).astype(np.int32)
    lists = lists_of(scores, [-1] * len(scores))
    return OutcomeBatch(records, list(models), list(classes), lists, pairs=paired)


def written(batches):
    """An entry of the journal with the outcomes of batches."""
    writer = EntryWriter()
    for batch in batches:
        writer.add(batch)
    return writer.close()
