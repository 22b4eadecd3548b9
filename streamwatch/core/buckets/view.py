"""View of the results of all buckets, as a single process would report them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from streamwatch.core.buckets.contract import ALARM, MODEL, PAIRS, TOTALS
from streamwatch.core.buckets.spec import BucketsSpec
from streamwatch.core.buckets.totals import Totals, decode_totals
from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.events import Alarm
from streamwatch.core.join.caveats import Caveats, caveats
from streamwatch.core.join.mismatch import ClassAgreement, Mismatch, mismatches
from streamwatch.core.join.models import joined_folds
from streamwatch.core.join.series import counter_families, gauge_families, identities, model_families
from streamwatch.core.series import Family

_ALARMS: Final = msgspec.msgpack.Decoder(Alarm)


class ResultsView:
    """Collects results; those of one name must be in order, and any may be repeated.

    Parameters
    ----------
    spec
        Partitioning of the stream.
    """

    def __init__(self, spec: BucketsSpec) -> None:
        self._spec = spec
        self._totals: dict[str, Totals] = {}
        self.monitors = EstimatorSet(spec.monitors)
        """Estimators of all models; recent alarms and counts of limits are kept separately."""
        self.alarms: dict[str, Alarm] = {}
        """Alarms by name of their result."""

    def take(self, kind: str, name: str, body: bytes) -> None:
        """Add one result.

        Raises
        ------
        ValueError
            If its kind is unknown, or its body is not of this version.
        """
        if kind == TOTALS:
            self._totals[name] = decode_totals(body)
        elif kind == MODEL:
            if body:
                self.monitors.restore(body)  # replaces the previous one
            elif name in self.monitors.models():
                self.monitors.retire(name)
        elif kind == PAIRS:
            comparisons = ComparisonSet(self._spec.monitors)  # new, as it lacks ended comparisons
            comparisons.restore(body)
            self.monitors.comparisons = comparisons
        elif kind == ALARM:
            self.alarms.pop(name, None)
            if body:
                self.alarms[name] = _ALARMS.decode(body)
        else:
            raise ValueError(f"expected a result of {TOTALS}, {MODEL}, {PAIRS}, {ALARM}, got {kind!r}")

    @property
    def totals(self) -> Totals:
        """Counters and gauges of all buckets together."""
        total = Totals()
        for each in self._totals.values():
            total = total.plus(each)
        return total

    def mismatches(self) -> list[Mismatch]:
        """Models whose predictions and labels seem not to belong together, by name."""
        return _mismatches(self._spec, self.totals)

    def caveats(self) -> dict[str, Caveats]:
        """Caveats beside verdicts, by model."""
        totals = self.totals
        return caveats(joined_folds(totals.models), self._spec.join, totals.clock_ms)

    def identities(self) -> list[str]:
        """Describe the sums over all buckets that do not hold; empty after every complete batch."""
        return identities(self.totals)

    def join_families(self) -> list[Family]:
        """Series of the join."""
        totals = self.totals
        return [
            *counter_families(totals, totals.over_limit),
            *gauge_families(totals),
            *model_families(totals, _mismatches(self._spec, totals)),
        ]

    def families(self) -> Sequence[Family]:
        """All series, those of the estimators last."""
        return self.join_families() + self.monitors.families()


def _mismatches(spec: BucketsSpec, totals: Totals) -> list[Mismatch]:
    agreement = ClassAgreement(spec.join.max_models)
    agreement.restore(totals.agreement)
    return mismatches(agreement, totals.models, totals.clock_ms - spec.join.early_horizon_ms)
