"""Estimates from sampled labels prediction by prediction, from their definition: no sums, no buckets kept.

Every prediction is one entry of a list. What is computed: Z = g + 1[label](v − g)/(π·ρ), its mean over the
newest settled predictions, and the interval of an asymptotic confidence sequence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from streamwatch.core.records.events import Outcome, Prediction

# Bins of the score of the predicted class: least score, expected error.
BINS = [
    (0.0, 0.8),
    (0.35, 0.57),
    (0.5, 0.425),
    (0.65, 0.275),
    (0.8, 0.15),
    (0.9, 0.07),
    (0.96, 0.025),
    (0.99, 0.005),
]
RANGES = {"loss": (0.0, 1.0), "persistent_at_prediction": (-1.0, 1.0), "majority": (-1.0, 1.0)}
GRIDS = {"loss": (0.0, 1.0), "persistent_at_prediction": (-1, 0, 1), "majority": (-1, 0, 1)}


@dataclass
class One:
    """A prediction with a probability, and its label if it came and counts."""

    made_ms: int
    probability: float
    asked: bool | None
    expected_error: float | None
    delay_ms: int | None = None
    values: dict[str, float] = field(default_factory=dict)


@dataclass
class Found:
    value: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    labels: float = 0.0


def expected_error(event: Prediction) -> float | None:
    if not event.scores or event.predicted_class not in event.scores:
        return None
    score = event.scores[event.predicted_class] / sum(event.scores.values())
    return [error for least, error in BINS if score >= least][-1]


class Plain:
    """One model."""

    def __init__(self, horizon_ms: int, delta: float) -> None:
        self.horizon_ms, self.delta = horizon_ms, delta
        self.width_ms = math.ceil(horizon_ms / 16)
        self.ones: list[One] = []
        self.by_id: dict[str, One] = {}
        self.without = 0
        self.unasked = 0
        self.clock_ms = 0
        self.labels = 0
        self.weights: dict[str, float] = {}
        self.leader = ""
        self.majorities: list[tuple[int, str]] = []

    def predict(self, event: Prediction) -> None:
        if event.label_probability is None:
            if self.ones:
                self.without += 1
                self.clock_ms = max(self.clock_ms, event.record_ms)
            return
        self.clock_ms = max(self.clock_ms, event.record_ms)
        one = One(event.record_ms, event.label_probability, event.label_requested, expected_error(event))
        self.ones.append(one)
        self.by_id[event.id] = one

    def label(self, name: str, outcome: Outcome) -> None:
        if outcome.label_probability is None or outcome.assumed:
            return
        self.clock_ms = max(self.clock_ms, outcome.resolved_ms)
        if outcome.label_requested is False:
            self.unasked += 1
            return
        one = self.by_id[name]
        self.note(outcome.resolved_ms)
        hit = outcome.true_class == outcome.predicted_class
        one.delay_ms = outcome.waited_ms
        one.values["loss"] = 0.0 if hit else 1.0
        majority = None
        for at_ms, leader in self.majorities:
            if at_ms <= one.made_ms:
                majority = leader
        answers = {"persistent_at_prediction": outcome.label_at_prediction, "majority": majority}
        for opponent, answer in answers.items():
            if answer is not None:
                one.values[opponent] = float(hit) - float(answer == outcome.true_class)
        self.labels += 1
        self.weights = {each: weight * 0.999 for each, weight in self.weights.items()}
        weight = self.weights.get(outcome.true_class, 0.0) + 1.0 / outcome.label_probability
        self.weights[outcome.true_class] = weight
        if not self.leader or weight > self.weights[self.leader]:
            self.leader = outcome.true_class

    def note(self, now_ms: int) -> None:
        """Note the class with most weight among the labels so far; labels come in the order of the clock."""
        if self.labels < 100:
            return
        if self.majorities:
            before_ms, before = self.majorities[-1]
            if before == self.leader or now_ms < before_ms + self.horizon_ms / 32:
                return
        self.majorities.append((now_ms, self.leader))

    def bucket(self, one: One) -> int:
        return one.made_ms // self.width_ms

    def kept(self) -> list[One]:
        newest = max(map(self.bucket, self.ones))
        return [one for one in self.ones if self.bucket(one) > newest - 48]

    def age(self, kept: Sequence[One]) -> tuple[float, float]:
        for k in range(9):
            age = max(1, self.horizon_ms // 2 ** (8 - k))
            if age == self.horizon_ms:
                break
            old = [
                one
                for one in kept
                if (self.bucket(one) + 1) * self.width_ms + self.horizon_ms <= self.clock_ms
            ]
            lived = [one for one in kept if (self.bucket(one) + 1) * self.width_ms + age <= self.clock_ms]
            came = [one for one in old if one.delay_ms is not None]
            ways = [(len(came), sum(one.delay_ms <= age for one in came))]
            if all(one.asked is not None for one in lived):
                early = [one for one in lived if one.delay_ms is not None and one.delay_ms <= age]
                ways.append((sum(one.asked is True for one in lived), len(early)))
            for labels, early in ways:
                missing = max(0, labels - early)
                bound = missing + 2.5 * math.sqrt(missing) + 3
                if labels and bound / labels <= 0.01:
                    return age, bound / labels
        return self.horizon_ms, 0.0

    def settled(self) -> tuple[list[One], float, float]:
        kept = self.kept()
        age, late = self.age(kept)
        ends = [(self.bucket(one) + 1) * self.width_ms + age for one in kept]
        return [one for one, end in zip(kept, ends, strict=True) if end <= self.clock_ms], age, late

    def guess(self, kept: Sequence[One], one_bucket: int, which: str, age: float, f: float | None) -> float:
        """g of a prediction of a bucket: from labels whose bucket had the age when the bucket began."""
        scored = f is not None
        used = [
            other
            for other in kept
            if (self.bucket(other) + 1) * self.width_ms + math.ceil(age / self.width_ms) * self.width_ms
            <= one_bucket * self.width_ms
            and (other.expected_error is not None) == scored
        ]
        w = np.array([(1 / other.probability - 1) / other.probability for other in used])
        if not used or w.sum() <= 0:
            return 0.0
        v = np.array([other.values[which] for other in used])
        low, high = RANGES[which]
        if not scored:
            return float(np.clip(np.average(v, weights=w), low, high))
        x = np.array([other.expected_error for other in used])
        slope = 0.0
        positive = w > 0
        if len(set(x[positive].tolist())) > 1:
            slope = float(np.polyfit(x, v, 1, w=np.sqrt(w))[0])
        slope *= len(used) / (len(used) + 100)
        intercept = np.average(v, weights=w) - slope * np.average(x, weights=w)
        assert f is not None
        return float(np.clip(intercept + slope * f, low, high))

    def estimate(self, which: str) -> Found:
        settled, age, late = self.settled()
        buckets = sorted({self.bucket(one) for one in settled})
        chosen: list[int] = []
        for bucket in reversed(buckets):
            chosen.append(bucket)
            inverse = [
                1 / one.probability for one in settled if self.bucket(one) in chosen and "loss" in one.values
            ]
            if inverse and sum(inverse) ** 2 >= 2_000 * sum(x * x for x in inverse):
                break
        kept = [one for one in self.kept() if which in one.values]
        memory: dict[tuple[int, float | None], float] = {}
        for one in settled:
            key = self.bucket(one), one.expected_error
            if key not in memory:
                memory[key] = self.guess(kept, key[0], which, age, one.expected_error)
        g = np.array([memory[self.bucket(one), one.expected_error] for one in settled])
        inverse = np.array([1 / one.probability if which in one.values else 0.0 for one in settled])
        v = np.array([one.values.get(which, 0.0) for one in settled])
        where = np.array([self.bucket(one) for one in settled])
        window = np.isin(where, chosen)
        if not window.any() or inverse[window].sum() == 0:
            return Found()
        n = window.sum()
        rho = inverse[window].sum() / n
        z = g + inverse / rho * (v - g)
        value = float(z[window].mean())
        weights = inverse[window]
        labels = float(weights.sum() ** 2 / (weights**2).sum())
        if labels < 200 or len(buckets) < 9:
            return Found(value, labels=labels)
        # Linearised: ρ is estimated from the same labels.
        mean_g = g[window].mean()
        residual = ((v - g) * inverse)[window].sum() / inverse[window].sum()
        psi = (g - mean_g) + inverse / rho * (v - g - residual)
        assert abs(psi[window].sum()) < 1e-6 * n
        means = np.array([psi[where == bucket].mean() for bucket in buckets])
        variances = np.array(
            [(psi[where == bucket] ** 2).sum() / (where == bucket).sum() ** 2 for bucket in buckets]
        )
        dispersion = 1.0
        for length in (1, 4):
            groups = len(buckets) // length
            if groups - 1 >= 8:
                start = len(buckets) - groups * length
                m = [means[start + i * length : start + (i + 1) * length].mean() for i in range(groups)]
                e = [
                    variances[start + i * length : start + (i + 1) * length].sum() / length**2
                    for i in range(groups)
                ]
                squares = sum((m[i + 1] - m[i]) ** 2 for i in range(groups - 1))
                expected = sum(e[i + 1] + e[i] for i in range(groups - 1))
                if expected > 0:
                    dispersion = max(dispersion, squares / expected * (groups - 1) / (groups - 4))
        if labels / dispersion < 200:
            return Found(value, labels=labels)
        heaviest = 1 / min(one.probability for one in self.ones) / rho
        further = sum((heaviest * (each - value)) ** 2 for each in GRIDS[which])
        deviation = math.sqrt(dispersion * ((psi[window] ** 2).sum() + further)) / n
        t, rho2 = labels, 1 / 200
        width = (
            deviation
            * math.sqrt(t)
            * math.sqrt(2 * (t * rho2 + 1) / (t * t * rho2) * math.log(math.sqrt(t * rho2 + 1) / self.delta))
        )
        low, high = RANGES[which]
        width += late * (high - low)
        return Found(value, max(value - width, low), min(value + width, high), labels)
