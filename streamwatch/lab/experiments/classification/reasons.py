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
        "Prequential error as the daemon has it, without forgetting; mean over ten streams of 10,000 "
        "instances, as in the paper, but of OZAB and MOA over three. NB: Gaussian naive Bayes. SGD: "
        "river's linear support vector machine, learning rate .01, λ = .0001. DWM: Kolter and Maloof 2007 "
        "over Gaussian naive Bayes, p = 50, β = .5, θ = .01. OZAB: ten of river's Hoeffding trees, each "
        "watched by river's ADWIN. MOA: 2024.07, at its defaults but for that learning rate. NB and SGD "
        "err as printed. DWM errs as MOA's today; its period, which is not printed, makes up most of the "
        "rest, see below. OZAB by MOA errs as printed, too: what is more here comes with river's trees "
        "and ADWIN."
    ),
    NEIGHBOURS: (
        "One neighbour in the last so many instances, attributes divided by their range in the window, as "
        "MOA has it. The paper prints neither, but with one neighbour and that scale its errors come out; "
        "without the scale NN100 errs less on NSGT-5D, where the attribute that tells most has the widest "
        "range."
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
        "What the paper does not print: learning rate of SGD, period of DWM",
        (
            "stream",
            "SGD, paper",
            *(f"rate {rate:g}" for rate in RATES),
            "DWM, paper",
            *(f"p = {period}" for period in PERIODS),
        ),
        tuple(rows),
        "Three streams each. At a rate of .01 SGD errs as printed on every stream; at .0001, which is "
        "MOA's default today, it has hardly begun to learn. DWM with a period of 20 is near what is "
        "printed where the classes move (NSGT, NSGT-I, NSGT-5D, NSCX), with 50, MOA's default today, well "
        "above; no period gives all nine.",
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
        "OZAB: where ADWIN watches errors, and river's own, where it watches hits",
        ("stream", "paper", "watches errors", "river's ADWINBaggingClassifier"),
        tuple(rows),
        "river 0.26 gives ADWIN a 1 where a member is right: the member most often right begins anew when "
        "one gets better. In the paper and in MOA it is the one most often wrong, when one gets worse. On "
        "NSGR, where after half a turn everything learned is wrong, river's bag does not unlearn; "
        "elsewhere its trees adapt by themselves, and both err alike. Three streams and two.",
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
