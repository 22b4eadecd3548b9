"""The rule as it reads and the one that simulations run say the same, at the same outcomes."""

from __future__ import annotations

import pytest

from tests.calibration.cohorts.rule import CLAIM, CONFIRMED, OPENED, RETRACTED, Variant, judge
from tests.core.estimators.registers.cohorts.naive_cohorts import OPPONENTS, NaiveCohorts
from tests.core.estimators.registers.cohorts.streams import Stream, outcomes_of

SHORT = Variant(predictions=1_000.0, start_predictions=100.0, start_per_phi=100.0)
STREAMS = {
    "slow hits": Stream(),
    "slow hits, crowded": Stream(10_000, classes=2, majority=0.6, crowded=4.0),
    "slow errors": Stream(mean_delays=(0.05, 0.2)),
    "hits at the horizon": Stream(mean_delays=(0.02, 0.05), hits_after=0.8, per_horizon=900),
    "complete within seconds": Stream(mean_delays=(1e-4, 4e-5)),
    "two equal classes": Stream(classes=2, majority=0.5, accuracy=(0.65, 0.3)),
    "bursts": Stream(burst_ms=60_000),
    "ten classes": Stream(classes=10, majority=0.4, accuracy=(0.6, 0.3), predictions=16_000),
    "labels in a rhythm": Stream(mean_delays=(0.05, 0.02), rhythm=(1 / 12, 0.6), predictions=12_000),
    "labels in batches": Stream(mean_delays=(0.05, 0.02), rhythm=(1 / 12, 0.99), predictions=20_000),
    "few": Stream(per_horizon=400, predictions=4_000),
    "many in a cohort": Stream(per_horizon=5_000, predictions=16_000),
}


def changes_by_reading(outcomes, horizon_ms):
    """(at, opponent, verdict, since, φ) at each change of a verdict or its status."""
    naive = NaiveCohorts(horizon_ms, predictions=1_000, start=(SHORT.start_predictions, SHORT.start_per_phi))
    told, before = [], dict.fromkeys(OPPONENTS, (0, 0, 0))
    for at, delay, made, label, predicted, last in zip(*(c.tolist() for c in outcomes), strict=True):
        naive.take(at, delay, made, label, predicted, last if last >= 0 else None)
        for j, (name, opponent) in enumerate(naive.opponents.items()):
            now = (opponent.changes, opponent.confirmed, opponent.retracted)
            if now != before[name]:
                told.append((at, j, opponent.verdict, opponent.status))
                before[name] = now
    return told, naive


def changes_compiled(outcomes, horizon_ms):
    told, judged = judge(outcomes, horizon_ms, SHORT), []
    held = [(0, 0), (0, 0)]
    for event in told.events:
        at, j, side = int(event["at"]), int(event["opponent"]), int(event["side"])
        if event["what"] in {OPENED, RETRACTED}:
            judged.append((at, j, 0, ""))
        elif event["what"] == CONFIRMED:
            judged.append((at, j, side, "confirmed"))
        elif event["what"] == CLAIM:
            judged.append((at, j, side, "complete" if event["complete"] else "early"))
            held[j] = (side, int(event["since"]))
    return judged, told, held


@pytest.mark.parametrize("name", STREAMS)
def test_the_compiled_rule_says_what_the_plain_one_says(name) -> None:
    stream = STREAMS[name]
    outcomes = outcomes_of(stream, 1)
    by_reading, naive = changes_by_reading(outcomes, stream.horizon_ms)
    compiled, told, held = changes_compiled(outcomes, stream.horizon_ms)
    assert by_reading == compiled
    assert naive.judged == told.judged
    for opponent, phi, (side, since) in zip(naive.opponents.values(), told.phi, held, strict=True):
        assert opponent.phi == pytest.approx(phi)
        if side:
            assert opponent.since == since
    assert told.judged > 40
    assert by_reading
