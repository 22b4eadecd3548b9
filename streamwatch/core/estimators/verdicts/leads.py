"""Lead of a model over an opponent at the current outcome, under the model's utility."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.estimators.verdicts.opponents import majority_column
from streamwatch.core.estimators.verdicts.utility import ACCURACY, COSTS, balanced_weight
from streamwatch.core.jit import inner


@inner
def cost_class(m, class_counts, k, classes):
    """Index of a class in the cost table; 0 (any other class) for one that the model has not shown."""
    return int(class_counts[m.class_counts + k, majority_column(class_counts) + 2]) if k < classes else 0


@inner
def balanced_lead(m, class_counts, true_class, predicted_class):
    """Size of a non-zero lead under the balanced utility."""
    classes = max(m.classes, true_class + 1, predicted_class + 1)
    unit = m.labels[0].balanced_unit
    return balanced_weight(
        class_counts, m.class_counts, classes, majority_column(class_counts) + 1, unit, true_class
    )


@inner
def lead_by_costs(m, class_counts, utilities, true_class, predicted_class, answer):
    """Lead over another answer under a cost table."""
    classes = max(m.classes, true_class + 1, predicted_class + 1)
    table = m.utility - COSTS
    row = cost_class(m, class_counts, true_class, classes)
    own = utilities[table, row, cost_class(m, class_counts, predicted_class, classes)]
    return own - utilities[table, row, cost_class(m, class_counts, answer, classes)]


@inner
def lead_of(m, class_counts, utilities, true_class, predicted_class, answer):
    """Lead over another answer under the model's utility."""
    if m.utility >= COSTS:
        return lead_by_costs(m, class_counts, utilities, true_class, predicted_class, answer)
    sign = 1.0 if predicted_class == true_class else -1.0 if answer == true_class else 0.0
    if m.utility == ACCURACY or sign == 0.0:
        return sign
    return sign * balanced_lead(m, class_counts, true_class, predicted_class)
