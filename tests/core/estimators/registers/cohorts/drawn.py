"""Streams of outcomes on which the register is compared with the plain rule, and with itself."""

from __future__ import annotations

import numpy as np

from tests.core.estimators.registers.cohorts.streams import Outcomes, Stream, in_order_of_labels, outcomes_of

_STREAMS = {
    "slow hits": Stream(),
    "slow hits, crowded": Stream(10_000, classes=2, majority=0.6, crowded=4.0),
    "slow errors": Stream(mean_delays=(0.05, 0.2)),
    "hits at the horizon": Stream(mean_delays=(0.02, 0.05), hits_after=0.8, per_horizon=900),
    "complete within seconds": Stream(mean_delays=(1e-4, 4e-5)),
    "two equal classes": Stream(classes=2, majority=0.5, accuracy=(0.65, 0.3)),
    "bursts": Stream(burst_ms=60_000),
    "labels in a rhythm": Stream(mean_delays=(0.05, 0.02), rhythm=(1 / 12, 0.6), predictions=10_000),
    "labels in batches": Stream(mean_delays=(0.05, 0.02), rhythm=(1 / 12, 0.99), predictions=10_000),
    "few": Stream(per_horizon=400, predictions=6_000),
    "ten classes": Stream(classes=10, majority=0.4, accuracy=(0.6, 0.3), predictions=16_000),
    "a horizon that 16 does not divide": Stream(horizon_ms=19_999_993),
}
_SLOWING = "hits that are labelled more slowly from some time on"
STREAMS = (*_STREAMS, _SLOWING)
"""Names of the streams."""


def _slowing(seed: int) -> Outcomes:
    """A model that stays as it is, and whose hits are labelled ten times as slowly from 60 % on."""
    rng = np.random.default_rng(seed)
    n, horizon_ms = 8_000, Stream().horizon_ms
    made_at = 1_700_000_000_000 + np.cumsum(rng.exponential(horizon_ms / 2_000, n)).astype(np.int64)
    label = np.where(rng.random(n) < 0.7, 0, 1)
    hit = rng.random(n) < 0.75
    mean = np.where(hit & (np.arange(n) >= 0.6 * n), 0.5, 0.05)
    delay = (rng.exponential(mean) * horizon_ms).astype(np.int64)
    return in_order_of_labels(made_at, delay, delay <= horizon_ms, label, np.where(hit, label, 1 - label))


def drawn(name: str) -> tuple[int, Outcomes]:
    """Horizon and outcomes of a stream."""
    if name == _SLOWING:
        return Stream().horizon_ms, _slowing(1)
    return _STREAMS[name].horizon_ms, outcomes_of(_STREAMS[name], 1)
