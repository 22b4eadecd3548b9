"""Detector of a rise of the error by betting, with a stated rate of false alarms.

For every outcome j since the last alarm at which the error may have risen, the losses are predicted by two
mixtures, one up to j and one from there on (Krichevsky, Trofimov 1981: Bernoulli losses whose error has
Jeffreys' prior), and compared with the best constant error for all of them (universal inference: Wasserman,
Ramdas, Balakrishnan 2020):

    E_j(t) = KT(l_1 … l_j) · KT(l_{j+1} … l_t) / max_p p^k (1 − p)^(t − k),  k the losses among all t

If losses are independent and their error is constant, whatever it is, the mean of all E_j over the `within`
outcomes at which it may have risen is at most a martingale that begins at 1, so by Ville's inequality the
probability that it ever reaches 1/δ within them is at most δ. Only j after which the error was higher than
before are counted, which makes the mean smaller. Verdicts (docs/verdicts.md) use the same method. It needs no
tuning, and guarantees nothing if losses depend on earlier ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from streamwatch.papers.detection.candidates import Alarms, Candidate
from streamwatch.papers.detection.streams import Losses
from streamwatch.papers.result import Floats

CLOCK = 32
"""Outcomes between two tests, and between two outcomes at which the error may have risen, as in ADWIN."""


@dataclass(frozen=True, slots=True)
class Betting:
    """Parameters of the detector: a false alarm within `within` outcomes has probability at most `delta`.

    It restarts without memory after an alarm, and after `within` outcomes without one.

    Raises
    ------
    ValueError
        If `delta` is not in (0, 1) or `within` is below two clocks.
    """

    delta: float = 0.05
    within: int = 100_000

    def __post_init__(self) -> None:
        if not 0.0 < self.delta < 1.0 or self.within < 2 * CLOCK:
            raise ValueError(
                f"expected delta in (0, 1) and within from {2 * CLOCK} on, got {self.delta}, {self.within}"
            )

    @property
    def name(self) -> str:
        """Name of the detector in tables."""
        return f"e-detector, {self.delta:g} in {self.within:,}"


def log_mixture(losses: Floats, hits: Floats) -> Floats:
    """Logarithm of the probability of a sequence with these numbers of losses and hits (Jeffreys' prior)."""
    return gammaln(losses + 0.5) + gammaln(hits + 0.5) - gammaln(losses + hits + 1.0) - math.log(math.pi)


def log_best(losses: float, hits: float) -> float:
    """Logarithm of the largest probability of such a sequence under a constant error."""
    total = losses + hits
    return sum(part * math.log(part / total) for part in (losses, hits) if part)


def evidence(counts: Floats, before: int = CLOCK) -> float:
    """Logarithm of the sum of E_j over the j after which the error is higher; −∞ without any.

    Parameters
    ----------
    counts
        Number of losses among the first 0, `before`, 2 · `before` … t outcomes; j are the numbers of outcomes
        between 0 and t.
    before
        Outcomes between two entries.
    """
    steps = len(counts) - 1
    j = np.arange(1, steps, dtype=np.float64)
    first, total = counts[1:-1], counts[-1]
    after = total - first
    n_first, n_after = before * j, before * (steps - j)
    higher = after * n_first > first * n_after
    if not higher.any():
        return -math.inf
    logs = log_mixture(first[higher], n_first[higher] - first[higher])
    logs += log_mixture(after[higher], n_after[higher] - after[higher])
    logs -= log_best(float(total), float(before * steps - total))
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def alarms(losses: Losses, betting: Betting) -> Alarms:
    """Return the outcomes (1-based) of the alarms of each run; `losses` is (runs, outcomes)."""
    level = math.log(betting.within / CLOCK) - math.log(betting.delta)
    found: Alarms = []
    for run in losses:
        looks = len(run) // CLOCK
        counts = np.concatenate([[0.0], run[: looks * CLOCK].reshape(looks, CLOCK).sum(axis=1).cumsum()])
        begin, those = 0, list[int]()
        for look in range(2, looks + 1):
            if look - begin < 2:
                continue
            if (look - begin) * CLOCK > betting.within:
                begin = look
            elif evidence(counts[begin : look + 1] - counts[begin]) >= level:
                those.append(look * CLOCK)
                begin = look
        found.append(those)
    return found


def candidate(betting: Betting) -> Candidate:
    """Build a candidate of the detector."""
    return Candidate(betting.name, "betting", lambda losses: alarms(losses, betting))
