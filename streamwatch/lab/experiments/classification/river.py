"""Parts of the paper's classifiers by river: a support vector machine by gradient, Hoeffding trees, ADWIN."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from streamwatch.lab.experiments.classification.bagging import bagged
from streamwatch.lab.experiments.classification.experts import Classes
from streamwatch.lab.experiments.result import Floats

SHRINKAGE: Final = 1e-4
"""λ of the support vector machine, MOA's default."""
MEMBERS: Final = 10
"""Trees in a bag, as in the paper."""


class RiverError(RuntimeError):
    """river is not installed; the message says so."""


def refuse_without() -> None:
    """Refuse to go on where there is no river.

    Raises
    ------
    RiverError
        If river is not installed.
    """
    if find_spec("river") is None:
        raise RiverError(
            "trees and gradients of this experiment are river's, which is not installed: pip install river"
        )


def support_vectors(x: Floats, true_class: Classes, rate: float) -> Classes:
    """Answers of a linear support vector machine by stochastic gradient with a constant rate, (n,)."""
    from river import linear_model, optim  # noqa: PLC0415 - what a user may have beside streamwatch

    machine = linear_model.LogisticRegression(
        optimizer=optim.SGD(rate), loss=optim.losses.Hinge(), l2=SHRINKAGE, intercept_lr=rate
    )
    return _answers(machine, x, true_class)


def bag_of_trees(x: Floats, true_class: Classes, rng: np.random.Generator) -> Classes:
    """Answers of a bag of river's Hoeffding trees, each watched by river's ADWIN, (n,)."""
    return bagged(x, true_class, _Tree, _Adwin, MEMBERS, rng)


def rivers_bag(x: Floats, true_class: Classes, rng: np.random.Generator) -> Classes:
    """Answers of river's own bag with ADWIN, which watches hits where the paper's watches errors; (n,)."""
    from river import ensemble, tree  # noqa: PLC0415 - the same

    seed = int(rng.integers(2**31))
    bag = ensemble.ADWINBaggingClassifier(tree.HoeffdingTreeClassifier(), n_models=MEMBERS, seed=seed)
    return _answers(bag, x, true_class)


def _answers(learner: Any, x: Floats, true_class: Classes) -> Classes:
    found = np.zeros(len(x), np.int64)
    for at, (attributes, truth) in enumerate(zip(x.tolist(), true_class.tolist(), strict=True)):
        named = dict(enumerate(attributes))
        found[at] = int(learner.predict_one(named) or 0)
        learner.learn_one(named, bool(truth))
    return found


class _Tree:
    """A Hoeffding tree at river's defaults, which are MOA's: a grace of 200, δ = 1e-7, adaptive leaves."""

    def __init__(self) -> None:
        from river import tree  # noqa: PLC0415 - the same

        self._tree: Any = tree.HoeffdingTreeClassifier()

    def share(self, x: list[float]) -> float:
        found: dict[bool, float] = self._tree.predict_proba_one(dict(enumerate(x)))
        total = sum(found.values())
        return found.get(True, 0.0) / total if total else 0.5

    def learn(self, x: list[float], true_class: int, weight: int) -> None:
        self._tree.learn_one(dict(enumerate(x)), bool(true_class), w=weight)


class _Adwin:
    """river's ADWIN at its defaults, which are MOA's."""

    def __init__(self) -> None:
        from river import drift  # noqa: PLC0415 - the same

        self._adwin: Any = drift.ADWIN()

    @property
    def estimate(self) -> float:
        return float(self._adwin.estimation)

    def took(self, loss: int) -> bool:
        self._adwin.update(loss)
        return bool(self._adwin.drift_detected)
