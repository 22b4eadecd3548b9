"""The compiled detector beside the definition, at every step of many streams."""

from __future__ import annotations

import numpy as np
import pytest

from streamwatch.core.estimators.verdicts.readout import dispersion, evidence, lead_bounds, mean_lead
from streamwatch.core.estimators.verdicts.state import verdict_parameters
from tests.core.estimators.verdicts.plain_verdict import PlainVerdict
from tests.core.estimators.verdicts.runs import history
from tests.tiers import few


def random_leads(seed, n=5_000):
    """Phases of other rates and correlations, some of them silent, some of fractions.

    The first is long and most often of independent leads, so that the evidence starts soon.
    """
    rng = np.random.default_rng(seed)
    parts = []
    while sum(map(len, parts)) < n:
        length = int(rng.integers(20, 900)) if parts else 2_300
        share, balance = rng.choice([0.0, 0.05, 0.3, 1.0]), rng.random()
        runs = int(rng.choice([1, 1, 5, 40])) if parts else 1 + (seed % 5 == 4)
        draws = np.where(rng.random(length) < balance, 1.0, -1.0) * (rng.random(length) < share)
        part = np.repeat(draws, runs)[:length]
        if rng.random() < 0.3:
            part = part * rng.choice([0.1, 0.35, 0.7, 1.0], len(part))
        parts.append(part)
    return np.concatenate(parts)[:n]


def steps(*phases):
    """Leads from (steps, lead) after each other."""
    return np.concatenate([np.full(n, float(d)) for n, d in phases])


ADVERSARIAL = {
    "always better": steps((2_600, 1)),
    "always worse": steps((2_600, -1)),
    "never different": steps((2_600, 0)),
    "one difference after a silence that alone is evidence": steps((5_000, 0), (1, 1), (40, 0), (1, -1)),
    "better until just before the start": steps((1_990, 1), (300, -1)),
    "silent at the start, which alone brings the claim": np.concatenate(
        [np.tile([1.0, 1.0, -1.0, 0.0, 1.0], 380), steps((400, 0), (200, -1))]
    ),
    "the start at the end of a block": np.random.default_rng(64).choice(
        [-1.0, 0, 1], 2_600, p=[0.2, 0.5, 0.3]
    ),
    "a change at the end of a block": steps((1_280, 1), (64, -1), (1_216, -1), (640, 1)),
    "alternating": np.tile([1.0, -1.0], 1_500),
    "in step with the blocks": np.tile(np.repeat([1.0, -1.0], 16), 100),
    "against the blocks": np.tile(np.repeat([1.0, -1.0], 24), 70),
    "in step with the longest blocks": np.tile(np.repeat([1.0, -1.0], 256), 8),
    "one in a thousand": np.tile(steps((999, 0), (1, 1)), 5),
    "tiny leads": np.full(2_600, 1e-9),
    "rounding to no variance": np.tile([0.1, 0.1 + 1e-12], 1_300),
    "every size": np.sin(np.arange(2_600.0)),
}


def assert_equal_at_every_step(leads, outcomes, delta):
    got, changed = history(leads, outcomes, delta)
    means, (lower, upper) = mean_lead(got), lead_bounds(got, delta)
    better, worse = evidence(got, float(verdict_parameters(outcomes, delta)["threshold"]))
    phi = dispersion(got)
    plain = PlainVerdict(outcomes, delta)
    for t, d in enumerate(leads.tolist()):
        assert plain.take(d, 3 * t + 7, 1000 * t) == changed[t], t
        exact = (plain.verdict, *plain.since, plain.changes)
        record = got[t]
        assert exact == tuple(record[name] for name in ("verdict", "since", "since_ms", "changes")), t
        assert (record["started"] > 0) == plain.started, t
        assert not plain.started or record["steps"] - record["differed"] == plain.g, t
        for side, sums, maxima, starts in zip(
            (plain.better, plain.worse), record["sums"], record["maxima"], record["starts"], strict=True
        ):
            if not plain.started:
                np.testing.assert_allclose(sums + np.log(maxima), side.s, rtol=1e-9, atol=1e-10)
                continue
            np.testing.assert_allclose(sums, side.m, rtol=1e-9, atol=1e-250, err_msg=f"M at {t}")
            np.testing.assert_allclose(maxima, side.c, rtol=1e-9, atol=1e-250, err_msg=f"C at {t}")
            for c, start, (outcome, _) in zip(side.c, starts.tolist(), side.start, strict=True):
                assert c < 1 or start == outcome, t  # below 1 the next rise starts anew
        assert phi[t] == pytest.approx(plain.phi, rel=1e-9), t
        for share, side in ((better[t], plain.better), (worse[t], plain.worse)):
            expected = np.log(side.mean) / np.log(plain.threshold) if side.mean > 1 else 0.0
            assert share == pytest.approx(expected, rel=1e-9, abs=1e-12), t
        if t % 7 == 0 or changed[t]:
            np.testing.assert_allclose((means[t], lower[t], upper[t]), plain.interval(), rtol=1e-9, atol=1e-9)
    return got


@pytest.mark.slow
@pytest.mark.parametrize("seed", few(range(15), 1))
def test_every_number_is_that_of_the_definition_at_every_step(seed) -> None:
    outcomes, delta = [(100_000, 0.05), (300, 0.9), (1_000, 0.5)][seed % 3]
    assert_equal_at_every_step(random_leads(seed), outcomes, delta)


@pytest.mark.slow
@pytest.mark.parametrize(("outcomes", "delta"), [(100_000, 0.05), (500, 0.9)])
@pytest.mark.parametrize("name", few(ADVERSARIAL, 4))
def test_every_number_is_that_of_the_definition_on_streams_made_to_break_it(name, outcomes, delta) -> None:
    assert_equal_at_every_step(ADVERSARIAL[name], outcomes, delta)


@pytest.mark.slow
def test_the_random_streams_claim_and_reopen_often() -> None:
    """Or the comparison above would compare little."""
    verdicts = [history(random_leads(seed), 300, 0.9)[0]["verdict"] for seed in range(8)]
    turns = np.concatenate([v[1:][np.diff(v) != 0] for v in verdicts])
    assert min((turns == verdict).sum() for verdict in (-1, 0, 1)) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_record_cut_off_anywhere_continues_to_the_bit(seed) -> None:
    leads = random_leads(seed)
    whole, _ = history(leads, 300, 0.9)
    for cut in np.random.default_rng(seed).integers(1, len(leads), 12).tolist():
        kept = np.frombuffer(bytearray(whole[cut - 1].tobytes()), whole.dtype)
        resumed, _ = history(leads[cut:], 300, 0.9, kept)
        assert resumed.tobytes() == whole[cut:].tobytes()


@pytest.mark.slow
def test_the_streams_start_within_blocks_at_their_end_and_just_after_it_and_some_never_do() -> None:
    """Or the comparison above would compare little."""
    started_at = [
        history(leads)[0]["started"].max() for leads in (*map(random_leads, range(15)), *ADVERSARIAL.values())
    ]
    assert {0, 2_000, 2_049, 2_112} <= set(started_at)
    assert sum(started > 0 for started in started_at) > 20


@pytest.mark.slow
def test_no_verdict_before_the_start_and_then_at_once() -> None:
    got, changed = history(steps((2_500, -1)))
    assert np.flatnonzero(changed).tolist() == [1_999]
    assert got["verdict"][[1_998, 1_999]].tolist() == [0, -1]
    assert got["since"][-1] == 7  # the first step
    assert np.isfinite(got["claimed"][-1]), "e^(2,000·ln 1.8) is beyond a double"


@pytest.mark.slow
def test_evidence_from_before_phi_was_known_is_taken_with_the_phi_known_at_the_start() -> None:
    """Leads come in runs of 12: while φ is still 1, M would grow on that alone."""
    rng = np.random.default_rng(1)
    leads = np.repeat(rng.choice([1.0, -1.0], 5_000, p=[0.51, 0.49]), 12)
    got, _ = history(leads)
    phi, start = dispersion(got), int(got["started"].max())
    assert 10 < phi[start - 2] < 20
    assert start >= 2_000 * phi[start - 2]
    assert got["started"][start - 2] == 0
    better, worse = evidence(got, 4e6)
    assert (better[: start - 1] == 0).all()
    assert (worse[: start - 1] == 0).all()
    rates = np.array([0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8])
    logs = np.log1p(rates * leads[:start, None]).sum(axis=0) / phi[start - 2]
    np.testing.assert_allclose(got["sums"][start - 1, 0], start * np.exp(logs), rtol=1e-9, atol=1e-250)


def test_a_verdict_that_nothing_confirms_opens_after_its_outcomes() -> None:
    got, changed = history(steps((3_000, 1), (1_500, 0)), outcomes=1_000)
    last = np.flatnonzero(np.diff(got["due"]) > 0).max() + 1
    opened = np.flatnonzero(got["verdict"] == 0)
    assert opened[opened > last][0] == last + 1_000
    assert changed[last + 1_000]


def test_a_verdict_claimed_again_keeps_its_since() -> None:
    got, changed = history(steps((6_000, 1)))
    assert changed.sum() == 1
    assert (np.diff(got["due"]) > 0).sum() > 100
    assert set(got["since"][1_999:].tolist()) == {7}


@pytest.mark.parametrize(
    ("outcomes", "delta", "wrong"), [(0, 0.05, "outcomes"), (10, 0.0, "delta"), (10, 1.0, "delta")]
)
def test_parameters_out_of_range_are_refused(outcomes, delta, wrong) -> None:
    with pytest.raises(ValueError, match=wrong):
        verdict_parameters(outcomes, delta)
