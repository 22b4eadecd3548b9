"""The dispersion of losses equals a plain one at every block, and is what their dependence makes of sums."""

from __future__ import annotations

import numpy as np
import pytest

from streamwatch.core.estimators.dependence import DEPENDENCE, count_loss, dispersion_of
from streamwatch.core.jit import entry
from tests.calibration.monte_carlo import correlated
from tests.core.estimators.kernel.twin_drifts import TwinDependence


@entry
def watch(states, losses, dispersions):
    for t in range(losses.shape[0]):
        count_loss(states[0], losses[t])
        dispersions[t] = dispersion_of(states[0])


def dispersions_of(losses: np.ndarray, state: np.ndarray | None = None) -> np.ndarray:
    found = np.zeros(len(losses))
    watch(np.zeros(1, DEPENDENCE) if state is None else state, losses.astype(np.int64), found)
    return found


def stepped(rng: np.random.Generator, length: int) -> np.ndarray:
    """Losses whose error jumps twice, and which are all right or all wrong for a while."""
    error = np.repeat([0.02, 0.6, 0.1, 0.0, 1.0], length // 5)
    return rng.random(len(error)) < error


@pytest.mark.parametrize("kind", ["independent", "dependent", "stepped", "never wrong"])
def test_it_equals_a_plain_one_after_every_loss(kind: str) -> None:
    rng = np.random.default_rng(3)
    length = 6_000
    losses = {
        "independent": lambda: correlated(rng, 0.2, 0.0, 1, length)[0],
        "dependent": lambda: correlated(rng, 0.1, 0.8, 1, length)[0],
        "stepped": lambda: stepped(rng, length),
        "never wrong": lambda: np.zeros(length, np.bool_),
    }[kind]()
    plain = TwinDependence()
    expected = np.zeros(length)
    for t, loss in enumerate(losses.tolist()):
        plain.update(int(loss))
        expected[t] = plain.dispersion
    np.testing.assert_allclose(dispersions_of(losses), expected, rtol=1e-9)


def test_a_state_that_was_cut_goes_on_bit_for_bit() -> None:
    losses = correlated(np.random.default_rng(4), 0.3, 0.5, 1, 5_000)[0]
    whole, cut = np.zeros(1, DEPENDENCE), np.zeros(1, DEPENDENCE)
    dispersions_of(losses, whole)
    for part in np.array_split(losses, 37):
        cut = np.frombuffer(cut.tobytes(), DEPENDENCE).copy()
        dispersions_of(part, cut)
    assert cut.tobytes() == whole.tobytes()


@pytest.mark.parametrize(("rho", "most"), [(0.0, 1.3), (0.5, 3.6), (0.8, 10.5)])
def test_it_is_the_ratio_of_variances_of_sums(rho: float, most: float) -> None:
    """(1 + ρ)/(1 − ρ) for losses that repeat with probability ρ: 1, 3 and 9; the largest of three ratios is
    somewhat above. The median over 40 streams of 50,000.
    """
    streams = correlated(np.random.default_rng(5), 0.2, rho, 40, 50_000)
    median = float(np.median([dispersions_of(losses)[-1] for losses in streams]))
    assert 0.9 * (1 + rho) / (1 - rho) < median < most
