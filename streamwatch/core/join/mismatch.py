"""Detection of silent mistakes: classes with nothing in common, scores as classes, labels never met.

A model that says 1 and 0 where labels say fraud and legit is wrong every time, and one whose ids are written
otherwise than those of its labels is never evaluated: both look like results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from streamwatch.core.events import Outcome
from streamwatch.core.fold_names import model_of
from streamwatch.core.join.models import ModelActivity, joined_folds

JUDGED_AFTER: Final = 100
"""Outcomes of a model before its classes are called disjoint."""
REMEMBERED: Final = 32
"""Classes remembered of each side."""
SHOWN: Final = 5
"""Classes given as examples of each side."""
SCORES_FROM: Final = 20
"""Predicted classes that are decimal fractions, all different, from which on they are taken for scores."""
_SCORES_SHARE: Final = 0.9
"""Share of them among the predicted classes that are remembered."""
_FRACTION: Final = re.compile(r"-?\d+\.\d+(e-?\d+)?|-?\d+e-\d+")
"""A number that is not whole, as decoders write it."""


class ClassSets(msgspec.Struct, array_like=True, gc=False):
    """Predicted and true classes of one model, in order of appearance, as long as none is in both."""

    outcomes: int = 0
    predicted_class: list[str] = []
    true: list[str] = []
    met: bool = False
    """A class was seen on both sides."""

    @property
    def are_scores(self) -> bool:
        """Tell whether the predicted classes are numbers of a continuous scale."""
        return are_scores(self.predicted_class)


class AgreementState(msgspec.Struct, frozen=True, array_like=True):
    """State of a `ClassAgreement`, in canonical order."""

    open: dict[str, ClassSets] = {}
    settled: list[str] = []


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Mismatch of one model, undefined parts empty.

    Attributes
    ----------
    model
        Its name.
    disjoint
        Predicted and true classes that have nothing in common, some of each; None if it is not so.
    predictions
        Predictions of which none has met a label, `early_horizon` after the first one; None if it is not so.
    """

    model: str
    disjoint: tuple[Sequence[str], Sequence[str]] | None = None
    predictions: int | None = None
    scores: Sequence[str] | None = None
    """Some of the predicted classes, if they are scores rather than names; None if they are not."""


class ClassAgreement:
    """Classes predicted and true of each model, and whether they have anything in common.

    Of up to `max_models` models; those beyond are not evaluated either. Once a class was seen on both sides,
    and no predicted class was a decimal fraction up to there, or too few of them are for scores after
    `JUDGED_AFTER` outcomes, a model is settled for the rest of its life. Of more than `REMEMBERED` classes on
    a side only one of those remembered, or an outcome that is right, can settle it.
    """

    __slots__ = ("_maximum", "_open", "_settled")

    def __init__(self, max_models: int) -> None:
        self._maximum = max_models
        self._open: dict[str, ClassSets] = {}
        self._settled: set[str] = set()

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Take in the classes of outcomes, in order; nearly free where all models are settled."""
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
        """Tell whether a class of the model was seen on both sides."""
        return model in self._settled

    def forget(self, model: str) -> None:
        """Drop a model that retired; if it comes back, it is examined anew."""
        self._open.pop(model, None)
        self._settled.discard(model)

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
        return AgreementState(dict(sorted(self._open.items())), sorted(self._settled))

    def restore(self, state: AgreementState) -> None:
        """Continue from a `state`."""
        self._open = dict(state.open)
        self._settled = set(state.settled)


def mismatches(
    agreement: ClassAgreement, models: Mapping[str, ModelActivity], since_ms: int
) -> list[Mismatch]:
    """List the mismatches of models, by name; models without one are left out.

    Parameters
    ----------
    agreement
        Classes of the models.
    models
        Their share of the join.
    since_ms
        A model that predicted before this clock, and none of whose predictions met a label, is told.
    """
    disjoint: dict[str, ClassSets] = {}
    for name, sets in agreement.disjoint().items():
        disjoint.setdefault(model_of(name), sets)  # of several folds, one tells what is wrong
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


def details_with(
    details: Mapping[str, Mapping[str, object]], found: Sequence[Mismatch]
) -> dict[str, dict[str, object]]:
    """Add the mismatch of each model to the details that the API shows of it."""
    shown = {model: dict(told) for model, told in details.items()}
    for each in found:
        told = shown.setdefault(each.model, {})
        if each.disjoint is not None:
            predicted_class, true = each.disjoint
            told["classes_disjoint"] = {"predicted_class": list(predicted_class), "true": list(true)}
        if each.predictions is not None:
            told["nothing_joins"] = {"predictions": each.predictions}
        if each.scores is not None:
            told["scores_as_classes"] = {"predicted_class": list(each.scores)}
    return shown


def are_scores(classes: Sequence[str], fewest: int = SCORES_FROM) -> bool:
    """Tell whether different predicted classes are numbers of a continuous scale.

    Parameters
    ----------
    classes
        Some of the classes, each once.
    fewest
        Decimal fractions that there have to be among them.
    """
    return sum(map(_is_fraction, classes)) >= max(fewest, _SCORES_SHARE * len(classes))


def _is_fraction(name: str) -> bool:
    return _FRACTION.fullmatch(name) is not None
