"""Alarms on recorded classifiers: as recorded, without drift, and shuffled (Žliobaitė et al. 2015, §6.9)."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamwatch.lab.experiments.dependent_losses.corrections import redrawn, spacing, thinned
from streamwatch.lab.experiments.dependent_losses.proposition import correlation
from streamwatch.lab.experiments.detection.candidates import defaults, own_alarms
from streamwatch.lab.experiments.detection.streams import Losses
from streamwatch.lab.experiments.recordings import Classes, Recording
from streamwatch.lab.experiments.result import Cell, Effort, Table, over_runs

_ORDERS: Final[tuple[str, ...]] = ("as recorded", "order of labels kept", "shuffled")
_VERSIONS: Final[tuple[str, ...]] = ("ordered", "thinned", "redrawn")


def tables(recording: Recording, effort: Effort) -> tuple[Table, Table]:
    """Count alarms of every detector on the losses of every recorded classifier, in three orders of them.

    The second table has the correlations of those losses.
    """
    used = [name for name in recording.answers if name.endswith("@5")] or list(recording.answers)
    names = [spec.name for spec in defaults()]
    counts: dict[tuple[str, str], list[list[float]]] = {}
    correlations: dict[tuple[str, str], list[float]] = {}
    for name in used[: effort.size(len(used), 3)]:
        for r in range(effort.size(3, 1)):
            effort.said(f"recorded losses: {name}, {r + 1}")
            rng = effort.rng("recorded losses", name, r)
            for order, losses in _orders(recording.true_class, recording.answers[name], rng).items():
                for version, (seen, every) in _versions(losses, rng).items():
                    alarms = own_alarms(defaults(), seen[None, :])
                    rates = [1e4 * len(each[0]) / (every * len(seen)) for each in alarms]
                    counts.setdefault((order, version), []).append(rates)
                    correlations.setdefault((order, version), []).append(correlation(seen))
    keys = [(order, version) for order in _ORDERS for version in _VERSIONS]
    rows: list[tuple[Cell, ...]] = [
        (detector, *(over_runs([each[index] for each in counts[key]], 2) for key in keys))
        for index, detector in enumerate(names)
    ]
    alarms_found = Table(
        "Alarms in 10,000 outcomes on recorded losses (§6.9)",
        ("detector", *(f"{order}, {version}" for order, version in keys)),
        tuple(rows),
        "Mean over classifiers. Order of labels kept: answers are permuted among the outcomes of each "
        "class, as the paper permutes attributes, so the classifier's behaviour for a class no longer "
        "drifts, while labels still come in runs. Shuffled: everything is permuted, so every alarm is "
        "false. The paper does not count alarms: it says that DDM found no change in Elec2, neither with "
        "the order of labels kept nor shuffled. With correction, most of the alarms on the recorded stream "
        "disappear; which of the others are true is not known.",
    )
    related = Table(
        "Correlation of a recorded loss with the one before",
        ("order", *_VERSIONS),
        tuple(
            (order, *(over_runs(correlations[order, version], 3) for version in _VERSIONS))
            for order in _ORDERS
        ),
        "With the order of labels kept, little correlation remains. On Elec2, losses are correlated "
        "because attributes are; the runs of labels, which Proposition 8 is about, contribute little.",
    )
    return alarms_found, related


def _orders(truth: Classes, answers: Classes, rng: np.random.Generator) -> dict[str, Losses]:
    losses = truth != answers
    kept = losses.copy()
    for k in np.unique(truth):
        kept[truth == k] = rng.permutation(losses[truth == k])
    mixed = losses[rng.permutation(len(losses))]
    orders: tuple[Losses, ...] = (losses, kept, mixed)
    return dict(zip(_ORDERS, orders, strict=True))


def _versions(losses: Losses, rng: np.random.Generator) -> dict[str, tuple[Losses, int]]:
    every = spacing(losses)
    made = (losses, 1), (thinned(losses, every), every), (redrawn(losses, rng), 1)
    return dict(zip(_VERSIONS, made, strict=True))
