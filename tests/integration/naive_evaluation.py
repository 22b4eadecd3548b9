"""What must come out of records in a given order: an obvious join, and sums over whole lists.

Shares nothing with the package. Relies on what `elec2_stories` promises: only labels marked `too_late` come
after their prediction has expired, and at the end everything pending has.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tests.core.estimators.kernel.twin_drifts import TwinDependence
from tests.integration.elec2_stories import MODELS, Written


@dataclass
class Naive:
    """Counters by metric name without `_total`, and each model's outcomes (truth, predicted) in order."""

    counts: Counter[str] = field(default_factory=Counter[str])
    invalid: Counter[str] = field(default_factory=Counter[str])
    unusable: Counter[str] = field(default_factory=Counter[str])
    nulls: int = 0
    outcomes: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    delays_ms: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    pairs: dict[tuple[str, str], list[tuple[str, str, str, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """(truth, answers of both, time of the label) by the models in the order of `MODELS`."""
    predictions: dict[str, dict[str, Written]] = field(default_factory=lambda: defaultdict(dict))
    settled: dict[tuple[str, str], str] = field(default_factory=dict)
    """(id, model) → `withdrawn`, `late`, or the class it was resolved with."""
    bare: dict[str, Written] = field(default_factory=dict)
    """First label without a model, by id."""
    named: dict[tuple[str, str], Written] = field(default_factory=dict)
    """Label with a model that came before its prediction."""

    def consume(self, records: Iterable[Written]) -> None:
        for record in records:
            if record.broken is not None:
                self.invalid[record.broken] += 1
            elif record.cls is None:
                self.withdraw(record)
            elif record.side == "prediction":
                self.predict(record)
            else:
                self.label(record)
        self.counts["labels_orphaned"] += sum(name not in self.predictions for name in self.bare)
        self.counts["predictions_expired"] += sum(
            (name, model) not in self.settled for name, models in self.predictions.items() for model in models
        )

    def withdraw(self, record: Written) -> None:
        self.nulls += 1
        for model in self.predictions[record.id]:
            if (record.id, model) not in self.settled:
                self.settled[record.id, model] = "withdrawn"
                self.counts["predictions_withdrawn"] += 1

    def predict(self, record: Written) -> None:
        assert record.model is not None
        known = self.predictions[record.id].get(record.model)
        if known is not None:
            same = known.cls == record.cls
            self.counts["predictions_duplicate" if same else "predictions_conflict"] += 1
            return
        self.counts["predictions_accepted"] += 1
        self.predictions[record.id][record.model] = record
        waiting = self.named.pop((record.id, record.model), None) or self.bare.get(record.id)
        if waiting is None:
            return
        if (waiting.model is not None) or (len(self.predictions[record.id]) == 1):
            self.counts["labels_joined"] += 1
        self.resolve(record, waiting)

    def label(self, record: Written) -> None:
        self.counts["labels_accepted"] += 1
        if record.model is not None:
            prediction = self.predictions[record.id].get(record.model)
            if prediction is None:
                self.counts["labels_early"] += 1
                self.named[record.id, record.model] = record
            else:
                self.counts["labels_joined"] += 1
                self.resolve(prediction, record)
            return
        first = self.bare.get(record.id)
        if first is not None:
            same = first.cls == record.cls
            self.counts["labels_duplicate" if same else "labels_corrected"] += 1
            return
        predictions = self.predictions.get(record.id, {})
        settled = {self.settled.get((record.id, model)) for model in predictions}
        if record.too_late:
            self.counts["labels_late"] += 1
            return
        if settled == {"withdrawn"}:
            self.unusable["withdrawn"] += 1
            return
        self.bare[record.id] = record
        if not predictions:
            self.counts["labels_early"] += 1
            return
        self.counts["labels_joined"] += 1
        for prediction in predictions.values():
            self.resolve(prediction, record)

    def resolve(self, prediction: Written, label: Written) -> None:
        assert prediction.model is not None
        assert prediction.cls is not None
        assert label.cls is not None
        self.counts["predictions_resolved"] += 1
        for model, other in self.predictions[prediction.id].items():
            if self.settled.get((prediction.id, model)) != label.cls:
                continue  # itself, withdrawn, or yet to be resolved: all labels of a story are one
            self.counts["pairs_made"] += 1
            answers = {model: other.cls or "", prediction.model: prediction.cls}
            one, two = sorted(answers, key=MODELS.index)
            self.pairs[one, two].append((label.cls, answers[one], answers[two], label.timestamp_ms))
        self.settled[prediction.id, prediction.model] = label.cls
        self.outcomes[prediction.model].append((label.cls, prediction.cls))
        delay_ms = label.timestamp_ms - prediction.timestamp_ms
        self.counts["labels_negative_delay"] += delay_ms < 0
        self.delays_ms[prediction.model].append(max(0, delay_ms))


def measures(outcomes: list[tuple[str, str]], weights: np.ndarray) -> dict[str, float]:
    """Every measure of outcomes in order, weighted; an outcome of weight 0 is only a predecessor."""
    truth = np.array([y for y, _ in outcomes])
    predicted = np.array([p for _, p in outcomes])
    repeat = np.concatenate(([False], truth[1:] == truth[:-1]))
    paired = np.concatenate(([0.0], weights[1:]))
    n = weights.sum()
    classes = sorted(set(truth) | set(predicted))
    t = np.array([weights[truth == k].sum() for k in classes]) / n
    q = np.array([weights[predicted == k].sum() for k in classes]) / n
    agreed = np.array([weights[(truth == k) & (predicted == k)].sum() for k in classes]) / n
    p = agreed.sum()
    chance, majority, persistent = (t * q).sum(), t.max(), paired[repeat].sum() / paired.sum()
    recalls = agreed / t
    kappa, kappa_persistent = (p - chance) / (1 - chance), (p - persistent) / (1 - persistent)
    return {
        "accuracy_ratio": p,
        "kappa": kappa,
        "kappa_majority": (p - majority) / (1 - majority),
        "kappa_persistent": kappa_persistent,
        "kappa_plus": math.sqrt(max(0.0, kappa) * max(0.0, kappa_persistent)),
        "mcc": (p - chance) / math.sqrt((t * (1 - t)).sum() * (q * (1 - q)).sum()),
        "arithmetic_mean_recall_ratio": recalls.mean(),
        "geometric_mean_recall_ratio": math.exp(np.log(recalls).mean()),
        "harmonic_mean_recall_ratio": 1 / (1 / recalls).mean(),
        "macro_f1_ratio": (2 * agreed / (t + q)).mean(),
        "effective_sample_size": n**2 / (weights**2).sum(),
        "baseline majority": majority,
        "baseline persistent": persistent,
        "baseline random": chance,
        "baseline uninformed": 1 / len(classes),
        **{f"recall {k}": recalls[i] for i, k in enumerate(classes)},
    }


def page_hinkley_alarms(outcomes: list[tuple[str, str]]) -> int:
    """Alarms at the defaults: Gama, Sebastião, Rodrigues 2009, §3.4.1, with the sum clipped at 0.

    λ is multiplied by the dispersion of the losses.
    """
    dependence = TwinDependence()
    alarms = n = errors = 0
    statistic = 0.0
    for truth, predicted in outcomes:
        loss = int(truth != predicted)
        dependence.update(loss)
        n, errors = n + 1, errors + loss
        statistic = max(0.0, 0.9999 * statistic + loss - errors / n - 0.005)
        if statistic > 40.0 * dependence.dispersion and n >= 30:
            alarms += 1
            n = errors = 0
            statistic = 0.0
    return alarms
