"""The slow twin: every estimator written down as its definition says, in plain Python, one model at a time.

Windows are suffixes of the whole history, so totals are recounted from it at every outcome. Nothing is shared
with the kernel but the specifications.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from streamwatch.core.estimators.detectors.ddm import DdmSpec
from streamwatch.core.specs import (
    AdwinDriftSpec,
    AdwinSpec,
    DriftWeightedSpec,
    FadingSpec,
    MonitorsSpec,
    PageHinkleySpec,
    SlidingSpec,
)
from tests.core.estimators.kernel.twin_detectors import TWINS
from tests.core.estimators.kernel.twin_drifts import (
    TwinAdwin,
    TwinAlarm,
    TwinDdm,
    TwinLabels,
    TwinPageHinkley,
    TwinWeighting,
)

MOST = 6_000
"""Outcomes a twin can hold."""


@cache
def powers(alpha: float) -> np.ndarray:
    """Weights of outcomes by age, the newest last."""
    return alpha ** np.arange(MOST - 1, -1, -1.0)


FLAGS = (
    "lost_twice",
    "label_at_prediction_repeats",
    "label_at_prediction_pairs",
    "corrected",
    "scored",
    "augmented",
    "augmented_n",
    "transition",
    "transition_n",
    "majority",
    "majority_n",
)
"""Totals that count marks of outcomes; those of shadow classifiers from `corrected` on."""


class TwinShadow:
    """Shadow classifiers that count the whole past again at every outcome, weighted by .999 per outcome."""

    def __init__(self, max_classes: int) -> None:
        self.max_classes = max_classes
        self.stopped = max_classes == 0
        self.classes = 0
        self.leaders: dict[tuple[int, ...], int] = {}
        self.answers: dict[str, int] = {}
        """To the last outcome, by classifier."""

    def counts(self, chosen: np.ndarray, true_class: np.ndarray, classes: int) -> np.ndarray:
        """Faded number of each label among the chosen outcomes of the past."""
        weights = powers(0.999)[MOST - len(true_class) :]
        return np.bincount(true_class[chosen], weights[chosen], minlength=classes)

    def lead(self, key: tuple[int, ...], first: int, counts: np.ndarray) -> int:
        """Most frequent class; at a tie the one that led before, at the very first the one given."""
        leader = self.leaders.get(key, first)
        if counts.max() > counts[leader] * (1 + 1e-12):
            leader = int(counts.argmax())
        self.leaders[key] = leader
        return leader

    def flags(
        self, true_class: np.ndarray, predicted_class: np.ndarray, scores: dict[int, float]
    ) -> dict[str, int]:
        """Marks of the last outcome; `true_class` and `predicted_class` are of all outcomes so far."""
        self.classes = max(self.classes, 1 + max([true_class[-1], predicted_class[-1], *scores]))
        classes = self.classes
        self.stopped |= classes > self.max_classes
        self.answers = {}
        if self.stopped or len(true_class) == 1:
            return {}
        y, y_hat, last = int(true_class[-1]), int(predicted_class[-1]), int(true_class[-2])
        past, past_predicted = true_class[:-1], predicted_class[:-1]
        after_last = np.append(False, past[:-1] == last)
        transition = self.counts(after_last, past, classes)
        augmented = self.counts(after_last & (past_predicted == y_hat), past, classes)
        self.answers["transition"] = self.lead((last,), last, transition)
        prior = self.counts(past >= 0, past, classes)
        found = {
            "transition": int(self.answers["transition"] == y),
            "transition_n": 1,
            "augmented": int(self.lead((y_hat, last), y_hat, augmented) == y),
            "augmented_n": 1,
            "majority": int(self.lead((), int(past[0]), prior) == y),
            "majority_n": 1,
        }
        if scores:
            gains = {i: s * (transition[i] + 1) / (prior[i] + 1) for i, s in scores.items()}
            best = max(gains.values())
            tied = [i for i, gain in gains.items() if gain == best]
            choice = y_hat if best == 0 or y_hat in tied else min(tied)
            self.answers["temporal_correction"] = choice
            found |= {"scored": 1, "corrected": int(choice == y)}
        return found


def window_of(spec: AdwinSpec | AdwinDriftSpec) -> tuple[float, int, int]:
    return spec.delta, spec.min_subwindow, spec.clock


class Twin:
    """One model."""

    def __init__(self, spec: MonitorsSpec, reference: Twin | None = None) -> None:
        self.spec = spec
        self.outcomes = 0
        self.history = np.full((2, MOST + 1), -1)
        """Labels and predictions of outcomes 1, 2, …; no label before the first."""
        self.flags = np.zeros((len(FLAGS), MOST + 1))
        self.shadow = TwinShadow(spec.shadow_max_classes)
        self.alarms: list[TwinAlarm] = []
        self.windows: dict[tuple[float, int, int, str], TwinAdwin] = {}
        for f in (*spec.forgetting, *spec.detectors):
            if isinstance(f, (AdwinSpec, AdwinDriftSpec)):
                self._window(*window_of(f), dependence=f.dependence)
        for w in spec.drift_weighted:
            self._window(w.delta, dependence=w.dependence)
        twins = {PageHinkleySpec: TwinPageHinkley, DdmSpec: TwinDdm, **TWINS}
        self.others = {
            i: twins[type(d)](d) for i, d in enumerate(spec.detectors) if not isinstance(d, AdwinDriftSpec)
        }
        """Detectors without a window."""
        self.ordinals = [0] * len(spec.detectors)
        self.reference = reference or self
        self.labels = {
            (w.delta, w.dependence): TwinLabels(w.delta, w.dependence)
            for w in spec.drift_weighted
            if w.drift_signal == "labels"
        }
        self.drift_weighted = [TwinWeighting(w) for w in spec.drift_weighted]

    def _window(self, delta: float, min_subwindow: int = 5, clock: int = 32, *, dependence: str) -> TwinAdwin:
        key = (delta, min_subwindow, clock, dependence)
        return self.windows.setdefault(key, TwinAdwin(*key))

    def _flag(self, label_at_prediction: int, scores: dict[int, float]) -> None:
        """Marks of the outcome just added to the history."""
        history = self.history[:, 1 : self.outcomes + 1]
        missed = history[0] != history[1]
        flags = {
            "lost_twice": int(missed[-2:].sum() == 2),
            "label_at_prediction_repeats": int(label_at_prediction == history[0, -1]),
            "label_at_prediction_pairs": int(label_at_prediction >= 0),
        } | self.shadow.flags(*history, scores)
        self.flags[:, self.outcomes] = [flags.get(name, 0) for name in FLAGS]

    def update(
        self,
        true_class: int,
        predicted_class: int,
        label_at_prediction: int = -1,
        scores: dict[int, float] | None = None,
    ) -> list[TwinAlarm]:
        self.outcomes += 1
        outcome = self.outcomes
        self.history[:, outcome] = true_class, predicted_class
        self._flag(label_at_prediction, scores or {})
        miss = int(true_class != predicted_class)
        for j, drift_weighted in enumerate(self.drift_weighted):
            if drift_weighted.spec.drift_signal == "reference" and self.reference is not self:
                drift_weighted.follow(self.reference.drift_weighted[j].drifts)
            drift_weighted.update(1 - miss)
        for window in self.windows.values():
            window.update(miss)
        declared = {of for of, labels in self.labels.items() if labels.update(true_class)}
        for drift_weighted in self.drift_weighted:
            if self._restarts(drift_weighted.spec, declared):
                drift_weighted.restart()
        found = [alarm for i in range(len(self.spec.detectors)) if (alarm := self._alarm(i, miss))]
        self.alarms += found
        return found

    def _restarts(self, spec: DriftWeightedSpec, declared: set[tuple[float, str]]) -> bool:
        """Whether a drift that counts was declared at this outcome."""
        if spec.drift_signal == "labels":
            return (spec.delta, spec.dependence) in declared
        drift = self._window(spec.delta, dependence=spec.dependence).drift
        mine = spec.drift_signal == "own" or self.reference is self
        return mine and drift is not None and drift[1] > drift[0]

    def _alarm(self, i: int, miss: int) -> TwinAlarm | None:
        """Feed a loss to a detector whose window has it already, if it has one."""
        detector = self.spec.detectors[i]
        if isinstance(detector, AdwinDriftSpec):
            window = self._window(*window_of(detector), dependence=detector.dependence)
            if window.drift is None:
                return None
            way = "up" if window.drift[1] > window.drift[0] else "down"
            drift = window.drift if detector.direction in (way, "both") else None
        else:
            drift = self.others[i].update(miss)
        if drift is None:
            return None
        self.ordinals[i] += 1
        return TwinAlarm(i, self.ordinals[i], self.outcomes, *self.detector(i), *drift)

    def width(self, forgetting: int) -> int:
        """Outcomes that count under a mechanism."""
        f = self.spec.forgetting[forgetting]
        n = self.outcomes
        if isinstance(f, SlidingSpec):
            return min(n, f.size)
        if isinstance(f, AdwinSpec):
            return self._window(*window_of(f), dependence=f.dependence).width
        return n

    def totals(self, forgetting: int, classes: int) -> dict[str, np.ndarray | float]:
        """Agreement totals recounted from the history."""
        f = self.spec.forgetting[forgetting]
        width = self.width(forgetting)
        alpha = f.alpha if isinstance(f, FadingSpec) else 1.0
        weights = powers(alpha)[MOST - width :]
        window = slice(self.outcomes - width + 1, self.outcomes + 1)
        true_class, predicted_class = self.history[:, window]
        previous = self.history[0, window.start - 1 : window.stop - 1]
        agreed = np.where(true_class == predicted_class, weights, 0.0)

        def count(labels: np.ndarray, of: np.ndarray) -> np.ndarray:
            return np.bincount(labels, of, minlength=classes)

        return {
            "n": weights.sum(),
            "hits": agreed.sum(),
            "repeats": weights[true_class == previous].sum(),
            "pairs": weights[previous >= 0].sum(),
            "n_eff": weights.sum() ** 2 / (weights**2).sum(),
            "true_class": count(true_class, weights),
            "predicted_class": count(predicted_class, weights),
            "agreed": count(true_class, agreed),
            **self._flagged(window, weights),
        }

    def _flagged(self, window: slice, weights: np.ndarray) -> dict[str, float]:
        """Sums of the marks; nothing of shadow classifiers that stopped."""
        sums = dict(zip(FLAGS, self.flags[:, window] @ weights, strict=True))
        if self.shadow.stopped:
            sums |= dict.fromkeys(FLAGS[3:], 0.0)
        return sums

    def detector(self, index: int) -> tuple[float, float]:
        """(statistic, threshold) now."""
        spec = self.spec.detectors[index]
        if isinstance(spec, AdwinDriftSpec):
            return self._window(*window_of(spec), dependence=spec.dependence).split
        return self.others[index].statistic, self.others[index].threshold

    def warned(self, index: int) -> bool:
        """Whether a detector warns now."""
        return index in self.others and self.others[index].warned
