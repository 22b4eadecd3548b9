"""Detection of models for which accuracy misleads: one class dominates, and kappa is clearly positive.

Of 99 legitimate payments and one fraud, always saying "legitimate" is right 99 % of the time. A model that
finds most frauds at the price of a few false alarms is right less often, but useful.
"""

from __future__ import annotations

from typing import Final

from streamwatch.core.estimators.agreement import Flags, Totals
from streamwatch.core.estimators.measures.measures import p_majority
from streamwatch.core.estimators.measures.uncertainty import kappa_zscore

MAJORITY: Final = 0.9
"""Share of the largest class of labels from which on accuracy misleads."""
SURE: Final = 3.0
"""Standard errors by which kappa must exceed 0; by chance, one in 740 useless models does."""


def accuracy_misleads(totals: Totals) -> Flags:
    """Mark the models for which accuracy misleads, shape (m,).

    True if the largest class has at least 90 % of the labels and kappa is significantly above 0; false if
    either is undefined.
    """
    return (p_majority(totals) >= MAJORITY) & (kappa_zscore(totals) >= SURE)
