"""The interval of the mean lead beside the same confidence sequence in another library.

ville's `AsymptoticCS` writes the boundary of Waudby-Smith et al. as a normal mixture of precision 1/ρ². It is
fed means of blocks of 64 leads. confseq has no wheels and needs Boost; expectation needs Python 3.12.
"""

from __future__ import annotations

import numpy as np
import pytest
from ville import AsymptoticCS

from streamwatch.core.estimators.verdicts.readout import LEAST_BLOCKS, RHO_SQUARED, lead_bounds, mean_lead
from tests.core.estimators.verdicts.runs import history

BLOCK = 64


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_the_interval_of_the_mean_lead_is_that_of_ville_after_every_block(seed: int, delta: float) -> None:
    chance = np.random.default_rng(seed)
    leads = chance.choice([-1.0, 0.0, 0.35, 1.0], size=120 * BLOCK, p=[0.2, 0.55, 0.1, 0.15])
    got, changed = history(leads, delta=delta)
    assert not changed.any(), "a change of verdict begins the interval anew"
    ours = got[BLOCK - 1 :: BLOCK]
    assert ours["blocks"].tolist() == list(range(1, 121))

    peer = AsymptoticCS(alpha=delta, min_samples=LEAST_BLOCKS)
    peer.rho_ = 1.0 / RHO_SQUARED
    peer.fit(leads.reshape(-1, BLOCK).mean(axis=1))
    lower, upper = lead_bounds(ours, delta)
    assert mean_lead(ours) == pytest.approx(peer.estimate_, abs=1e-12)
    early, late = slice(LEAST_BLOCKS - 1), slice(LEAST_BLOCKS - 1, None)
    assert np.isnan(lower[early]).all()
    assert np.isinf(peer.lower_[early]).all()
    assert lower[late] == pytest.approx(np.clip(peer.lower_[late], -1, 1), abs=1e-12)
    assert upper[late] == pytest.approx(np.clip(peer.upper_[late], -1, 1), abs=1e-12)
