"""Types of the documents that the server sends; the OpenAPI document is generated from them (`openapi`).

Routes make the structs. A model's row of the overview, a comparison and `details` are dictionaries with the
keys given here, because they are assembled from series by name. Undefined values are absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Required, TypeAlias, TypedDict

from msgspec import UNSET, Meta, Struct, UnsetType

from streamwatch.core.alerting.notification import Severity
from streamwatch.core.estimators.catalogue import Listed
from streamwatch.core.estimators.registers.fleet import Verdict
from streamwatch.core.specs import UtilityKind
from streamwatch.edge.web.details import (
    Amount,
    Caveats,
    Count,
    Details,
    Earliest,
    ErrorChange,
    Latest,
    Lead,
    Number,
    Ordinal,
    Series,
    Share,
    Tree,
    about,
)

Published: TypeAlias = Annotated[
    float | None, Meta(description="Seconds since 1970; null before the first report")
]
Forgetting: TypeAlias = Annotated[str | None, Meta(description="Forgetting of the numbers")]
Trouble: TypeAlias = Literal["worse", "incident", "warning", "open", "better"]


# Every number of models.


class ModelDocument(Struct, frozen=True):
    """Metrics of a model, and its other facts."""

    metrics: Tree
    details: Details


class Models(Struct, frozen=True):
    """Every number of every model."""

    published_timestamp_seconds: Published
    models: dict[str, ModelDocument]
    stream: Tree


class Model(Struct, frozen=True):
    """Every number of one model."""

    published_timestamp_seconds: Published
    model: str
    metrics: Tree
    details: Details


class WorseModel(Struct, frozen=True):
    """A model that is worse than an opponent."""

    model: str
    opponent: Annotated[str, about("persistent_at_prediction or majority")]
    e_value: Annotated[float, about("Expected to be at most 1 while the model has never been worse")]
    verdict: Annotated[Verdict, about("The verdict by cohorts now, which may be another one")]
    since_timestamp_seconds: Annotated[
        float | UnsetType,
        about("Prediction time since which it is worse; absent where the verdict is another"),
    ] = UNSET
    earliest_timestamp_seconds: Earliest | UnsetType = UNSET
    latest_timestamp_seconds: Latest | UnsetType = UNSET


class Worse(Struct, frozen=True):
    """Models that are worse than no change or the majority, most evidence first."""

    published_timestamp_seconds: Published
    share: Annotated[Share, about("Largest expected share of pairs listed falsely, as asked for")]
    pairs: Annotated[Count, about("Pairs of a model and an opponent that are judged, listed or not")]
    rule: Annotated[str, about("Guarantee of the list")]
    worse: list[WorseModel]


# Alarms.


class Judgement(Struct, frozen=True):
    """Verdict of an alarm that is a change of verdict."""

    opponent: str
    verdict: Verdict
    since_outcome: Annotated[Ordinal, about("First outcome of the verdict; by cohorts approximate")]
    since_timestamp_seconds: Annotated[
        float, about("Event time of that outcome; by cohorts, a prediction time")
    ]
    quick_labels_only: Annotated[
        bool,
        about(
            "Whether the model had been watched for less than join.horizon, and delays did not show that "
            "hardly any label takes longer: slower labels may have been missing"
        ),
    ]
    basis: Annotated[
        Literal["cohorts", "labels"],
        about(
            "Cohorts of prediction time, or the order of labels. By cohorts, the model is worse than the "
            "opponent, better than no change and the majority, or neither"
        ),
    ]
    status: Annotated[
        Literal["early", "confirmed", "retracted", ""],
        about("By cohorts: early until all labels are in, then confirmed or retracted"),
    ]
    utility: Annotated[UtilityKind, about("Utility by which the model is judged")]
    earliest_timestamp_seconds: Earliest | UnsetType = UNSET
    latest_timestamp_seconds: Latest | UnsetType = UNSET


class Alarm(Struct, frozen=True, kw_only=True):
    """An alarm of a detector, or a change of verdict."""

    model: str
    detector: str
    ordinal: Ordinal
    outcome: Ordinal
    timestamp_seconds: Annotated[float, about("Event time of that outcome")]
    statistic: float | UnsetType = UNSET
    threshold: float | UnsetType = UNSET
    effective_sample_size: float | UnsetType = UNSET
    before: Annotated[float | UnsetType, about("Mean loss before the change; absent of a verdict")] = UNSET
    after: Annotated[float | UnsetType, about("Mean loss after it")] = UNSET
    judgement: Annotated[Judgement | UnsetType, about("Of a change of verdict; absent of a detector")] = UNSET
    predictions: Annotated[ErrorChange | UnsetType, about("Change of the error among predictions")] = UNSET
    predicted_timestamp_seconds: Annotated[
        float | UnsetType, about("Of a detector in prediction time: the prediction at which it alarmed")
    ] = UNSET


class Alarms(Struct, frozen=True):
    """Recent alarms, newest first."""

    published_timestamp_seconds: Published
    alarms: list[Alarm]


# The overview, and what is sent while it changes.


class Bounds(TypedDict, total=False):
    """Interval of the time since which a verdict holds, and bounds of the mean lead since it changed."""

    verdict_earliest_timestamp_seconds: Earliest
    verdict_latest_timestamp_seconds: Latest
    lead_lower: Annotated[
        Lead, about("The mean lead is at least this at any look, if losses do not depend on earlier ones")
    ]
    lead_upper: Annotated[
        Lead, about("The mean lead is at most this at any look, if losses do not depend on earlier ones")
    ]


class Row(Caveats, Bounds, total=False):
    """Row of a model in the overview."""

    verdict: Required[Annotated[Verdict, about("Verdict on the model, as `rule` explains")]]
    trouble: Required[
        Annotated[
            Trouble,
            about(
                "The first that holds: the verdict is worse, an incident is open, there is a warning, the "
                "verdict is open, or it is better"
            ),
        ]
    ]
    verdict_since_timestamp_seconds: Annotated[
        float, about("Event time since which it holds; a prediction time where verdict_opponent is present")
    ]
    verdict_opponent: Annotated[
        Literal["persistent_at_prediction", "majority"],
        about("Of a verdict by cohorts of prediction time: opponent that the lead is over"),
    ]
    verdict_utility: Annotated[
        Literal["balanced", "costs"],
        about("Utility by which the model is judged; absent for accuracy"),
    ]
    verdict_delays_moved_of: Annotated[
        Literal["errors", "hits", "errors and hits"],
        about("Kinds whose label delays have changed, on which an early verdict relies; absent without any"),
    ]
    verdict_status: Annotated[
        Literal["early", "confirmed"],
        about("Of a verdict by cohorts: whether predictions with all labels confirm it"),
    ]
    verdict_age_seconds: Annotated[
        Amount, about("Age at which predictions are judged, of a verdict by cohorts")
    ]
    verdict_provisional: Annotated[
        Number, about("1 while no cohort is judged yet: the verdict is in the order of labels")
    ]
    verdict_since_outcome: Annotated[Ordinal, about("Outcome since which it holds")]
    lead: Annotated[
        Lead, about("Mean utility of the model less that of no change, since the verdict last changed")
    ]
    outcomes: Number
    accuracy: Annotated[Share, about("Share of outcomes that the model predicted right")]
    lower: Annotated[Share, about("Hoeffding bound: the true accuracy is at least this")]
    upper: Annotated[Share, about("Hoeffding bound: the true accuracy is at most this")]
    effective_sample_size: Number
    no_change: Annotated[
        Share,
        about(
            "Accuracy of no change: predicting the last label known at the prediction where the verdict is "
            "by cohorts (`verdict_opponent` is there), else the previous label"
        ),
    ]
    majority: Annotated[Share, about("Accuracy of always guessing the most frequent class")]
    kappa_plus: Number
    alarms: Number
    last_alarm_timestamp_seconds: Number
    delay_median_seconds: Annotated[
        Amount, about("Estimated median delay of a label, anywhere in its bucket of `label_delay_seconds`")
    ]
    delay_p90_seconds: Annotated[Amount, about("Estimated delay that 90 % of labels do not exceed, likewise")]
    delay_median_within_seconds: Annotated[
        Amount, about("Delay that at least half of the labels do not exceed, the bound of a bucket")
    ]
    delay_p90_within_seconds: Annotated[Amount, about("The same of 90 % of the labels")]
    pending: Number
    joined: Annotated[Share, about("Share of predictions that have been matched with a label so far")]
    warning: Annotated[
        str, about("Error that no number shows: classes or ids that never agree, labels that stopped")
    ]
    warning_page: Annotated[str, about("Page of the documentation with the remedy of the first")]
    waiting: Annotated[str, about("Why a model that predicts has no outcome yet")]
    last_prediction_timestamp_seconds: Annotated[float, about("Event time of the latest prediction")]
    last_label_timestamp_seconds: Annotated[float, about("Event time of the latest label")]
    invalid: Annotated[Number, about("Records of the model that were invalid; absent without any")]
    incidents: Annotated[Ordinal, about("Open incidents; absent without any")]
    labels: Annotated[
        str,
        about("Labels that models.rules of the settings give: team=payments, tier=gold; absent without any"),
    ]
    incident_severity: Annotated[Severity, about("Of the latest")]
    incident_since_timestamp_seconds: Annotated[float, about("Event time of its beginning")]
    verdict_before: Annotated[Verdict, about("Before the last change, if that is among the recent alarms")]
    verdict_changed_timestamp_seconds: Annotated[
        float, about("Event time of the outcome at which the verdict changed")
    ]
    labels_sampled_ratio: Annotated[
        Share,
        about(
            "Mean probability with which labels are asked for; there only where predictions carry one. "
            "Accuracy, its bounds, verdict and lead are then from labels weighted by 1 / probability"
        ),
    ]
    labels_sampled_arrived_ratio: Annotated[
        Share, about("Share of the labels asked for that came; there only where labels are missing")
    ]
    labels_sampled_without_ratio: Annotated[
        Share,
        about("Share of predictions without a probability, which are in no estimate; absent without any"),
    ]


class Overview(Struct, frozen=True):
    """A row for every model, and the latest alarms."""

    published_timestamp_seconds: Published
    forgetting: Forgetting
    rule: Annotated[str, about("When a verdict is better, worse or open")]
    models: dict[str, Row]
    alarms: Annotated[list[Alarm], about("The latest, newest first")]


class News(Struct, frozen=True):
    """Notice of a report to listeners of the stream, who request numbers themselves."""

    published_timestamp_seconds: Published
    models: Annotated[Count, about("Number of known models")]
    alarms: Annotated[list[Alarm], about("Raised since the event before, newest first")]


# The page's list of models.


class Counts(Struct, frozen=True):
    """Numbers of models by verdict, with an incident, and with a warning."""

    models: Count
    better: Count
    open: Annotated[
        Count, about("Models that labels have matched, for which neither better nor worse is shown")
    ]
    worse: Count
    waiting: Annotated[Count, about("Models that no label has matched yet, which no other verdict counts")]
    incidents: Annotated[Count, about("Models with an open incident")]
    warnings: Annotated[Count, about("Models with a warning")]


class Warned(Struct, frozen=True):
    """A model with a warning."""

    model: str
    warning: str
    page: Annotated[str, about("Page of the documentation with the remedy")]


class Group(Struct, frozen=True):
    """Models whose names begin alike, counted by their most urgent trouble."""

    prefix: str
    models: Count
    worse: Count
    incident: Count
    warning: Count
    open: Count
    waiting: Annotated[Count, about("Models that no label has matched yet, and without trouble")]
    better: Count


class Line(TypedDict):
    """Shares at each timestamp, rounded; null where undefined."""

    accuracy: list[float | None]
    no_change: list[float | None]
    majority: list[float | None]


class Lines(Struct, frozen=True):
    """Lines of the listed models over the last hours, as kept in memory since the start."""

    timestamps: list[float]
    models: dict[str, Line]


class Listing(Struct, frozen=True, kw_only=True):
    """Models that match a query, in its order."""

    published_timestamp_seconds: Published
    forgetting: Forgetting
    counts: Annotated[Counts, about("Of all models, whether or not they match")]
    warned: Annotated[list[Warned], about("The first models with a warning, by name")]
    found: Annotated[Count, about("Models that match")]
    first: Annotated[Count, about("Index of the first row among the models that match")]
    names: Annotated[list[str], about("Order of the rows")]
    rows: dict[str, Row]
    groups: list[Group] | UnsetType = UNSET
    lines: Lines | UnsetType = UNSET


# Comparisons of models on the same ids.


class LabelOrder(TypedDict, total=False):
    """Verdict on a challenger in the order of labels, besides the one by cohorts."""

    verdict: Required[Verdict]
    evidence: Required[dict[str, Amount]]
    verdict_since_timestamp_seconds: float
    verdict_since_pair: Ordinal
    lead: Lead
    lead_lower: Lead
    lead_upper: Lead
    lead_dispersion: Number


class Comparison(Bounds, total=False):
    """Comparison of a challenger with its champion."""

    champion: Required[str]
    challenger: Required[str]
    pairs: Required[Annotated[Number, about("Ids whose label was matched with predictions of both")]]
    last_pair_timestamp_seconds: Required[float]
    basis: Required[
        Annotated[
            Literal["cohorts", "labels"],
            about(
                "What verdict, evidence and lead are from: cohorts of prediction time, or the order of labels"
            ),
        ]
    ]
    provisional: Annotated[
        bool, about("Present, and true, until there is a verdict by cohorts, where there will be one")
    ]
    labels: Annotated[LabelOrder, about("The same in the order of labels, beside a verdict by cohorts")]
    status: Annotated[
        Literal["early", "confirmed"],
        about("Of a verdict by cohorts that is held: early until all labels of its predictions are in"),
    ]
    retracted: Annotated[Number, about("Early verdicts that settled predictions did not confirm")]
    age_seconds: Annotated[Number, about("Age at which predictions are judged, by cohorts")]
    verdict: Required[Annotated[Verdict, about("Verdict on the challenger, as `rule` explains")]]
    evidence: Required[
        Annotated[
            dict[str, Amount], about("For better and for worse, from 0 to 1; a verdict at 1 resets it to 0")
        ]
    ]
    measures: Required[
        Annotated[
            dict[str, Tree],
            about(
                "By forgetting: q, mcnemar, mcnemar_calibrated, errors, pairs that one model alone got "
                "right. All of them describe; the verdict decides"
            ),
        ]
    ]
    verdict_since_timestamp_seconds: Annotated[
        float, about("Event time since which it holds; by cohorts, a prediction time")
    ]
    verdict_since_pair: Annotated[Ordinal, about("Pair since which it holds")]
    lead: Annotated[
        Lead,
        about("Mean utility of the challenger less the champion's, since the verdict last changed"),
    ]
    lead_dispersion: Number


class Comparisons(Struct, frozen=True):
    """Every comparison of two models."""

    published_timestamp_seconds: Published
    forgetting: Forgetting
    rule: Annotated[str, about("When a verdict is better, worse or open")]
    comparisons: Annotated[list[Comparison], about("Sorted by champion, then by lead, the largest first")]


class ComparisonVerdict(Struct, frozen=True):
    """One comparison of two models."""

    published_timestamp_seconds: Published
    rule: Annotated[str, about("When a verdict is better, worse or open")]
    comparison: Comparison


class ComparedPoints(TypedDict):
    """Q and the mean lead at each timestamp; null where undefined."""

    q: list[float | None]
    lead: list[float | None]


class ComparisonHistory(Struct, frozen=True):
    """The recent past of a champion's comparisons."""

    champion: str
    forgetting: Forgetting
    timestamps: list[float]
    challengers: dict[str, ComparedPoints]


# Models that predict in folds.


class FoldSpread(TypedDict, total=False):
    """Accuracy of a model over its folds."""

    folds: Required[Count]
    mean: Annotated[Share, about("Mean accuracy over the folds")]
    deviation: Annotated[Amount, about("Standard deviation, of n - 1")]


class SignTest(TypedDict, total=False):
    """Sign test of two models over their folds."""

    wins: Required[int]
    losses: Required[int]
    p: Annotated[Share, about("Two-sided, exact")]


class WilcoxonTest(TypedDict, total=False):
    """Wilcoxon's signed-rank test of two models over their folds."""

    positive: Required[float]
    negative: Required[float]
    p: Annotated[Share, about("Two-sided, exact, ties included")]


class FoldPair(TypedDict):
    """Two models compared over the folds that both have."""

    first: str
    second: str
    folds: Annotated[int, Meta(ge=2, description="Folds that both have")]
    difference: Annotated[Lead, about("Mean accuracy of the first less that of the second")]
    sign: SignTest
    wilcoxon: WilcoxonTest


class FoldRanks(TypedDict, total=False):
    """Three or more models compared by their ranks over folds."""

    folds: Required[Annotated[int, Meta(ge=2, description="Folds that all models have")]]
    mean_ranks: Required[dict[str, Annotated[float, Meta(ge=1)]]]
    alpha: Required[Annotated[Share, about("Level of the critical difference")]]
    critical_difference: Required[Annotated[Amount, about("Nemenyi's")]]
    diagram: Required[Annotated[str, about("SVG of the ranks")]]
    statistic: Annotated[float, about("Friedman's, corrected for ties")]
    p: Annotated[Share, about("Of Friedman's test")]


class Folds(Struct, frozen=True, kw_only=True):
    """Models that predict in folds, compared over them."""

    published_timestamp_seconds: Published
    forgetting: Forgetting
    mechanisms: list[str]
    accuracies: Annotated[Mapping[str, Mapping[str, Share]], about("Accuracy by model and fold")]
    models: dict[str, FoldSpread]
    pairs: list[FoldPair]
    ranks: FoldRanks | None
    left_out: Annotated[Count, about("Models not compared")]


# The past of models and of comparisons.


class History(Struct, frozen=True):
    """The recent past of a model."""

    model: str
    forgetting: Forgetting
    timestamps: list[float]
    series: Series


class Past(Struct, frozen=True):
    """The past of a model as the state keeps it: one entry for each stretch of time."""

    model: str
    days: Count
    starts: Annotated[list[int], about("Event times")]
    seconds: list[Literal[60, 600, 3600]]
    outcomes: list[Ordinal]
    hits: list[Count]
    accuracy: Annotated[list[Share], about("Of the stretch alone")]
    persistent: Annotated[list[float | None], about("No change; null for models in several folds")]


# The daemon itself.


class Health(Struct, frozen=True):
    """State of the daemon itself."""

    ready: bool
    reasons: list[str]
    published_timestamp_seconds: Published
    stream: Tree


class Route(Struct, frozen=True):
    """A route, and a description of one line."""

    path: str
    summary: str


class Index(Struct, frozen=True):
    """Every route."""

    title: str
    version: str
    openapi: str
    docs: str
    routes: list[Route]


class Alive(Struct, frozen=True):
    """Answer while the event loop runs."""

    status: Literal["alive"]


class Ready(Struct, frozen=True, omit_defaults=True):
    """Readiness of the daemon, and the reasons against it."""

    ready: bool
    reasons: list[str]
    role: Annotated[
        str | None, about("Role of this process among several replicas; absent without others")
    ] = None


class Error(Struct, frozen=True):
    """Refusal of a request, with its reason."""

    error: str
    status: int


SENT: tuple[type, ...] = (
    *(Overview, Listing, News, Models, Model, Worse, Alarms, Comparisons, ComparisonVerdict),
    *(ComparisonHistory, Folds, History, Past),
    *(Listed, Health, Index, Alive, Ready, Error),
)
"""Types of the documents that routes send."""
