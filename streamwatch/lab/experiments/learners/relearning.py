"""Naive Bayes that begins anew at every alarm, of a detector or of chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.specs import MonitorsSpec
from streamwatch.lab.experiments.learners import naive_bayes
from streamwatch.lab.experiments.result import Floats
from streamwatch.lab.experiments.watching import alarms_of

LOOK_AHEAD = 4_000
"""Instances computed at a time until an alarm comes; it changes nothing but the time it takes."""


def at_alarms(
    x: Floats, true_class: NDArray[np.integer], classes: int, spec: MonitorsSpec, detector: int
) -> tuple[NDArray[np.int64], list[int]]:
    """Answers (n,) of a learner that forgets all when a detector on its losses alarms, and when that was.

    The detector begins anew too. Instances of alarms are 0-based: the first that the new learner sees.
    """
    answers, starts, begin = np.zeros(len(x), np.int64), [], 0
    while begin < len(x):
        length, found = LOOK_AHEAD, []
        while True:
            part = slice(begin, begin + length)
            said = naive_bayes.predictions(x[part], true_class[part], classes)
            found = alarms_of(spec, said != true_class[part])[detector]
            if found or begin + length >= len(x):
                break
            length *= 2
        end = begin + found[0] if found else len(x)
        answers[begin:end] = said[: end - begin]
        if found and end < len(x):
            starts.append(end)
        begin = end
    return answers, starts


def chance_alarms(rng: np.random.Generator, n: int, probability: float, warm_up: int = 30) -> list[int]:
    """Instances (0-based) of random alarms, each at least `warm_up` instances after the one before.

    Žliobaitė et al. 2015, §6.9: at every step with this probability, but not in a learner's first 30.
    """
    starts, at = [], 0
    if probability <= 0.0:
        return starts
    while True:
        at += warm_up - 1 + int(rng.geometric(probability))
        if at >= n:
            return starts
        starts.append(at)
