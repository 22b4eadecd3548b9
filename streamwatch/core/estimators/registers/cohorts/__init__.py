"""Verdicts by cohorts of prediction time, valid even if labels are late in a biased way.

If hits and errors are labelled at different speeds, a verdict in the order of labels takes a change of
traffic for a change of the model. Here predictions are counted in cohorts of prediction time, and a cohort is
judged once, when its newest prediction has the age A. Labels that come later do not count, and those that
came are weighted by 1/G, G the share of settled outcomes of their kind that are labelled by the age A.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamwatch.core.estimators.registers.kind import RegisterKind
from streamwatch.core.metrics.metric import counter, gauge
from streamwatch.core.records.events import fold_of, model_of
from streamwatch.core.specs import DAY_MS, UtilityKind, UtilitySpec, first_utility

if TYPE_CHECKING:
    from streamwatch.core.estimators.registers.cohorts.register import Cohorts

MODEL_BYTES: Final = 15_530
"""Largest number of bytes of one model without its classes, in memory and in snapshots."""
CLASS_BYTES: Final = 4_050
"""Largest number of bytes of each of its first eight classes."""
LABEL_BYTES: Final = 8
"""Largest number of bytes of each further class."""
COST_BYTES: Final = 5_200
"""Largest number of further bytes of a model that may be judged by costs, without its classes."""
COST_CLASS_BYTES: Final = 4
"""Number of further bytes of each class of such a model, and of two more."""
CLASSES: Final = 8
"""Number of records of classes: seven classes have their own, and all others share one."""


def bytes_of(classes: int, *, by_costs: bool = False) -> int:
    """Largest number of bytes of a model with so many classes; snapshots are no larger."""
    of_costs = COST_BYTES + COST_CLASS_BYTES * (classes + 2) if by_costs else 0
    return MODEL_BYTES + min(classes, CLASSES) * CLASS_BYTES + LABEL_BYTES * classes + of_costs


_AGAINST: Final = ("model", "opponent")

METRICS: Final = (
    gauge(
        "cohort_headline",
        "Worse of the verdicts by cohorts against no change and the majority: 1 better than both, -1 worse "
        "than one of them, 0 open; only of models whose headline is by cohorts",
        "model",
    ),
    gauge(
        "cohort_verdict",
        "Verdict by cohorts of prediction time on the lead over an opponent: 1 better, -1 worse, 0 open; "
        "labels that are late in a biased way do not bias it while the distribution of delays stays the same",
        *_AGAINST,
    ),
    gauge(
        "cohort_verdict_since_timestamp_seconds",
        "Prediction time since which the verdict by cohorts holds; of an open one, when it became open",
        *_AGAINST,
    ),
    gauge(
        "cohort_verdict_confirmed",
        "Whether the verdict by cohorts that is held has been confirmed by settled predictions (1), or is "
        "early (0)",
        *_AGAINST,
    ),
    counter(
        "cohort_verdict_retracted_total",
        "Early verdicts by cohorts that settled predictions did not confirm",
        *_AGAINST,
    ),
    gauge(
        "cohort_verdict_evidence",
        "Evidence by cohorts that the model is better or worse, from 0 (none) to 1 (a verdict); it restarts "
        "at 0 after a verdict",
        "model",
        "opponent",
        "side",
    ),
    gauge(
        "cohort_lead",
        "Mean lead over an opponent of the predictions in judged cohorts since the verdict last changed; "
        "predictions that never get a label count 0",
        *_AGAINST,
    ),
    gauge("cohort_lead_lower", "Lower bound of cohort_lead, valid at all times", *_AGAINST),
    gauge("cohort_lead_upper", "Upper bound of cohort_lead, valid at all times", *_AGAINST),
    gauge(
        "cohort_lead_dispersion",
        "Variance of sums of the lead relative to independent predictions, at least 1",
        *_AGAINST,
    ),
    gauge("cohort_age_seconds", "Age at which the newest cohort of predictions will be judged", "model"),
    counter("cohorts_judged_total", "Cohorts of predictions judged", "model"),
)


@dataclass(frozen=True, slots=True)
class CohortsSpec:
    """Parameters of verdicts by cohorts.

    Attributes
    ----------
    horizon_ms
        Longest time that a label may take, at least a second (`JoinSpec.horizon_ms`).
    delta
        δ, twice the largest probability of a false worse than one of the opponents, or of a false better than
        both, within N predictions.
    outcomes
        Least N; it is the number of predictions of the last 30 days if that is larger.
    age_ms
        Age at which cohorts are judged, rounded up to one of 16 ages; they are judged at the horizon instead
        while too few labels come by that age. 0 lets the age adapt.
    by_prediction
        Whether outcomes come in the order of predictions, as with `join.order: prediction_time`.
    max_classes
        As in `MonitorsSpec`.
    utilities
        As in `MonitorsSpec`. Models are judged by accuracy or by their costs; those of the balanced utility
        are counted by accuracy, and have no headline.
    of_pairs
        Whether outcomes are pairs of two models, and the only opponent is the other model: its answer is the
        label known at the prediction, and delays may depend on which of the two is right.
    """

    horizon_ms: int = 14 * DAY_MS
    delta: float = 0.05
    outcomes: int = 100_000
    age_ms: int = 0
    by_prediction: bool = False
    max_classes: int = 1_000
    utilities: tuple[UtilitySpec, ...] = (UtilitySpec(),)
    of_pairs: bool = False

    def gives_headline(self, model: str) -> bool:
        """Tell whether the headline of a model is by cohorts, once it has been judged by enough of them.

        False for a model that predicts in folds or is judged by the balanced utility, and if outcomes come in
        the order of predictions, since the other verdicts are then in that order as well.
        """
        if self.by_prediction or fold_of(model) is not None:
            return False
        return self.utility_of(model) != "balanced"

    def utility_of(self, model: str) -> UtilityKind:
        """Look up the kind of the utility by which a model, or a fold of one, is judged."""
        return first_utility(self.utilities, model_of(model)).kind

    def cost_utilities(self) -> list[UtilitySpec]:
        """Utilities by costs, each once."""
        return list(dict.fromkeys(each for each in self.utilities if each.kind == "costs"))


def _build(spec: CohortsSpec, capacity: int) -> Cohorts:
    """Build an empty register; compiled code is imported only here."""
    from streamwatch.core.estimators.registers.cohorts.register import Cohorts  # noqa: PLC0415

    return Cohorts(spec, capacity)


COHORTS: Final = RegisterKind("cohorts", CohortsSpec, METRICS, _build)
"""Register of verdicts by cohorts."""
