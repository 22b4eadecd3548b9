"""Outcomes as the compiled join hands them over."""

from __future__ import annotations

import numpy as np

from streamwatch.core.outcomes import OUTCOME, OutcomeBatch


def batch_of(outcomes):
    """The same outcomes in columns; without scores."""
    models, classes = {}, {}
    records = np.zeros(len(outcomes), OUTCOME)
    for record, outcome in zip(records, outcomes, strict=True):
        record["model"] = models.setdefault(outcome.model, len(models))
        for name in ("true_class", "predicted_class", "label_at_prediction"):
            value = getattr(outcome, name)
            record[name] = -1 if value is None else classes.setdefault(value, len(classes))
        record["event_ms"], record["delay_ms"] = outcome.event_ms, outcome.delay_ms
        record["assumed"], record["scores"] = outcome.assumed, -1
    return OutcomeBatch(records, list(models), list(classes), {})
