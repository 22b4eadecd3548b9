"""Measures against scikit-learn, plain Python at every prefix, and the papers' worked numbers."""

from __future__ import annotations

import warnings
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as peer

from streamwatch.core.estimators.catalogue import BASELINES, MEASURES, PER_CLASS
from streamwatch.core.estimators.measures import measures
from streamwatch.core.estimators.measures.measures import OPTIONAL_SUMS, Totals
from tests.core.estimators.measures import plain_measures as plain
from tests.core.estimators.measures.summed import K, confusion, drawn, stack, totals_of
from tests.tiers import examples, few

SHARES_ONLY = {
    "accuracy_ratio", "kappa", "kappa_majority", "mcc", "arithmetic_mean_recall_ratio",
    "geometric_mean_recall_ratio", "harmonic_mean_recall_ratio", "macro_f1_ratio",
}  # fmt: skip
"""Measures that do not depend on how many outcomes there were, or on their order."""

MECHANISMS = {
    "landmark": plain.landmark,
    "fading:0.9": plain.fading(0.9),
    "fading:0.5": plain.fading(0.5),
    "sliding:7": plain.sliding(7),
}


def streams():
    """Streams of (truth, predicted, marks), the marks drawn at random."""
    classes = st.integers(0, K - 1)
    right = st.none() | st.booleans()
    flags = st.builds(plain.Flags, st.none() | classes, right, right, right, right)
    return st.lists(st.tuples(classes, classes, flags), min_size=1, max_size=25)


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
@given(outcomes=streams())
@settings(max_examples=examples(0.6))
def test_every_measure_and_baseline_is_the_plain_one_at_every_prefix(mechanism, outcomes):
    prefixes = [mechanism(outcomes[: i + 1]) for i in range(len(outcomes))]
    totals = stack([totals_of(p) for p in prefixes])
    twins = plain.BASELINES | plain.MARKED
    named = {m.name: (m.of, plain.MEASURES[m.name]) for m in MEASURES if m.name in plain.MEASURES}
    named |= {b.name: (b.of, twins[b.name]) for b in BASELINES}
    for name, (ours, theirs) in named.items():
        tolerance = 1e-7 if name == "kappa_plus" else 1e-9
        for prefix, value in zip(prefixes, ours(totals).tolist(), strict=True):
            assert plain.agree(value, theirs(prefix), tolerance), (name, value, theirs(prefix))


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_every_measure_of_every_class_is_the_plain_one_at_every_prefix(mechanism):
    pairs = drawn(3, 60)
    for end in range(1, len(pairs) + 1):
        outcomes = mechanism(pairs[:end])
        for measure in PER_CLASS:
            values = measure.of(totals_of(outcomes))[0]
            for k in range(K):
                assert plain.agree(values[k], plain.PER_CLASS[measure.name](outcomes, k)), measure.name


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [plain.landmark, plain.sliding(40)], ids=["landmark", "sliding"])
@pytest.mark.parametrize("size", few([4, 2], 1))
def test_measures_agree_with_scikit_learn_at_every_prefix(mechanism, size):
    pairs = drawn(11 + size, 80, size)
    for end in range(1, len(pairs) + 1):
        outcomes = mechanism(pairs[:end])
        totals = totals_of(outcomes, size)
        true_class, predicted_class = [o[0] for o in outcomes], [o[1] for o in outcomes]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns where it makes up a value for what is undefined
            expected = {
                "kappa": (measures.kappa, peer.cohen_kappa_score(true_class, predicted_class)),
                "mcc": (measures.mcc, peer.matthews_corrcoef(true_class, predicted_class)),
                "A": (
                    measures.arithmetic_mean_recall,
                    peer.balanced_accuracy_score(true_class, predicted_class),
                ),
                "F1": (measures.macro_f1, peer.f1_score(true_class, predicted_class, average="macro")),
                "p": (measures.accuracy, peer.accuracy_score(true_class, predicted_class)),
            }
        for name, (ours, theirs) in expected.items():
            value = ours(totals)[0]
            if not np.isnan(value):
                assert value == pytest.approx(theirs, abs=1e-9), (name, end)
            else:
                assert name in {"kappa", "mcc"}
                assert min(len(set(true_class)), len(set(predicted_class))) == 1


def test_the_worked_example_of_bifet_2015_is_reproduced_to_six_digits():
    totals = confusion([[40, 30], [5, 25]])
    expected = {
        measures.kappa: 0.326923,
        measures.mcc: 0.372839,
        measures.arithmetic_mean_recall: 0.702381,
        measures.geometric_mean_recall: 0.690066,
        measures.harmonic_mean_recall: 0.677966,
        measures.kappa_majority: -0.166667,
        measures.p_chance: 0.48,
    }
    for measure, value in expected.items():
        assert measure(totals)[0] == pytest.approx(value, abs=5e-7), measure.__name__


def test_a_model_without_outcomes_has_no_value_at_all():
    nothing = Totals(*np.zeros((5, 1)), *np.zeros((3, 1, 2)), *np.zeros((11, 1)))
    for measure in (*MEASURES, *BASELINES):
        assert np.isnan(measure.of(nothing)).all(), measure.name


def test_a_model_that_has_seen_no_class_has_no_value_either():
    nothing = Totals(*np.zeros((5, 1)), *np.zeros((3, 1, 0)))
    for measure in (*MEASURES, *BASELINES):
        assert np.isnan(measure.of(nothing)).all(), measure.name


def test_one_class_only_leaves_gains_and_correlation_undefined_but_accuracy_is_one():
    totals = confusion([[10, 0], [0, 0]])
    assert measures.accuracy(totals)[0] == 1.0
    for measure in (measures.kappa, measures.kappa_majority, measures.kappa_plus, measures.mcc):
        assert np.isnan(measure(totals)[0]), measure.__name__
    assert measures.p_uninformed(totals)[0] == 1.0


def test_a_class_that_was_never_recognised_holds_geometric_and_harmonic_mean_at_zero():
    totals = confusion([[10, 0], [5, 0]])
    assert measures.geometric_mean_recall(totals)[0] == 0.0
    assert measures.harmonic_mean_recall(totals)[0] == 0.0
    assert measures.arithmetic_mean_recall(totals)[0] == 0.5


@pytest.mark.parametrize("recognised", [1e-309, 1e-300])
def test_a_class_hardly_ever_recognised_has_a_harmonic_mean_of_about_zero(recognised):
    """Of a recall that faded for a thousand outcomes the inverse is beyond the largest float."""
    totals = confusion([[10.0, 0.0], [5.0, recognised]])
    assert measures.harmonic_mean_recall(totals)[0] == pytest.approx(0.0, abs=1e-299)


def test_a_class_seen_once_long_ago_no_longer_holds_the_geometric_mean_at_zero():
    pairs = [(1, 0)] + [(0, 0), (2, 2)] * 30
    early, late = plain.fading(0.9)(pairs[:20]), plain.fading(0.9)(pairs)
    assert measures.geometric_mean_recall(totals_of(early))[0] == 0.0
    assert measures.geometric_mean_recall(totals_of(late))[0] == pytest.approx(1.0)
    assert measures.p_uninformed(totals_of(late))[0] == 0.5


@pytest.mark.slow
def test_gains_never_explode_while_the_other_class_fades_away():
    pairs = [(1, 1), (0, 1)] + [(0, 0)] * 400
    for end in range(1, len(pairs) + 1):
        totals = totals_of(plain.fading(0.9)(pairs[:end]))
        for gain in (measures.kappa, measures.kappa_majority, measures.kappa_persistent, measures.mcc):
            assert not abs(gain(totals)[0]) > 20, (gain.__name__, end)


@pytest.mark.parametrize("side", ["labels", "predictions", "both"])
def test_a_correlation_ends_where_one_class_is_all_but_alone_and_never_leaves_its_range(side):
    """Against exact fractions: what is left of the other class fades by .9, then by .999, to rounding."""
    for alpha, n in ((0.9, 400), (0.999, 12_000)):
        faded = alpha ** np.arange(n)
        rest = faded * 2.0
        weight = 10.0 + (1 - faded) / (1 - alpha) + rest
        true_class = np.stack(
            [weight - (side != "predictions") * rest, (side != "predictions") * rest], axis=1
        )
        predicted_class = np.stack([weight - (side != "labels") * rest, (side != "labels") * rest], axis=1)
        if side == "labels":  # the predictions stay mixed
            predicted_class = np.stack([weight * 0.75, weight * 0.25], axis=1)
        if side == "predictions":
            true_class = np.stack([weight * 0.75, weight * 0.25], axis=1)
        agreed = np.minimum(true_class, predicted_class)
        zeros = np.zeros(n)
        totals = Totals(weight, agreed.sum(1), zeros, zeros, weight, true_class, predicted_class, agreed)
        got = measures.mcc(totals)
        np.testing.assert_array_equal(np.isnan(got), rest < 0.05 * (1 - 1e-9))
        assert (np.abs(got[~np.isnan(got)]) <= 1.0).all()
        if side == "both":
            np.testing.assert_allclose(got[rest >= 0.05], 1.0, atol=1e-9)


def test_a_correlation_that_rounding_carries_beyond_one_is_one():
    """Counts of a perfect model whose shares are inexact, so that their sum misses 1 by a rounding."""
    rng = np.random.default_rng(0)
    counts = rng.random((20_000, 7)) * 10.0 ** rng.integers(-1, 8, (20_000, 7))
    n = counts.sum(axis=1)
    zeros = np.zeros(len(n))
    got = measures.mcc(Totals(n, n, zeros, zeros, n, counts, counts, counts))
    assert np.nanmax(got) <= 1.0
    assert np.nanmin(got) > 0.999


def test_measures_survive_a_hundred_thousand_million_outcomes():
    counts = [[4e10, 3e10], [5e9, 2.5e10]]
    for measure in MEASURES:
        small, large = measure.of(confusion([[40, 30], [5, 25]])), measure.of(confusion(counts))
        if measure.name in SHARES_ONLY:
            assert large[0] == pytest.approx(small[0], abs=1e-12), measure.name


def test_many_models_at_once_give_what_each_gives_alone():
    models = [totals_of(plain.landmark(drawn(seed, 50))) for seed in range(20)]
    together = stack(models)
    for measure in (*MEASURES, *BASELINES):
        alone = [measure.of(m)[0] for m in models]
        np.testing.assert_array_equal(measure.of(together), alone)


def test_absent_classes_of_a_wider_neighbour_do_not_change_a_value():
    pairs = plain.landmark(drawn(5, 50))
    for measure in (*MEASURES, *BASELINES):
        wide = measure.of(totals_of(pairs, 64))[0]
        assert wide == pytest.approx(measure.of(totals_of(pairs))[0], abs=1e-14, nan_ok=True)


def test_labels_that_repeat_make_persistence_hard_to_beat():
    pairs = [(0, 0)] * 10 + [(1, 0)] + [(1, 1)] * 10
    totals = totals_of(plain.landmark(pairs))
    assert measures.p_persistent(totals)[0] == 19 / 20
    assert measures.kappa_persistent(totals)[0] == pytest.approx((20 / 21 - 19 / 20) / (1 / 20))


def test_what_measures_have_in_common_is_computed_once_for_the_same_totals_and_anew_for_others():
    totals = totals_of(plain.landmark(drawn(9, 40)))
    first = measures.accuracy(totals)
    assert measures.accuracy(totals) is first
    assert not first.flags.writeable
    doubled = replace(totals, hits=totals.hits / 2)
    assert measures.accuracy(doubled)[0] == first[0] / 2


def test_sums_that_are_not_kept_leave_undefined_what_needs_them_and_nothing_else():
    outcomes = plain.landmark(drawn(9, 40))
    complete = totals_of(outcomes)
    chosen = [each.name for each in fields(Totals) if each.init and each.name not in OPTIONAL_SUMS]
    kept = {name: getattr(complete, name) for name in chosen}
    bare = Totals(**kept)
    for name in OPTIONAL_SUMS:
        assert np.isnan(getattr(bare, name)).all()
        assert getattr(bare, name).shape == bare.n.shape
    unkept = {"loss_autocorrelation", "effective_sample_size_autocorrelated", *plain.MARKED}
    unkept |= {"kappa_majority_prequential"}
    for line in (*MEASURES, *BASELINES):
        assert np.isnan(line.of(bare)[0]) == (line.name in unkept), line.name


def test_a_class_never_predicted_has_a_share_of_predictions_of_zero_and_one_never_seen_has_none():
    totals = confusion([[10, 0, 0], [5, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(measures.class_predicted(totals)[0], [1.0, 0.0, np.nan])
    np.testing.assert_allclose(measures.class_truth(totals)[0], [2 / 3, 1 / 3, np.nan])


def test_labels_that_come_in_runs_show_a_temporal_dependence_and_alternating_ones_the_opposite():
    def dependence(labels):
        return measures.temporal_dependence(totals_of(plain.landmark([(y, 0) for y in labels])))[0]

    assert dependence([0] * 10 + [1] * 10) == pytest.approx(18 / 19 - 1 / 2)
    assert dependence([0, 1] * 10) == pytest.approx(0 - 1 / 2)
    assert np.isnan(dependence([0]))


def test_persistence_with_the_label_known_in_time_is_counted_by_itself():
    late = [
        (y, 0, plain.Flags(label_at_prediction=k)) for y, k in [(0, None), (0, None), (1, 0), (1, 0), (1, 1)]
    ]
    totals = totals_of(plain.landmark(late))
    assert measures.p_persistent(totals)[0] == 3 / 4
    assert measures.p_persistent_at_prediction(totals)[0] == pytest.approx(1 / 3)


def test_a_gain_is_defined_from_exactly_a_twentieth_of_an_outcome_that_the_baseline_missed():
    made = replace(confusion([[1, 0], [0, 1]]), repeats=np.array([0.0]))
    assert measures.kappa_persistent(replace(made, pairs=np.array([0.05])))[0] == 1.0
    assert np.isnan(measures.kappa_persistent(replace(made, pairs=np.array([0.049])))[0])


def test_a_precision_is_defined_from_exactly_a_twentieth_of_a_prediction():
    assert measures.precision(confusion([[0.05, 0], [0, 0.049]]))[0].tolist() == pytest.approx(
        [1.0, np.nan], nan_ok=True
    )


def test_the_largest_of_no_classes_weighs_nothing():
    assert measures.largest(np.zeros((2, 0))).tolist() == [0.0, 0.0]
