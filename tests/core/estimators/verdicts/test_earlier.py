"""Records of version 2 of verdicts go on from where they were."""

from __future__ import annotations

import numpy as np
import pytest

from streamwatch.core.estimators.verdicts.earlier import EARLIER_VERDICT, continued
from streamwatch.core.estimators.verdicts.readout import dispersion, mean_lead
from streamwatch.core.estimators.verdicts.state import PACE, VERDICT
from tests.core.estimators.verdicts.plain_verdict import ALPHA, PlainVerdict, _faded
from tests.core.estimators.verdicts.runs import history
from tests.core.estimators.verdicts.test_detector import random_leads


def record_of(plain: PlainVerdict) -> np.ndarray:
    """What version 2 kept of these leads: every block of 16 counted at its end."""
    leads = np.array(plain.leads)
    t = len(leads)
    record = np.zeros((), EARLIER_VERDICT)
    record["differed"] = t - plain.g
    record["verdict"], record["changes"], record["changed"] = plain.verdict, plain.changes, plain.changed_at
    record["since"], record["since_ms"] = plain.since
    for k, side in enumerate((plain.better, plain.worse)):
        record["sums"][k], record["maxima"][k] = side.m, side.c
        record["starts"][k], record["start_ms"][k] = zip(*side.start, strict=True)
    record["dispersion"], record["variance"] = plain.phi, plain.variance
    whole = t - t % 16
    until = ALPHA ** np.arange(whole - 1, -1, -1.0)
    record["weight"], record["total"] = until.sum(), (until * leads[:whole]).sum()
    record["squares"] = (until * leads[:whole] ** 2).sum()
    rest = ALPHA ** (15.0 - np.arange(t - whole))
    record["recent"] = (rest * leads[whole:]).sum()
    record["recent_squares"] = (rest * leads[whole:] ** 2).sum()
    record["block"] = leads[whole:].sum()
    record["longer"] = leads[t - t % 64 : whole].sum(), leads[t - t % 256 : t - t % 64].sum()
    for k, (b, kept) in enumerate(plain.differences.items()):
        ended = t - t % b
        record["last"][k] = leads[max(ended - b, 0) : ended].sum()
        m, average = _faded(kept, b)
        record["weights"][k], record["spreads"][k] = m, m * average
    blocks = [leads[end - 64 : end].mean() for end in range(64, t + 1, 64) if end - 64 >= plain.changed_at]
    record["blocks"] = len(blocks)
    if blocks:
        record["mean"], record["spread"] = np.mean(blocks), np.var(blocks) * len(blocks)
    return record


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_record_of_version_2_goes_on_as_the_definition_does(seed) -> None:
    leads = random_leads(seed, 2_400)
    rng = np.random.default_rng(seed)
    for cut in (5, 40, 63, *(rng.integers(64, 2_000, 16) // 16 * 16 + rng.integers(0, 16, 16)).tolist()):
        plain = PlainVerdict(300, 0.9)
        for t, d in enumerate(leads[:cut].tolist()):
            plain.take(d, 3 * t + 7, 1_000 * t)
        pace = np.zeros((), PACE)
        pace["steps"] = cut
        pace["reopens"] = plain.last_claim + 300 if plain.verdict else 0
        record = continued(cut, record_of(plain))
        kept = np.zeros(1, np.dtype([*PACE.descr, *VERDICT.descr]))
        for part in (pace, record):
            for name in part.dtype.names or ():
                kept[name] = part[name]
        got, _ = history(leads[cut:], 300, 0.9, kept)
        known_apart = cut % 64 < 48  # of three blocks of 16, two are known only together
        phi, means = dispersion(got), mean_lead(got)
        for t, d in enumerate(leads[cut:].tolist()):
            plain.take(d, 3 * (cut + t) + 7, 1_000 * (cut + t))
            if known_apart:
                assert phi[t] == pytest.approx(plain.phi, rel=1e-9), (cut, t)
                assert got["verdict"][t] == plain.verdict, (cut, t)
                np.testing.assert_allclose(got["sums"][t], (plain.better.m, plain.worse.m), rtol=1e-9)
            elif t < 200:
                assert phi[t] == pytest.approx(plain.phi, rel=0.15), (cut, t)
        np.testing.assert_allclose(means[-1], plain.interval()[0], rtol=1e-9, atol=1e-9, equal_nan=True)
