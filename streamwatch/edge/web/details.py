"""Types of `details`, the facts about a model that the API sends besides its metrics.

Registers make plain dictionaries of these types. The OpenAPI document is generated from the types, and tests
validate every answer against it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Required, TypeAlias, TypedDict

from msgspec import Meta

from streamwatch.core.alerting.notification import Severity
from streamwatch.core.estimators.registers.fleet import Verdict


def about(description: str) -> Meta:
    """Make the description of a field for the OpenAPI document."""
    return Meta(description=description)


# Kinds of values.


Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Lead: TypeAlias = Annotated[float, Meta(ge=-1, le=1)]
"""Mean difference of two utilities."""
Amount: TypeAlias = Annotated[float, Meta(ge=0)]
Dispersion: TypeAlias = Annotated[float, Meta(ge=1)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Ordinal: TypeAlias = Annotated[int, Meta(ge=1)]
Earliest: TypeAlias = Annotated[
    float, Meta(description="Start of its 80 % interval; absent if it may precede all judged cohorts")
]
Latest: TypeAlias = Annotated[float, Meta(description="End of its 80 % interval")]
EventTime: TypeAlias = Annotated[float, Meta(description="Event time")]
Number: TypeAlias = "float | Literal['+Inf', '-Inf']"
Tree: TypeAlias = Annotated[dict[str, Any], Meta(extra_json_schema={"$ref": "#/components/schemas/Tree"})]
"""Metric → value, nested by label values; its schema is recursive, and so is written in `openapi`."""
Series: TypeAlias = Annotated[dict[str, Any], Meta(extra_json_schema={"$ref": "#/components/schemas/Series"})]
"""List of values, one for each timestamp, nested as a Tree."""
FoldAccuracies: TypeAlias = dict[str, dict[str, Share]]


class Caveats(TypedDict, total=False):
    """Caveats of a verdict."""

    first_horizon_ends_timestamp_seconds: Annotated[
        float,
        about(
            "When the first prediction is one join.horizon old; absent once it is, and as soon as observed "
            "delays show that hardly any label takes longer. Until then only quick labels are in, and slower "
            "ones may change the numbers"
        ),
    ]
    first_horizon_predictions: Annotated[
        Count, about("Predictions taken in so far; absent when the first is one join.horizon old")
    ]
    first_horizon_labelled: Annotated[Count, about("Number of them that have been matched with a label")]
    first_horizon_only_label: Annotated[
        str, about("Class of all of these labels; absent if they have several")
    ]
    utility: Annotated[
        Literal["balanced", "costs"],
        about("Utility by which the model is judged; absent for accuracy"),
    ]
    labels_assumed_as: Annotated[
        str, about("Class that predictions without a label count as (join.on_expiry); else absent")
    ]
    evaluation_since_timestamp_seconds: Annotated[
        float,
        about(
            "Record time at which settings changed that decide how outcomes of the model are made (mapping, "
            "topics, utility); absent if they never have"
        ),
    ]
    evaluation_changed: Annotated[
        str,
        about(
            "These settings, separated by commas; or state reset, if its estimates were begun anew on purpose"
        ),
    ]
    evaluation_outcomes_before: Annotated[
        Count, about("Outcomes that were evaluated before, under the old settings")
    ]
    evaluation_began_anew: Annotated[
        bool, about("Whether estimates began anew then; otherwise these outcomes are in them")
    ]


# Problems of a model: nothing joins, classes disagree, incidents are open.


class ClassesDisjoint(TypedDict):
    """Some predicted and some true classes of a model that have no class in common."""

    predicted_class: list[str]
    true: list[str]


class ScoresAsClasses(TypedDict):
    """Some predicted classes that are numbers, as scores are."""

    predicted_class: list[str]


class NothingJoins(TypedDict):
    """Number of predictions, none of which was matched with a label."""

    predictions: int


class OpenAlarm(TypedDict, total=False):
    """An open alarm of an incident."""

    detector: Required[str]
    severity: Required[Severity]
    started_timestamp_seconds: Required[float]
    before: Annotated[float, about("Mean loss before; absent of a verdict")]
    after: Annotated[float, about("Mean loss after")]
    opponent: Annotated[str, about("Of a verdict: opponent that the model is worse than")]
    basis: Annotated[Literal["cohorts", "labels"], about("Of a verdict")]
    status: Annotated[
        Literal["early", "confirmed", "retracted", "unconfirmed", ""],
        about("Of a verdict by cohorts, and of a detector's alarm that cohorts of predictions may confirm"),
    ]
    confirmation_expected_seconds: Annotated[
        float, about("Of an unconfirmed alarm: event time from which on it may be confirmed")
    ]
    predictions: Annotated[ConfirmedChange, about("Of a confirmed alarm of a detector")]
    false_alarms_expected_monthly: Annotated[
        float, about("False alarms that the detector is expected to raise in 30 days; absent where unknown")
    ]


class ConfirmedChange(TypedDict):
    """Change of the error among predictions, by cohorts of prediction time."""

    since_timestamp_seconds: float
    before: Share
    after: Share


class Incident(TypedDict):
    """An open incident."""

    incident: Annotated[str, about("Id, as in notifications")]
    severity: Severity
    started_timestamp_seconds: EventTime
    alarms: Annotated[list[OpenAlarm], about("Its alarms that are open")]


# Of one model alone: its classes, scores, segments and recovery.


class Confusion(TypedDict):
    """Faded counts of outcomes, a row per true class, a number per predicted class.

    Only in answers about one model, and only where shadow classifiers run.
    """

    forgetting: str
    classes: list[str]
    counts: list[list[Amount]]


class SegmentValue(TypedDict, total=False):
    """One value of a segment; further fields are measures under their names."""

    value: Required[str]
    outcomes: Required[Count]
    traffic_ratio: Annotated[Share, about("Of the segment's outcomes, faded")]
    error_before_ratio: Annotated[Share, about("Over its whole past")]
    error_now_ratio: Annotated[Share, about("Of late: fading factor 0.99")]
    extra_errors_ratio: Annotated[Share, about("Its share of the model's extra errors")]


class Segment(TypedDict):
    """Values of one segment, the most frequent first; only in answers about one model."""

    outcomes: Ordinal
    values: list[SegmentValue]
    values_left_out: Count


ReliabilityBin = TypedDict(
    "ReliabilityBin",
    {
        "from": float,
        "to": Annotated[float, about("Itself outside, but for the last bin")],
        "outcomes": Annotated[Amount, about("Faded weight")],
        "mean_score": Annotated[Share | None, about("Of the predicted class; null for an empty bin")],
        "hit_share": Annotated[Share | None, about("How often the predicted class was right")],
    },
)


class Curve(TypedDict):
    """Precision and recall of a class, had it been predicted from each threshold on."""

    precision: list[float | None]
    recall: list[float | None]


class Probabilities(TypedDict):
    """Calibration and separation of class scores; only in answers about one model, if it sends scores."""

    scored_outcomes: Count
    alpha: Annotated[float, about("Fading factor of bins and curves")]
    calibration_error: Annotated[Share | None, about("Expected calibration error")]
    reliability: list[ReliabilityBin]
    auc: Annotated[Share | None, about("Mean area under the ROC curve of classes that have one")]
    auc_outcomes: Annotated[Count, about("Outcomes it is over")]
    auc_by_class: dict[str, Share | None]
    thresholds: list[float]
    curves: dict[str, Curve]


class DriftUnderWay(TypedDict):
    """A drift after which the error is not yet back."""

    since_outcome: Annotated[Ordinal, about("The drift's first outcome")]
    alarm_timestamp_seconds: Annotated[float, about("Event time of its alarm")]
    error_before_ratio: Annotated[Share, about("Faded error before the drift")]
    error_now_ratio: Annotated[Share, about("Faded error now")]


class DriftEnded(TypedDict):
    """Latest drift that has ended."""

    depth: Annotated[Share, about("Highest faded error less that before")]
    outcomes: Annotated[
        Amount | None,
        about("Until the error was back; 0 if it never left its bound, null if it never came back"),
    ]


class Recovery(TypedDict, total=False):
    """Recovery after drifts; only in answers about one model, unless it predicts in folds."""

    forgetting: Required[Annotated[str, about("Fading factor whose error is followed")]]
    under_way: DriftUnderWay
    last: DriftEnded


# Prediction times and label delays.


class ErrorChange(TypedDict):
    """A change of the error among predictions."""

    since_timestamp_seconds: Annotated[float, about("Time of the predictions since which the error differs")]
    earliest_timestamp_seconds: Annotated[float, about("Interval of 95 % for it")]
    latest_timestamp_seconds: float
    before: Annotated[Share, about("Error of the predictions before it")]
    after: Annotated[Share, about("Error of the predictions since")]


class IntervalAccuracy(TypedDict):
    """Accuracy with Wilson's interval of 95 %."""

    accuracy: Share
    lower: Share
    upper: Share
    effective_sample_size: Amount


class ByPredictionTime(TypedDict):
    """Outcomes so far, and errors among them, by stretches of prediction time."""

    width_seconds: Annotated[float, about("Length of a stretch of prediction time")]
    start_timestamp_seconds: list[float]
    outcomes: list[Count]
    errors: list[Count]


class SharesLabelled(TypedDict, total=False):
    """Shares of the labels of errors, and of hits, that arrive by an age of the prediction.

    Absent of a kind without outcomes.
    """

    age_seconds: Required[list[float]]
    errors: list[Share]
    hits: list[Share]


class TypicalDelay(TypedDict):
    """Geometric mean of the delays of labels that take less than half of join.horizon."""

    before_seconds: Annotated[Amount, about("Of predictions 1 to 1.5 horizons old")]
    after_seconds: Annotated[Amount, about("Of predictions 0.5 to 1 horizon old")]


class DelaysMoved(TypedDict, total=False):
    """Kinds of labels whose delays are longer or shorter than those of the half horizon before."""

    errors: TypicalDelay
    hits: TypicalDelay


class LateLabels(TypedDict, total=False):
    """Accuracy by when predictions were made, where labels are late."""

    horizon_seconds: Required[Annotated[float, about("join.horizon")]]
    as_of_timestamp_seconds: Required[Annotated[float, about("Time of the newest outcome")]]
    by_prediction_time: Required[ByPredictionTime]
    settled: Annotated[
        IntervalAccuracy, about("Of predictions 1 to 1.5 horizons old: they have their labels")
    ]
    delay_corrected: Annotated[
        IntervalAccuracy, about("Of predictions of the last half horizon, corrected for labels to come")
    ]
    delay_corrected_undefined: Annotated[
        Literal["too_few_settled", "hits_too_late", "errors_too_late", "too_few_recent"],
        about(
            "Why there is no delay_corrected: fewer than 30 predictions are settled; fewer than a fifth of "
            "the labels of hits, or of errors, come within half a horizon (read settled instead); fewer than "
            "30 recent outcomes. Absent with join.on_expiry: {assume: …}"
        ),
    ]
    naive: Annotated[Share, about("Of the same predictions, as labelled so far")]
    bias: Annotated[Lead, about("naive - delay_corrected")]
    share_labelled: SharesLabelled
    delays_moved: Annotated[DelaysMoved, about("Kinds whose delays have changed; absent without any")]
    change: Annotated[ErrorChange, about("Latest among predictions; absent without one")]


class LabelDelays(TypedDict):
    """Kaplan-Meier: predictions that still wait count as censored.

    Only in answers about one model, if monitors.label_delays is set.
    """

    age_seconds: Annotated[list[float], about("Ages of predictions, up to the oldest observed one")]
    labelled: Annotated[list[Share], about("Share of predictions labelled by an age")]
    labelled_hits: Annotated[
        list[Share],
        about("Share of predictions labelled as hits by an age; with labelled_errors it adds up to labelled"),
    ]
    labelled_errors: list[Share]
    classes: Annotated[dict[str, list[Share]], about("By predicted class, at the same ages")]


class CohortEvidence(TypedDict):
    """Evidence for each verdict, which is reached at 1."""

    better: Share
    worse: Share


class HeldVerdict(TypedDict, total=False):
    """Status of a verdict by cohorts that is held, and the time since which it holds."""

    status: Annotated[
        Literal["early", "confirmed"],
        about("Of a verdict that is held: early until its predictions are a horizon old"),
    ]
    since_timestamp_seconds: Annotated[float, about("Prediction time since which the verdict holds")]
    earliest_timestamp_seconds: Earliest
    latest_timestamp_seconds: Latest


class CohortVerdict(HeldVerdict, total=False):
    """Verdict against one opponent, by cohorts of prediction time."""

    changes: Required[Annotated[Count, about("Changes of the verdict")]]
    retracted: Required[Annotated[Count, about("Early verdicts that settled predictions did not confirm")]]
    verdict: Verdict
    evidence: CohortEvidence
    lead: Annotated[float, about("Mean lead over the judged cohorts since the verdict changed")]
    lower: Annotated[Lead, about("Its bounds, valid at all times; none before 20 cohorts")]
    upper: Lead
    dispersion: Dispersion
    e_value: Annotated[
        float,
        about(
            "Expected to be at most 1 at any time fixed in advance while the model has never been worse; "
            "lists of models that are worse are made of it"
        ),
    ]
    five_points_shown_after_seconds: Annotated[
        float,
        about(
            "Of an open verdict: about how long until it is held if the lead is .05 or −.05, at the recent "
            "rate of predictions"
        ),
    ]


class Headline(HeldVerdict, total=False):
    """Verdict of a model that is shown first, where verdicts by cohorts are kept."""

    basis: Required[
        Annotated[
            Literal["cohorts", "labels"],
            about(
                "labels: too few cohorts are judged, so it is the verdict on no change in the order of "
                "labels, and there is nothing else here"
            ),
        ]
    ]
    verdict: Annotated[
        Verdict, about("worse: than no change or the majority; better: than both; open: neither is shown")
    ]
    opponent: Annotated[
        Literal["persistent_at_prediction", "majority"], about("Opponent that the model is worse than")
    ]


class LowestAndHighest(TypedDict):
    """Lowest and highest share of a kind of settled outcomes that is labelled by the age."""

    lowest: Share
    highest: Share


class Cohorts(TypedDict, total=False):
    """Verdicts by cohorts of prediction time, about what the model is judged by (`utility` of the details).

    Of a model judged by the balanced utility, leads are by accuracy and there is no headline by cohorts: what
    an answer counts there depends on the labels before it.
    """

    provisional: Required[
        Annotated[bool, about("Too few cohorts are judged: there is only the verdict in the order of labels")]
    ]
    judged: Required[Count]
    waiting: Required[
        Annotated[Count, about("Cohorts whose predictions are younger than the age at which they are judged")]
    ]
    age_changes: Required[Count]
    left_out: Required[
        Annotated[
            Count,
            about(
                "Cohorts, and stretches of a 16th of the horizon in which delays are learned, with more than "
                "4.2 billion predictions: they tell nothing"
            ),
        ]
    ]
    opponents: Required[dict[str, CohortVerdict]]
    age_seconds: Annotated[float, about("Age at which the newest cohort will be judged")]
    age_rule: Annotated[
        Literal["settled", "complete", "horizon"],
        about(
            "settled: labels that come by the age are weighted by settled shares; complete: 99 % of all "
            "predictions are labelled by it; horizon: all labels are waited for"
        ),
    ]
    share_labelled: LowestAndHighest
    as_good_as_immediate: Annotated[bool, about("Whether 99 % of each kind of labels arrive within a minute")]


class PredictionClock(TypedDict, total=False):
    """Detectors that get outcomes in the order of their predictions."""

    detectors: Required[list[str]]
    waiting: Required[Annotated[Count, about("Outcomes held back until earlier predictions are settled")]]
    evaluated: Required[Annotated[Count, about("Outcomes that the detectors have seen")]]
    late: Required[Annotated[Count, about("Of these, seen after those of newer predictions")]]
    overflowed: Required[
        Annotated[
            Count, about("Of these, evaluated early, because monitors.max_unsettled outcomes were held back")
        ]
    ]
    settled_until_timestamp_seconds: Annotated[
        float, about("The newest prediction that the detectors have seen")
    ]


# Sampled labels.


Effective: TypeAlias = Annotated[Amount, about("(Σ 1/π)²/Σ 1/π², π the label_probability")]


class SampledAccuracy(TypedDict, total=False):
    """Accuracy of all predictions from sampled labels."""

    effective_labels: Required[Effective]
    value: Required[Annotated[Share, about("Of all predictions")]]
    lower: Annotated[
        Share, about("Bound that is valid at all times; from 200 × dispersion effective labels on")
    ]
    upper: Annotated[Share, about("Likewise")]
    dispersion: Dispersion


class SampledLead(TypedDict, total=False):
    """Lead over an opponent from sampled labels."""

    verdict: Required[Annotated[Verdict, about("Side of 0 on which the interval of the lead lies")]]
    effective_labels: Required[Effective]
    value: Annotated[Lead, about("Mean lead of all predictions")]
    lower: Lead
    upper: Lead
    dispersion: Dispersion


class SettledSample(TypedDict):
    """Predictions whose labels should all have arrived."""

    predictions: Count
    age_seconds: Annotated[Amount, about("Age from which predictions have all their labels")]
    labels_asked: Annotated[Amount, about("By label_requested, or the sum of label_probability")]
    labels_arrived: Count
    labels_missing: Annotated[Amount, about("labels_asked - labels_arrived, at least 0")]
    asked_is_known: Annotated[bool, about("Whether all predictions have label_requested")]


class SampledLabels(TypedDict, total=False):
    """Labels that are requested with a known probability (mapping.label_probability)."""

    predictions: Required[Annotated[Count, about("Predictions with a label_probability")]]
    predictions_without_probability: Required[
        Annotated[Count, about("Predictions without one, which are in no estimate")]
    ]
    share_without_probability: Required[
        Annotated[Share, about("Of all predictions since the first with one")]
    ]
    share_expected: Required[Annotated[Share, about("Mean label_probability")]]
    labels: Required[Annotated[Count, about("Labels, without labels_unasked")]]
    labels_unasked: Required[Annotated[Count, about("Labels of predictions whose label_requested is false")]]
    settled: Required[SettledSample]
    labels_missing: Required[
        Annotated[bool, about("Whether more are missing than chance explains, and more than 5 %")]
    ]
    probabilities_differ: Required[
        Annotated[
            bool,
            about("Whether labels arrive, or are requested, more or less often than the probabilities say"),
        ]
    ]
    leads: Required[dict[str, SampledLead]]
    accuracy: SampledAccuracy
    arrived_ratio: Annotated[Amount, about("labels_arrived / labels_asked")]
    since_timestamp_seconds: Annotated[float, about("Time of the first prediction in the estimates")]
    until_timestamp_seconds: float
    estimated_predictions: Count


# Predictions before their labels, and revised predictions.


Hint = TypedDict(
    "Hint",
    {
        "class": Annotated[str | None, about("null: the score of the predicted class")],
        "more": Annotated[bool, about("More of it than before, or a higher score")],
        "timestamp_seconds": Annotated[float, about("Record time of the hint")],
    },
)


class ExpectedStretch(TypedDict):
    """Stretch of successive predictions whose accuracy was expected by their scores."""

    start_timestamp_seconds: float
    end_timestamp_seconds: float
    predictions: Annotated[Count, about("With scores")]
    labelled: Annotated[Count, about("Predictions with scores whose label has arrived")]
    expected_accuracy: Annotated[Share | None, about("By scores, and labels of earlier predictions")]
    accuracy: Annotated[Share | None, about("By labels; null before 30 of them")]


class EarlyHints(TypedDict):
    """Comparison of recent predictions with a reference of earlier ones, before their labels arrive.

    Only in answers about one model, if monitors.early_hints is set.
    """

    predictions: Count
    reach: Annotated[int, Meta(ge=4096, description="Distance of the reference, in predictions")]
    hints: Count
    hint: Annotated[Hint | None, about("For `reach` predictions")]
    evidence: Annotated[Amount, about("From 0 (none) to 1 (a hint)")]
    shares_before: Annotated[
        dict[str, Share | None], about("Shares of the predicted classes in the reference")
    ]
    shares_now: dict[str, Share | None]
    score_before: Annotated[Share | None, about("Mean score of the predicted class in the reference")]
    score_now: Share | None
    expected_accuracy: Annotated[Share | None, about("Of the latest predictions, by scores")]
    expected_accuracy_error: Annotated[
        Share | None, about("Mean absolute error, over stretches half labelled")
    ]
    unchanged_accuracy_error: Annotated[
        Share | None, about("The same error for the accuracy of earlier labels as expectation")
    ]
    stretches: list[ExpectedStretch]


class Gain(TypedDict, total=False):
    """Accuracy of last predictions minus that of first ones."""

    value: Required[Annotated[Lead, about("last_accuracy - first_accuracy")]]
    effective_sample_size: Required[Amount]
    lower: Annotated[Lead, about("Interval of 95 % as of one look (Agresti, Min 2005)")]
    upper: Lead


class ByWaitingTime(TypedDict):
    """Accuracies by the time from the first prediction to the label, for intervals with outcomes."""

    over_seconds: list[Amount]
    up_to_seconds: list[Amount]
    weight: list[Amount]
    first_accuracy: list[Share]
    last_accuracy: list[Share]
    revised_ratio: list[Share]


class Revisions(TypedDict):
    """First and last predictions of ids, compared with their labels.

    Only in answers about one model, with join.conflicts: both.
    """

    outcomes: Annotated[Count, about("Outcomes since the estimate began, as are revised, gained and lost")]
    revised: Annotated[Count, about("Outcomes whose last prediction has another class than the first")]
    gained: Annotated[Count, about("Outcomes of which only the last prediction was right")]
    lost: Annotated[Count, about("Outcomes of which only the first prediction was right")]
    first_accuracy: Annotated[Share, about("Of first predictions, faded")]
    last_accuracy: Annotated[Share, about("Of last predictions, over the same outcomes")]
    revised_ratio: Annotated[Share, about("Share of outcomes revised, faded")]
    gain: Gain
    by_waiting_time: ByWaitingTime


class Details(Caveats, total=False):
    """Facts about a model besides its metrics."""

    classes: list[str]
    first_seen_timestamp_seconds: float
    classes_disjoint: ClassesDisjoint
    scores_as_classes: ScoresAsClasses
    nothing_joins: NothingJoins
    open_incidents: list[Incident]
    labels: Annotated[dict[str, str], about("Labels that models.rules of the settings give to the model")]
    runbook_url: Annotated[str, about("Page with instructions for the model, set by models.rules")]
    confusion: Confusion
    probabilities: Probabilities
    folds: Annotated[
        FoldAccuracies, about("Accuracy by forgetting and fold, of a model that predicts in folds")
    ]
    segments: dict[str, Segment]
    late_labels: LateLabels
    cohorts: Cohorts
    headline: Headline
    early_hints: EarlyHints
    label_delays: LabelDelays
    sampled_labels: SampledLabels
    revisions: Revisions
    recovery: Recovery
    prediction_clock: PredictionClock
    estimators_since_timestamp_seconds: Annotated[
        dict[str, float],
        about(
            "Record time at which estimators began anew after a change of settings, by name; of those that "
            "are as old as the model, none"
        ),
    ]
