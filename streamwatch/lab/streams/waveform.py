"""The waveforms of Breiman, Friedman, Olshen, Stone 1984: three classes, 21 attributes, optimal error 14 %.

Class k mixes two of three triangular waves in a random share and adds noise of variance 1.
"""

from __future__ import annotations

import numpy as np

from streamwatch.lab.streams.gaussians import Floats, Indices

OPTIMAL_ERROR = 0.14
"""Of the optimal classifier, as the literature has it."""
_POSITIONS = np.arange(1, 22)
_WAVES = np.stack([np.maximum(6 - abs(_POSITIONS - centre), 0) for centre in (11, 15, 7)]).astype(np.float64)
_PAIRS = np.array([(0, 1), (0, 2), (1, 2)])
CLASSES = 3


def waveform(rng: np.random.Generator, outcomes: int) -> tuple[Floats, Indices]:
    """Attributes (n, 21) and classes (n,)."""
    true_class = rng.integers(CLASSES, size=outcomes)
    mix = rng.random((outcomes, 1))
    first, second = _WAVES[_PAIRS[true_class, 0]], _WAVES[_PAIRS[true_class, 1]]
    return mix * first + (1.0 - mix) * second + rng.standard_normal((outcomes, 21)), true_class


def drifting_waveform(
    rng: np.random.Generator, per_concept: int, concepts: int = 3
) -> tuple[Floats, Indices]:
    """Waveforms whose classes change their names in a circle at every new concept: abrupt drifts.

    Concepts begin at multiples of `per_concept` (0-based). Attributes (n, 21) and classes (n,).
    """
    x, true_class = waveform(rng, per_concept * concepts)
    return x, (true_class + np.repeat(np.arange(concepts), per_concept)) % CLASSES
