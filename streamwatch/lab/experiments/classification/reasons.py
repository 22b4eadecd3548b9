"""Why errors differ from the paper's: what it does not print, and what river does otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from streamwatch.lab.experiments.classification import river
from streamwatch.lab.experiments.classification.dynamic_weighted_majority import dynamic_weighted_majority
from streamwatch.lab.experiments.classification.experts import Classes, GaussianBayes
from streamwatch.lab.experiments.classification.printed import CLASSIFIERS, ERRORS
from streamwatch.lab.experiments.classification.tried import Tried
from streamwatch.lab.experiments.result import Cell, Effort, Floats, Table
from streamwatch.lab.streams.draws import Drawn

FEW: Final = 3
"""Streams drawn, at full size, for what takes milliseconds an instance."""
RATES: Final = (0.0001, 0.001, 0.01, 0.1)
PERIODS: Final = (10, 20, 50)
FIRST: Final = "naive Bayes, gradient, ensembles"
NEIGHBOURS: Final = "nearest neighbour in a window"
NOTES: Final = {
    FIRST: (
        "The prequential error as the daemon computes it, without forgetting. Means are over ten streams "
        "of 10,000 instances, as in the paper, except for OZAB and MOA (three). NB: Gaussian naive Bayes. "
        "SGD: river's linear support vector machine, learning rate .01, λ = .0001. DWM: Kolter and Maloof "
        "2007 over Gaussian naive Bayes, p = 50, β = .5, θ = .01. OZAB: ten of river's Hoeffding trees, "
        "each watched by river's ADWIN. MOA: version 2024.07, at its defaults except for that learning "
        "rate. NB and SGD have the printed errors. DWM has the error of MOA's present version; its period, "
        "which the paper does not print, explains most of the difference (see below). OZAB has the printed "
        "error in MOA, too; the difference here is due to river's trees and ADWIN."
    ),
    NEIGHBOURS: (
        "One neighbour among the instances in the window, whose length is in the name; attributes are "
        "divided by their range in the window, as in MOA. The paper prints neither, but with one neighbour "
        "and this scale, its errors are reproduced. Without the scale, NN100 errs less on NSGT-5D, where "
        "the most informative attribute has the widest range."
    ),
}

Pairs = Sequence[tuple[str, Sequence[Drawn]]]
"""Streams of the testbed by name, each with what was drawn of it."""


def unprinted(pairs: Pairs, effort: Effort) -> Table:
    """Try learning rates of SGD and periods of DWM, neither of which the paper prints."""
    rows: list[tuple[Cell, ...]] = []
    for name, drawn in pairs:
        some = drawn[: effort.size(FEW, 2)]
        effort.said(f"{name}: learning rates and periods")
        printed = dict(zip(CLASSIFIERS, ERRORS[name], strict=True))
        rows.append(
            (
                name,
                f"{printed['SGD']:.2f}",
                *(_of(some, _rated(rate)).percent() for rate in RATES),
                f"{printed['DWM']:.2f}",
                *(_of(some, _dated(period)).percent() for period in PERIODS),
            )
        )
    return Table(
        "Parameters that the paper does not print: learning rate of SGD, period of DWM",
        (
            "stream",
            "SGD, paper",
            *(f"rate {rate:g}" for rate in RATES),
            "DWM, paper",
            *(f"p = {period}" for period in PERIODS),
        ),
        tuple(rows),
        "Means over three streams. At a rate of .01, SGD has the printed error on every stream; at .0001, "
        "MOA's present default, it has hardly begun to learn. With a period of 20, DWM is close to the "
        "printed error where the classes move (NSGT, NSGT-I, NSGT-5D, NSCX); with 50, MOA's present "
        "default, it is well above. No period reproduces all nine.",
    )


def bags(pairs: Pairs, found: Mapping[str, Tried], effort: Effort) -> Table:
    """Set river's own bag with ADWIN beside one whose ADWINs watch errors.

    Parameters
    ----------
    pairs
        What was drawn.
    found
        By stream, what the bag that watches errors answered.
    effort
        Seed and size.
    """
    rows: list[tuple[Cell, ...]] = []
    for name, drawn in pairs:
        some = drawn[: effort.size(2, 2)]
        answers: list[Classes] = []
        for r, each in enumerate(some):
            effort.said(f"{name}: river's ADWINBaggingClassifier, stream {r + 1} of {len(some)}")
            answers.append(river.rivers_bag(each.x, each.true_class, effort.rng("river", name, r)))
        printed = dict(zip(CLASSIFIERS, ERRORS[name], strict=True))
        rows.append(
            (
                name,
                f"{printed['OZAB']:.2f}",
                found[name].percent(),
                Tried(some, answers).percent(),
            )
        )
    return Table(
        "OZAB: with ADWIN on errors, and river's own version with ADWIN on hits",
        ("stream", "paper", "watches errors", "river's ADWINBaggingClassifier"),
        tuple(rows),
        "river 0.26 gives ADWIN a 1 if a member of the ensemble is right, so the member that is most often "
        "right restarts when a member improves. In the paper and in MOA, the member that is most often "
        "wrong restarts when a member gets worse. On NSGR, where everything learned is wrong after half a "
        "turn, river's ensemble does not unlearn; elsewhere, its trees adapt by themselves, and both "
        "versions err equally. Means over three streams, and over two for river's version.",
    )


def _rated(rate: float) -> Callable[[Floats, Classes], Classes]:
    def answers(x: Floats, true_class: Classes) -> Classes:
        return river.support_vectors(x, true_class, rate)

    return answers


def _dated(period: int) -> Callable[[Floats, Classes], Classes]:
    def answers(x: Floats, true_class: Classes) -> Classes:
        return dynamic_weighted_majority(x, true_class, GaussianBayes, period)

    return answers


def _of(drawn: Sequence[Drawn], learner: Callable[[Floats, Classes], Classes]) -> Tried:
    return Tried(drawn, [learner(each.x, each.true_class) for each in drawn])
