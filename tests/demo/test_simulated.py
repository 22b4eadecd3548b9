"""The synthetic stream: seeded, really drifting, unequal classes, dependent labels, delays as drawn."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from streamwatch.demo.simulated import BLOCK, DelaySpec, Drift, StreamSpec, blocks

STABLE, DRIFTING, ADAPTIVE = range(3)


def drawn(spec, instances):
    taken = list(itertools.islice(blocks(spec), math.ceil(instances / BLOCK)))
    true_class = np.concatenate([b.true_class for b in taken])[:instances]
    predicted_class = np.concatenate([b.predicted_class for b in taken], axis=1)[:, :instances]
    delays = np.concatenate([b.delay_s for b in taken])[:instances]
    return true_class, predicted_class, delays


def hit_rates(true_class, predicted_class, start, end):
    return (predicted_class[:, start:end] == true_class[start:end]).mean(axis=1)


def test_equal_specs_give_equal_streams():
    one, other = drawn(StreamSpec(seed=7), 1_000), drawn(StreamSpec(seed=7), 1_000)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_another_seed_gives_another_stream():
    assert (drawn(StreamSpec(seed=7), 1_000)[0] != drawn(StreamSpec(seed=8), 1_000)[0]).any()


def test_an_abrupt_drift_ruins_the_drifting_model_at_its_instance_and_spares_the_stable_one():
    spec = StreamSpec(drift_every=2_000)
    true_class, predicted_class, _ = drawn(spec, 3_000)
    before, after = (
        hit_rates(true_class, predicted_class, 0, 2_000),
        hit_rates(true_class, predicted_class, 2_000, 3_000),
    )
    guessing = (true_class[1:] == true_class[:-1]).mean()
    assert before[DRIFTING] > 0.95
    assert after[DRIFTING] < guessing - 0.1
    assert abs(before[STABLE] - after[STABLE]) < 0.04
    assert before[STABLE] > guessing + 0.1
    # The first hundred after it are already as bad: abrupt means abrupt.
    assert hit_rates(true_class, predicted_class, 2_000, 2_100)[DRIFTING] < 0.7


def test_a_gradual_drift_brings_the_drifting_model_back_bit_by_bit():
    spec = StreamSpec(drift_every=2_000, gradual_width=1_500)
    true_class, predicted_class, _ = drawn(spec, 5_400)
    quarters = [
        hit_rates(true_class, predicted_class, at, at + 400)[DRIFTING] for at in (3_000, 3_600, 4_000, 5_000)
    ]
    assert quarters == sorted(quarters)
    assert quarters[-1] > 0.93


def test_the_adaptive_model_dips_and_recovers():
    true_class, predicted_class, _ = drawn(StreamSpec(drift_every=2_000), 3_200)
    assert hit_rates(true_class, predicted_class, 2_000, 2_200)[ADAPTIVE] < 0.8
    assert hit_rates(true_class, predicted_class, 2_900, 3_200)[ADAPTIVE] > 0.9


def test_drifts_alternate_between_abrupt_and_gradual_and_are_listed_up_to_the_end():
    spec = StreamSpec(drift_every=1_000, gradual_width=300)
    assert spec.drifts(3_000) == [Drift(1_000, 1, 1), Drift(2_000, 300, 0)]
    assert [d.kind for d in spec.drifts(3_001)] == ["abrupt", "gradual", "abrupt"]
    assert StreamSpec(drift_every=0).drifts(10**6) == []


def test_a_drift_is_half_done_at_its_centre():
    drift = Drift(at=1_000, width=400, concept=1)
    share = drift.probability(np.array([0.0, 800.0, 1_000.0, 1_200.0, 3_000.0]))
    assert share[2] == 0.5
    assert share[1] == pytest.approx(1 / (1 + math.exp(2)))
    assert share[0] < 1e-4 < 1 - 1e-4 < share[4]


def test_a_concept_does_not_depend_on_how_far_a_stream_has_come():
    spec = StreamSpec(drift_every=1_000, gradual_width=250)
    early, late = (spec.concept_probability(np.arange(at, at + 2_000.0)) for at in (0, 200_000))
    np.testing.assert_allclose(early[500:], late[500:], atol=2e-3)  # before the first drift there was none


def test_labels_repeat_as_often_as_the_chain_says():
    spec = StreamSpec(persistence=0.5)
    true_class, _, _ = drawn(spec, 40_000)
    expected = 0.5 + 0.5 * sum(p * p for p in spec.priors)
    assert (true_class[1:] == true_class[:-1]).mean() == pytest.approx(expected, abs=0.012)


def test_classes_are_as_unequal_as_their_priors():
    true_class, _, _ = drawn(StreamSpec(persistence=0.3), 40_000)
    shares = np.bincount(true_class, minlength=3) / len(true_class)
    np.testing.assert_allclose(shares, (0.7, 0.2, 0.1), atol=0.015)


def test_further_models_have_names_and_noise_of_their_own():
    spec = StreamSpec(models=5)
    true_class, predicted_class, _ = drawn(spec, 2_000)
    assert spec.model_names == ("stable-v1", "drifting-v2", "adaptive-v3", "stable-v4", "stable-v5")
    assert (predicted_class[3] != predicted_class[4]).any()
    assert (hit_rates(true_class, predicted_class, 0, 2_000)[3:] > 0.8).all()


def test_lognormal_delays_have_the_median_the_spread_and_the_share_that_never_comes():
    delays = DelaySpec("lognormal", median_s=60.0, sigma=0.8, longest_s=1e9, never=0.1).draw(
        np.random.default_rng(3), 50_000
    )
    came = delays[~np.isnan(delays)]
    assert len(came) / len(delays) == pytest.approx(0.9, abs=0.005)
    assert np.median(came) == pytest.approx(60.0, rel=0.03)
    assert np.log(came).std() == pytest.approx(0.8, rel=0.02)


def test_exponential_delays_have_the_median_and_the_mean_of_the_distribution():
    delays = DelaySpec("exponential", median_s=10.0, longest_s=1e9, never=0.0).draw(
        np.random.default_rng(3), 50_000
    )
    assert np.median(delays) == pytest.approx(10.0, rel=0.03)
    assert delays.mean() == pytest.approx(10.0 / math.log(2.0), rel=0.03)


def test_no_delay_is_longer_than_the_longest():
    spec = DelaySpec(median_s=1.0, sigma=3.0, never=0.0)
    assert spec.draw(np.random.default_rng(1), 5_000).max() == spec.limit_s == 20.0


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({"models": 0}, "at least one model"),
        ({"persistence": 1.0}, "persistence must be in"),
        ({"priors": (0.5, 0.2, 0.2)}, "sum to 1"),
    ],
)
def test_a_stream_that_cannot_be_is_refused(changed, shown):
    with pytest.raises(ValueError, match=shown):
        StreamSpec(**changed)


CHANNELS = {"channels": (("web", 0.6), ("app", 0.3), ("branch", 0.1)), "spared": "branch"}


def test_channels_have_their_shares_and_change_nothing_of_a_stream_without_drifts():
    plain, channelled = StreamSpec(drift_every=0), StreamSpec(drift_every=0, **CHANNELS)
    for one, other in zip(drawn(plain, 4_000), drawn(channelled, 4_000), strict=True):
        np.testing.assert_array_equal(one, other)
    taken = list(itertools.islice(blocks(channelled), 20))
    shares = np.bincount(np.concatenate([block.channel for block in taken]), minlength=3) / 4_000
    assert shares == pytest.approx([0.6, 0.3, 0.1], abs=0.03)
    assert next(blocks(plain)).channel is None


def test_a_drift_leaves_the_channel_that_is_spared_as_it_was():
    spec = StreamSpec(drift_every=2_000, **CHANNELS)
    taken = list(itertools.islice(blocks(spec), 20))[10:]
    hits = np.concatenate([block.predicted_class[DRIFTING] == block.true_class for block in taken])
    channel = np.concatenate([block.channel for block in taken])
    assert hits[channel == 2].mean() > 0.93
    assert hits[channel != 2].mean() < 0.7


def test_labels_of_a_slow_class_take_longer_by_its_factor():
    true_class, _, plain = drawn(StreamSpec(), 2_000)
    _, _, slow = drawn(StreamSpec(slowness=(1.0, 1.0, 3.0)), 2_000)
    np.testing.assert_allclose(slow, plain * np.array([1.0, 1.0, 3.0])[true_class])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"channels": (("web", 0.6),)}, "must sum to 1"),
        ({**CHANNELS, "spared": "post"}, "spared must be one of the channels"),
    ],
)
def test_channels_that_cannot_be_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        StreamSpec(**changed)
