"""Where accuracy misleads: one class is nearly all there is, and the model tells the others from it.

Of 99 legitimate payments and one fraud, always saying "legitimate" is right 99 % of the time. A model that
finds most frauds at the price of a few false alarms is right less often, and of use all the same.
"""

from __future__ import annotations

from typing import Final

from streamwatch.core.estimators.agreement import Flags, Totals
from streamwatch.core.estimators.measures.measures import p_majority
from streamwatch.core.estimators.measures.uncertainty import kappa_zscore

MAJORITY: Final = 0.9
"""Share of the labels from which on the largest class makes accuracy a poor judge."""
SURE: Final = 3.0
"""Standard errors that kappa must be above 0 by: by chance in one of 740 models that know nothing."""


def accuracy_misleads(totals: Totals) -> Flags:
    """Tell of which models accuracy says little.

    The largest class is 90 % of labels or more, and kappa is sure to be above 0. Shape (m,); false where
    either is undefined.
    """
    return (p_majority(totals) >= MAJORITY) & (kappa_zscore(totals) >= SURE)
