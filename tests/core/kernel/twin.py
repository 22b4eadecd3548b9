"""The slow twin: every estimator written down as its definition says, in plain Python, one model at a time.

Windows are suffixes of the whole history, so totals are recounted from it at every outcome. Nothing is shared
with the kernel but the specifications.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from streamwatch.core.kernel.detectors.ddm import DdmSpec
from streamwatch.core.specs import (
    AdwinDriftSpec,
    AdwinSpec,
    DriftWeightedSpec,
    FadingSpec,
    MonitorsSpec,
    PageHinkleySpec,
    SlidingSpec,
)
from tests.core.kernel.twin_drifts import (
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


MARKS = (
    "lost_twice",
    "known_repeats",
    "known_pairs",
    "corrected",
    "scored",
    "augmented",
    "augmented_n",
    "transition",
    "transition_n",
)
"""Totals that count marks of outcomes; those of shadow classifiers from `corrected` on."""


class TwinShadow:
    """Shadow classifiers that count the whole past again at every outcome, weighted by .999 per outcome."""

    def __init__(self, max_classes: int) -> None:
        self.max_classes = max_classes
        self.stopped = max_classes == 0
        self.classes = 0
        self.leaders: dict[tuple[int, ...], int] = {}

    def counts(self, chosen: np.ndarray, truth: np.ndarray, classes: int) -> np.ndarray:
        """Faded number of each label among the chosen outcomes of the past."""
        weights = powers(0.999)[MOST - len(truth) :]
        return np.bincount(truth[chosen], weights[chosen], minlength=classes)

    def lead(self, key: tuple[int, ...], first: int, counts: np.ndarray) -> int:
        """Most frequent class; at a tie the one that led before, at the very first the one given."""
        leader = self.leaders.get(key, first)
        if counts.max() > counts[leader] * (1 + 1e-12):
            leader = int(counts.argmax())
        self.leaders[key] = leader
        return leader

    def marks(self, truth: np.ndarray, predicted: np.ndarray, scores: dict[int, float]) -> dict[str, int]:
        """Marks of the last outcome; `truth` and `predicted` are of all outcomes so far."""
        self.classes = max(self.classes, 1 + max([truth[-1], predicted[-1], *scores]))
        classes = self.classes
        self.stopped |= classes > self.max_classes
        if self.stopped or len(truth) == 1:
            return {}
        y, y_hat, last = int(truth[-1]), int(predicted[-1]), int(truth[-2])
        past, past_predicted = truth[:-1], predicted[:-1]
        after_last = np.append(False, past[:-1] == last)
        transition = self.counts(after_last, past, classes)
        augmented = self.counts(after_last & (past_predicted == y_hat), past, classes)
        found = {
            "transition": int(self.lead((last,), last, transition) == y),
            "transition_n": 1,
            "augmented": int(self.lead((y_hat, last), y_hat, augmented) == y),
            "augmented_n": 1,
        }
        if scores:
            prior = self.counts(past >= 0, past, classes)
            gains = {i: s * (transition[i] + 1) / (prior[i] + 1) for i, s in scores.items()}
            best = max(gains.values())
            tied = [i for i, gain in gains.items() if gain == best]
            choice = y_hat if best == 0 or y_hat in tied else min(tied)
            found |= {"scored": 1, "corrected": int(choice == y)}
        return found


class Twin:
    """One model."""

    def __init__(self, spec: MonitorsSpec, reference: Twin | None = None) -> None:
        self.spec = spec
        self.outcomes = 0
        self.history = np.full((2, MOST + 1), -1)
        """Labels and predictions of outcomes 1, 2, …; no label before the first."""
        self.marks = np.zeros((len(MARKS), MOST + 1))
        self.shadow = TwinShadow(spec.shadow_max_classes)
        self.alarms: list[TwinAlarm] = []
        self.windows: dict[tuple[float, int, int], TwinAdwin] = {}
        for f in (*spec.forgetting, *spec.detectors):
            if isinstance(f, (AdwinSpec, AdwinDriftSpec)):
                self._window(f.delta, f.min_subwindow, f.clock)
        for w in spec.weighting:
            self._window(w.delta)
        self.others: dict[int, TwinPageHinkley | TwinDdm] = {}
        """Detectors without a window."""
        for i, d in enumerate(spec.detectors):
            if isinstance(d, PageHinkleySpec):
                self.others[i] = TwinPageHinkley(d)
            elif isinstance(d, DdmSpec):
                self.others[i] = TwinDdm(d)
        self.ordinals = [0] * len(spec.detectors)
        self.reference = reference or self
        self.labels = {w.delta: TwinLabels(w.delta) for w in spec.weighting if w.drift_signal == "labels"}
        self.weighting = [TwinWeighting(w) for w in spec.weighting]

    def _window(self, delta: float, min_subwindow: int = 5, clock: int = 32) -> TwinAdwin:
        key = (delta, min_subwindow, clock)
        return self.windows.setdefault(key, TwinAdwin(*key))

    def _mark(self, known: int, scores: dict[int, float]) -> None:
        """Marks of the outcome just added to the history."""
        history = self.history[:, 1 : self.outcomes + 1]
        missed = history[0] != history[1]
        marks = {
            "lost_twice": int(missed[-2:].sum() == 2),
            "known_repeats": int(known == history[0, -1]),
            "known_pairs": int(known >= 0),
        } | self.shadow.marks(*history, scores)
        self.marks[:, self.outcomes] = [marks.get(name, 0) for name in MARKS]

    def update(
        self, truth: int, predicted: int, known: int = -1, scores: dict[int, float] | None = None
    ) -> list[TwinAlarm]:
        self.outcomes += 1
        outcome = self.outcomes
        self.history[:, outcome] = truth, predicted
        self._mark(known, scores or {})
        miss = int(truth != predicted)
        for j, weighting in enumerate(self.weighting):
            if weighting.spec.drift_signal == "reference" and self.reference is not self:
                weighting.follow(self.reference.weighting[j].drifts)
            weighting.update(1 - miss)
        for window in self.windows.values():
            window.update(miss)
        declared = {delta for delta, labels in self.labels.items() if labels.update(truth)}
        for weighting in self.weighting:
            if self._restarts(weighting.spec, declared):
                weighting.restart()
        found = [alarm for i in range(len(self.spec.detectors)) if (alarm := self._alarm(i, miss))]
        self.alarms += found
        return found

    def _restarts(self, spec: DriftWeightedSpec, declared: set[float]) -> bool:
        """Whether a drift that counts was declared at this outcome."""
        if spec.drift_signal == "labels":
            return spec.delta in declared
        drift = self._window(spec.delta).drift
        mine = spec.drift_signal == "own" or self.reference is self
        return mine and drift is not None and drift[1] > drift[0]

    def _alarm(self, i: int, miss: int) -> TwinAlarm | None:
        """Feed a loss to a detector whose window has it already, if it has one."""
        detector = self.spec.detectors[i]
        if isinstance(detector, AdwinDriftSpec):
            window = self._window(detector.delta, detector.min_subwindow, detector.clock)
            if window.drift is None:
                return None
            way = "up" if window.drift[1] > window.drift[0] else "down"
            said = window.drift if detector.direction in (way, "both") else None
        else:
            said = self.others[i].update(miss)
        if said is None:
            return None
        self.ordinals[i] += 1
        return TwinAlarm(i, self.ordinals[i], self.outcomes, *self.detector(i), *said)

    def width(self, forgetting: int) -> int:
        """Outcomes that count under a mechanism."""
        f = self.spec.forgetting[forgetting]
        n = self.outcomes
        if isinstance(f, SlidingSpec):
            return min(n, f.size)
        if isinstance(f, AdwinSpec):
            return self._window(f.delta, f.min_subwindow, f.clock).width
        return n

    def totals(self, forgetting: int, classes: int) -> dict[str, np.ndarray | float]:
        """Agreement totals recounted from the history."""
        f = self.spec.forgetting[forgetting]
        width = self.width(forgetting)
        alpha = f.alpha if isinstance(f, FadingSpec) else 1.0
        weights = powers(alpha)[MOST - width :]
        window = slice(self.outcomes - width + 1, self.outcomes + 1)
        truth, predicted = self.history[:, window]
        previous = self.history[0, window.start - 1 : window.stop - 1]
        agreed = np.where(truth == predicted, weights, 0.0)

        def count(labels: np.ndarray, of: np.ndarray) -> np.ndarray:
            return np.bincount(labels, of, minlength=classes)

        return {
            "n": weights.sum(),
            "hits": agreed.sum(),
            "repeats": weights[truth == previous].sum(),
            "pairs": weights[previous >= 0].sum(),
            "n_eff": weights.sum() ** 2 / (weights**2).sum(),
            "truth": count(truth, weights),
            "predicted": count(predicted, weights),
            "agreed": count(truth, agreed),
            **self._marked(window, weights),
        }

    def _marked(self, window: slice, weights: np.ndarray) -> dict[str, float]:
        """Sums of the marks; nothing of shadow classifiers that stopped."""
        sums = dict(zip(MARKS, self.marks[:, window] @ weights, strict=True))
        if self.shadow.stopped:
            sums |= dict.fromkeys(MARKS[3:], 0.0)
        return sums

    def detector(self, index: int) -> tuple[float, float]:
        """(statistic, threshold) now."""
        spec = self.spec.detectors[index]
        if isinstance(spec, AdwinDriftSpec):
            return self._window(spec.delta, spec.min_subwindow, spec.clock).split
        return self.others[index].statistic, self.others[index].threshold

    def warned(self, index: int) -> bool:
        """Whether a detector warns now."""
        return index in self.others and self.others[index].warned
