"""Classifiers of river and MOA."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from streamwatch.papers.classification.ensembles import Classes, bagged
from streamwatch.papers.moa_runs import lines_of, refuse_without
from streamwatch.papers.result import Floats

# Classifiers with river: a support vector machine by stochastic gradient, bagged Hoeffding trees.


SHRINKAGE: Final = 1e-4
"""Regularisation λ of the support vector machine, MOA's default."""
MEMBERS: Final = 10
"""Number of trees in an ensemble, as in the paper."""


class RiverError(RuntimeError):
    """river is not installed."""


def refuse_without_river() -> None:
    """Check that river is installed.

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
    """Return the predictions of a linear support vector machine, trained by SGD of a constant rate, (n,)."""
    from river import linear_model, optim  # noqa: PLC0415 - what a user may have beside streamwatch

    machine = linear_model.LogisticRegression(
        optimizer=optim.SGD(rate), loss=optim.losses.Hinge(), l2=SHRINKAGE, intercept_lr=rate
    )
    return _answers(machine, x, true_class)


def bag_of_trees(x: Floats, true_class: Classes, rng: np.random.Generator) -> Classes:
    """Return the predictions of bagged Hoeffding trees of river, each watched by river's ADWIN, (n,)."""
    return bagged(x, true_class, _Tree, _Adwin, MEMBERS, rng)


def rivers_bag(x: Floats, true_class: Classes, rng: np.random.Generator) -> Classes:
    """Return the predictions of river's own bagging with ADWIN, which watches hits, not errors; (n,)."""
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
    """Hoeffding tree at river's defaults, equal to MOA's: grace period 200, δ = 1e-7, adaptive leaves."""

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
    """ADWIN of river at its defaults, equal to MOA's."""

    def __init__(self) -> None:
        from river import drift  # noqa: PLC0415 - the same

        self._adwin: Any = drift.ADWIN()

    @property
    def estimate(self) -> float:
        return float(self._adwin.estimation)

    def took(self, loss: int) -> bool:
        self._adwin.update(loss)
        return bool(self._adwin.drift_detected)


# Classifiers of MOA, the paper's software, run by Java if a folder with MOA's jar files is given.


MOA_CLASSIFIERS: Final = Path(__file__).parent / "MoaClassifiers.java"
"""Program that reads instances and writes the predictions of MOA's classifiers."""
COMMANDS: Final[dict[str, str]] = {
    "NB": "bayes.NaiveBayes",
    "SGD": "functions.SGD -r 0.01",
    "DWM": "meta.DynamicWeightedMajority",
    "OZAB": "meta.OzaBagAdwin",
    "NN100": "lazy.kNN -k 1 -w 100",
}
"""MOA's command lines by name in the paper; nearest neighbours in longer windows take too long."""


def answers_of(
    jars: Path, streams: Sequence[tuple[Floats, Classes]], names: Sequence[str] = tuple(COMMANDS)
) -> dict[str, list[Classes]]:
    """Return the predictions of MOA's classifiers, each before the instance is learned.

    Parameters
    ----------
    jars
        Folder with MOA's jar files.
    streams
        Attributes (n, d) and classes 0 and 1 (n,) of each; classifiers restart with each.
    names
        Names of classifiers in `COMMANDS`.

    Returns
    -------
    dict
        Predictions by classifier, (n,) for each stream.

    Raises
    ------
    MoaError
        If there is no MOA in the folder, or it cannot be run.
    """
    refuse_without(jars)
    dimensions = streams[0][0].shape[1]
    text = "\n\n".join("\n".join(_lines(x, true_class)) for x, true_class in streams)
    expected = sum(len(x) for x, _ in streams)
    commands = [COMMANDS[name] for name in names]
    lines = lines_of(jars, MOA_CLASSIFIERS, commands, f"{dimensions} 2\n{text}\n".encode(), expected)
    found = np.array([line.split(b";") for line in lines]).astype(np.int64)
    ends = np.cumsum([len(x) for x, _ in streams])[:-1]
    return {name: np.split(found[:, index], ends) for index, name in enumerate(names)}


def _lines(x: Floats, true_class: Classes) -> list[str]:
    return [
        f"{truth} {' '.join(map(repr, attributes))}"
        for attributes, truth in zip(x.tolist(), true_class.tolist(), strict=True)
    ]
