"""Caveats of joined outcomes: silent mistakes, repeated predictions, and too few labels so far."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

import msgspec

from streamwatch.core.join.models import ModelActivity, joined_folds
from streamwatch.core.metrics.series import Family, Histogram, Layered, detail_at
from streamwatch.core.records.events import VERDICT, Alarm, Name, Outcome, Prediction, model_of
from streamwatch.core.specs import JoinSpec

# Caveats beside a verdict: only quick labels are in yet, missing labels count as a class.


@dataclass(frozen=True, slots=True)
class Caveats:
    """Caveats on all results of one model.

    Attributes
    ----------
    horizon_ends_ms
        Time at which the model's first prediction is one horizon old; None once that is past. Until then,
        labels with a delay longer than the time watched are missing: if errors are labelled sooner than hits,
        the model looks worse than it is; if later, better.
    predictions, labelled, waiting
        Predictions accepted so far, those that have met their label, and those that wait for it; 0 once
        `horizon_ends_ms` is None.
    watched_ms
        Milliseconds since the model's first prediction; 0 once `horizon_ends_ms` is None.
    assumed_class
        Class assumed as the label of a prediction that expires without one; None if it is discarded instead.
    """

    horizon_ends_ms: int | None = None
    assumed_class: str | None = None
    predictions: int = 0
    labelled: int = 0
    waiting: int = 0
    watched_ms: int = 0


def caveats(models: Mapping[str, ModelActivity], spec: JoinSpec, clock_ms: int) -> dict[str, Caveats]:
    """Return the caveats of each model that has any, by name."""
    found: dict[str, Caveats] = {}
    for name, activity in sorted(models.items()):
        ends_ms = activity.first_ms + spec.horizon_ms
        horizon_ends_ms = ends_ms if clock_ms < ends_ms else None
        if horizon_ends_ms is not None or spec.assume is not None:
            young = (activity.accepted, activity.joined, activity.pending, clock_ms - activity.first_ms)
            found[name] = Caveats(horizon_ends_ms, spec.assume, *(() if horizon_ends_ms is None else young))
    return found


def details_with_caveats(
    details: Mapping[str, Mapping[str, object]], found: Mapping[str, Caveats], families: Sequence[Family] = ()
) -> Mapping[str, Mapping[str, object]]:
    """Add caveats to the details that the API shows of models, including models without outcomes.

    Parameters
    ----------
    details
        Details by model, without caveats.
    found
        Caveats by model.
    families
        Series of the same report. Where its label delays show that labels are in (`labels_are_in`), the first
        horizon is no caveat.
    """

    @cache
    def in_time() -> frozenset[str]:
        return frozenset(_models_in_time(found, families))

    def change(model: str, shown: Mapping[str, object]) -> Mapping[str, object]:
        caveat = found.get(model, Caveats())
        return {
            **shown,
            **_fields(caveat, shown.get("confusion"), first_horizon=model not in in_time()),
        }

    return Layered(details, found, change)


def _models_in_time(found: Mapping[str, Caveats], families: Sequence[Family]) -> Iterator[str]:
    """Yield the models in their first horizon whose label delays show that labels are in."""
    delays = next((family for family in families if family.name == "label_delay_seconds"), None)
    if delays is None:
        return
    at = delays.labels.index("model")
    for values, value in delays.samples:
        caveat = found.get(values[at])
        if (
            caveat is not None
            and isinstance(value, Histogram)
            and labels_are_in(caveat, value, delays.bounds)
        ):
            yield values[at]


ENOUGH_LABELS: Final = 30
"""Fewest labels of a model from which its delays are judged."""
USUAL: Final = 0.99
"""Quantile of the delays so far that is called the usual delay."""
LONG: Final = 10
"""Multiple of the usual delay for which a model must have been watched."""
MOST_OVERDUE: Final = 0.05
"""Largest share of the predictions older than the usual delay that still wait: some labels never come."""


def labels_are_in(caveat: Caveats, delays: Histogram, bounds: Sequence[float]) -> bool:
    """Return whether hardly any prediction older than the usual delay still waits for its label.

    The delays of the labels received do not suffice to decide, since slow labels are missing among them; if
    many are, many predictions older than the usual delay still wait. False with fewer than `ENOUGH_LABELS`
    labels, if the usual delay is longer than the last bound, or if the model has been watched for less than
    `LONG` times the usual delay.

    Parameters
    ----------
    caveat
        Predictions of a model that has been watched for less than a horizon.
    delays
        Histogram of the delays of the model's labels so far, with cumulative counts.
    bounds
        Upper bounds of their buckets in seconds, without +Inf.
    """
    labels = delays.counts[-1]
    at = next((k for k, count in enumerate(delays.counts) if count >= USUAL * labels), len(bounds))
    if labels < ENOUGH_LABELS or at >= len(bounds):
        return False
    young = 1_000.0 * bounds[at] / max(1, caveat.watched_ms)
    if LONG * young > 1.0:
        return False
    overdue = caveat.waiting - young * caveat.predictions
    return overdue <= MOST_OVERDUE * (1.0 - young) * caveat.predictions


def _fields(caveat: Caveats, confusion: object, *, first_horizon: bool) -> dict[str, object]:
    fields: dict[str, object] = {}
    if caveat.horizon_ends_ms is not None and first_horizon:
        fields["first_horizon_ends_timestamp_seconds"] = caveat.horizon_ends_ms / 1000.0
        fields["first_horizon_predictions"] = caveat.predictions
        fields["first_horizon_labelled"] = caveat.labelled
        if (only := _only_label(confusion)) is not None:
            fields["first_horizon_only_label"] = only
    if caveat.assumed_class is not None:
        fields["labels_assumed_as"] = caveat.assumed_class
    return fields


def _only_label(confusion: object) -> str | None:
    """Find the one class that all labels are of, in a confusion matrix; None with several or without one."""
    classes, counts = detail_at(confusion, "classes"), detail_at(confusion, "counts")
    if not isinstance(classes, list | tuple) or not isinstance(counts, list | tuple):
        return None
    labelled = [str(name) for name, row in zip(classes, counts, strict=False) if any(row)]
    return labelled[0] if len(labelled) == 1 else None


# Detection of silent mistakes: predicted and true classes with nothing in common, scores taken for classes,
# predictions that never meet a label.
#
# A model that predicts 1 and 0 where labels are fraud and legit is wrong every time, and one whose ids are
# written differently from those of its labels is never evaluated: both look like results.


JUDGED_AFTER: Final = 100
"""Outcomes of a model before its classes are called disjoint."""
REMEMBERED: Final = 32
"""Most classes remembered of each side, predicted and true."""
SHOWN: Final = 5
"""Classes given as examples of each side."""
SCORES_FROM: Final = 20
"""Fewest different decimal fractions among a model's predicted classes for these to be taken for scores."""
_SCORES_SHARE: Final = 0.9
"""Smallest share of decimal fractions among the predicted classes remembered for the same."""
_FRACTION: Final = re.compile(r"-?\d+\.\d+(e-?\d+)?|-?\d+e-\d+")
"""A number that is not whole, as decoders write it."""


class ClassSets(msgspec.Struct, array_like=True, gc=False):
    """Predicted and true classes of one model, in order of appearance, until the model is settled."""

    outcomes: int = 0
    predicted_class: list[Name] = []
    true: list[Name] = []
    met: bool = False
    """Whether a class was both predicted and true."""

    @property
    def are_scores(self) -> bool:
        """Return whether the predicted classes are numbers of a continuous scale."""
        return are_scores(self.predicted_class)


class AgreementState(msgspec.Struct, frozen=True, array_like=True):
    """State of a `ClassAgreement`, in canonical order."""

    open: dict[Name, ClassSets] = {}
    settled: list[Name] = []


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Mistakes found in the records of one model; None for each that was not found.

    Attributes
    ----------
    model
        Its name.
    disjoint
        Some predicted and some true classes, if these have nothing in common.
    predictions
        Number of predictions, if none has met a label although the first is old enough (see `mismatches`).
    scores
        Some of the predicted classes, if they are scores rather than names.
    """

    model: str
    disjoint: tuple[Sequence[str], Sequence[str]] | None = None
    predictions: int | None = None
    scores: Sequence[str] | None = None


class ClassAgreement:
    """Record of the predicted and true classes of each model, and of whether they have any in common.

    Holds up to `max_models` models; others are ignored. A model is settled, and its classes are dropped, once
    a class was both predicted and true, and its predicted classes are no scores: none was a decimal fraction
    so far, or too few were after `JUDGED_AFTER` outcomes. It stays settled until it retires. Classes beyond
    the first `REMEMBERED` of a side are compared with the other side, but not remembered.
    """

    __slots__ = ("_maximum", "_open", "_settled", "_sorted")

    def __init__(self, max_models: int) -> None:
        self._maximum = max_models
        self._open: dict[str, ClassSets] = {}
        self._settled: set[str] = set()
        self._sorted: list[str] | None = None  # `_settled` as states have it; None once that has changed

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Record the classes of outcomes, in order; nearly free if all their models are settled."""
        settled = self._settled
        if settled.issuperset({outcome.model for outcome in outcomes}):
            return
        for outcome in outcomes:
            model = outcome.model
            if model in settled:
                continue
            sets = self._open.get(model)
            if sets is None:
                if len(self._open) + len(settled) >= self._maximum:
                    continue
                sets = self._open[model] = ClassSets()
            self._look(sets, outcome.predicted_class, outcome.true_class)
            if sets.met and self._is_no_score(sets):
                del self._open[model]
                settled.add(model)
                self._sorted = None

    @staticmethod
    def _look(sets: ClassSets, predicted_class: str, true: str) -> None:
        if predicted_class == true or predicted_class in sets.true or true in sets.predicted_class:
            sets.met = True
        sets.outcomes += 1
        for name, names in ((predicted_class, sets.predicted_class), (true, sets.true)):
            if name not in names and len(names) < REMEMBERED:
                names.append(name)

    @staticmethod
    def _is_no_score(sets: ClassSets) -> bool:
        if not any(map(_is_fraction, sets.predicted_class)):
            return True
        return sets.outcomes >= JUDGED_AFTER and not sets.are_scores

    def is_settled(self, model: str) -> bool:
        """Return whether the model is settled (see the class)."""
        return model in self._settled

    def forget(self, model: str) -> None:
        """Drop a model that retired; if it comes back, it is examined anew."""
        self._open.pop(model, None)
        self._settled.discard(model)
        self._sorted = None

    def disjoint(self) -> Mapping[str, ClassSets]:
        """Models with enough outcomes and no class in common, by name."""
        return {
            name: sets
            for name, sets in sorted(self._open.items())
            if sets.outcomes >= JUDGED_AFTER and not sets.met
        }

    def scores(self) -> Mapping[str, ClassSets]:
        """Models whose predicted classes are scores, by name."""
        return {name: sets for name, sets in sorted(self._open.items()) if sets.are_scores}

    def state(self) -> AgreementState:
        """State that `restore` continues from."""
        if self._sorted is None:
            self._sorted = sorted(self._settled)
        return AgreementState(dict(sorted(self._open.items())), self._sorted)

    def restore(self, state: AgreementState) -> None:
        """Continue from a `state`."""
        self._open = dict(state.open)
        self._settled = set(state.settled)
        self._sorted = None


def mismatches(
    agreement: ClassAgreement, models: Mapping[str, ModelActivity], since_ms: int
) -> list[Mismatch]:
    """List the mismatches of models, by name; models without one are left out.

    Parameters
    ----------
    agreement
        Classes of the models.
    models
        Activity of the models in the join.
    since_ms
        Models whose first prediction is not after this time are listed if none of their predictions met a
        label.
    """
    disjoint: dict[str, ClassSets] = {}
    for name, sets in agreement.disjoint().items():
        disjoint.setdefault(model_of(name), sets)  # one fold of several suffices
    scores = {model_of(name): sets.predicted_class[:SHOWN] for name, sets in agreement.scores().items()}
    unmatched = {
        name: activity.accepted
        for name, activity in joined_folds(models).items()
        if not activity.joined and activity.accepted and activity.first_ms <= since_ms
    }
    found: list[Mismatch] = []
    for name in sorted(disjoint.keys() | unmatched.keys() | scores.keys()):
        sets = disjoint.get(name)
        examples = None if sets is None else (sets.predicted_class[:SHOWN], sets.true[:SHOWN])
        found.append(Mismatch(name, examples, unmatched.get(name), scores.get(name)))
    return found


VERDICT_FAMILIES: Final = frozenset(
    {"verdict", "verdict_since_timestamp_seconds", "verdict_since_outcome", "cohort_headline"}
)
"""Names of the families that tell which verdict holds."""
COHORT_FAMILIES: Final = frozenset(
    {
        "cohort_verdict",
        "cohort_verdict_since_timestamp_seconds",
        "cohort_verdict_confirmed",
        "cohort_verdict_evidence",
        "cohort_lead",
        "cohort_lead_lower",
        "cohort_lead_upper",
    }
)
"""Names of the families of verdicts by cohorts."""


def families_without_verdicts(
    families: Sequence[Family], found: Sequence[Mismatch], unrepresentative: Collection[str] = ()
) -> list[Family]:
    """Remove the samples of verdicts on models that their outcomes do not represent.

    A model whose predicted and true classes have nothing in common is wrong every time because of its
    mapping. Predictions of `unrepresentative` models are not equally likely to get a label, so their outcomes
    are no fair sample; their verdicts by cohorts are removed too.
    """
    disjoint = {each.model for each in found if each.disjoint is not None}
    if not disjoint and not unrepresentative:
        return list(families)
    kept: list[Family] = []
    for family in families:
        withheld: set[str] = set()
        if family.name in VERDICT_FAMILIES:
            withheld = {*disjoint, *unrepresentative}
        elif family.name in COHORT_FAMILIES:
            withheld = {*unrepresentative}
        if withheld:
            at = family.labels.index("model")
            kept.append(replace(family, samples=[s for s in family.samples if s[0][at] not in withheld]))
        else:
            kept.append(family)
    return kept


def models_without_verdicts(found: Sequence[Mismatch], unrepresentative: Collection[str] = ()) -> set[str]:
    """Models on which verdicts are withheld."""
    return {each.model for each in found if each.disjoint is not None} | set(unrepresentative)


def alarms_without_verdicts(
    alarms: Sequence[Alarm], found: Sequence[Mismatch], unrepresentative: Collection[str] = ()
) -> list[Alarm]:
    """Remove the changes of verdicts on `models_without_verdicts`; alarms of detectors stay."""
    withheld = models_without_verdicts(found, unrepresentative)
    return [each for each in alarms if each.detector != VERDICT or model_of(each.model) not in withheld]


def details_with(
    details: Mapping[str, Mapping[str, object]],
    found: Sequence[Mismatch],
    unrepresentative: Collection[str] = (),
) -> Mapping[str, Mapping[str, object]]:
    """Add the mismatch of each model to the details that the API shows of it.

    The headline of `models_without_verdicts` is removed, so that no list of worse models names them.
    """
    by_model = {each.model: each for each in found}
    withheld = models_without_verdicts(found, unrepresentative)

    def change(model: str, shown: Mapping[str, object]) -> Mapping[str, object]:
        each = by_model.get(model)
        if each is None and model not in withheld:
            return shown
        document = dict(shown)
        if model in withheld:
            document.pop("headline", None)
        if each is None:
            return document
        if each.disjoint is not None:
            predicted_class, true = each.disjoint
            document["classes_disjoint"] = {"predicted_class": list(predicted_class), "true": list(true)}
        if each.predictions is not None:
            document["nothing_joins"] = {"predictions": each.predictions}
        if each.scores is not None:
            document["scores_as_classes"] = {"predicted_class": list(each.scores)}
        return document

    return Layered(details, by_model, change)


def are_scores(classes: Sequence[str], fewest: int = SCORES_FROM) -> bool:
    """Return whether different predicted classes are numbers of a continuous scale.

    Parameters
    ----------
    classes
        Some of the classes, each once.
    fewest
        Fewest decimal fractions among them.
    """
    return sum(map(_is_fraction, classes)) >= max(fewest, _SCORES_SHARE * len(classes))


def _is_fraction(name: str) -> bool:
    return _FRACTION.fullmatch(name) is not None


# Repeated predictions in a sample: an earlier prediction has the same id and model, and only one counts.
#
# A few are deliveries that were repeated. Many mean that two models share a name, or that ids are used again:
# estimates then look right and mean something else.


MANY: Final = 0.01
"""Share of the predictions above which repeated ones are reported, as by the alert PredictionsRepeated."""
FEWEST: Final = 3
"""Fewest repeated predictions of a sample that are reported."""
CAUSE: Final = (
    "two versions or deployments share one name, or ids are used again; with the same class it may be "
    "producers that deliver at least once"
)
CHANGE: Final = (
    "topics.predictions … mapping: {model: [path of the name, path of the version]} if a second field "
    "distinguishes them (streamwatch inspect finds it); otherwise an id for each prediction; if models "
    "revise their predictions, join: {conflicts: last} or {conflicts: both}"
)


@dataclass(frozen=True, slots=True)
class RepeatedModel:
    """Predictions of one model, how many of them repeat an id, and how many of these with another class."""

    model: str
    predictions: int
    repeated: int
    conflicts: int

    @property
    def summary(self) -> str:
        """Figures for a person, as a predicate that follows the name of the model."""
        classes = f"{self.conflicts:,} with another class" if self.conflicts else "all with the same class"
        share = f"{self.repeated / self.predictions:.1%}"
        return (
            f"repeats ids in {share} of its predictions ({self.repeated:,} of {self.predictions:,}, "
            f"{classes}): one of each id counts"
        )


@dataclass(slots=True)
class Repeats:
    """Counter of the repeated predictions of a sample, each compared with the first of its id and model."""

    _classes: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _predictions: Counter[str] = field(default_factory=Counter[str])
    _duplicates: Counter[str] = field(default_factory=Counter[str])
    _conflicts: Counter[str] = field(default_factory=Counter[str])

    def add(self, prediction: Prediction) -> None:
        """Count one prediction."""
        key, model = (prediction.id, prediction.model), prediction.model
        self._predictions[model] += 1
        if key not in self._classes:
            self._classes[key] = prediction.predicted_class
        elif self._classes[key] == prediction.predicted_class:
            self._duplicates[model] += 1
        else:
            self._conflicts[model] += 1

    def many(self, *, revised: bool = False) -> Sequence[RepeatedModel]:
        """Return the models with many repeated predictions, by name.

        If `revised`, repetitions with another class are not counted.
        """
        found: list[RepeatedModel] = []
        for model, count in sorted(self._predictions.items()):
            conflicts = 0 if revised else self._conflicts[model]
            repeated = self._duplicates[model] + conflicts
            if repeated >= FEWEST and repeated > MANY * count:
                found.append(RepeatedModel(model, count, repeated, conflicts))
        return found
