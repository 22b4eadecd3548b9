"""streamwatch as a metric of river's, in river's own evaluation with delayed labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from river import datasets, dummy, evaluate, metrics, naive_bayes

from streamwatch.history.evaluator import Evaluator
from streamwatch.river import Watch


@pytest.mark.slow
def test_it_counts_what_rivers_metrics_count_with_delayed_labels() -> None:
    def score(metric):
        model = naive_bayes.GaussianNB()
        return evaluate.progressive_val_score(datasets.Phishing(), model, metric, delay=100).get()

    assert score(Watch("accuracy_ratio")) == pytest.approx(score(metrics.Accuracy()), abs=1e-12)
    assert score(Watch("kappa", batch=1)) == pytest.approx(score(metrics.CohenKappa()), abs=1e-12)
    assert score(Watch("macro_f1_ratio")) == pytest.approx(score(metrics.MacroF1()), abs=1e-12)


def test_no_change_does_not_beat_no_change() -> None:
    watch = Watch("kappa_persistent")
    labels = np.repeat(np.random.default_rng(3).integers(0, 3, 500), 4)
    pairs = [({}, label) for label in labels.tolist()]
    evaluate.progressive_val_score(pairs, dummy.NoChangeClassifier(), watch)
    repeated = labels[1:] == labels[:-1]  # the first label is predicted by nobody, the second has no pair
    ours, theirs = repeated.mean(), repeated[1:].mean()
    assert watch.get() == pytest.approx((ours - theirs) / (1 - theirs), abs=1e-12)
    assert watch.evaluator.verdicts()["persistent"]["verdict"] == 0


@pytest.mark.slow
def test_it_starts_undefined_and_refuses_what_forgetting_cannot_do() -> None:
    watch = Watch()
    assert math.isnan(watch.get())
    watch.update("a", None)
    assert math.isnan(watch.get())
    with pytest.raises(ValueError, match=r"w must be 1, got 2\.0"):
        watch.update("a", "a", 2.0)
    with pytest.raises(NotImplementedError):
        watch.revert("a", "a")
    with pytest.raises(ValueError, match="batch must be at least 1"):
        Watch(batch=0)
    assert watch.clone().measure == "kappa_persistent"


def test_losses_are_better_if_they_are_smaller() -> None:
    assert Watch("kappa").bigger_is_better
    assert not Watch("log_loss").bigger_is_better
    assert not Watch("brier_score", "fading:0.999").bigger_is_better


def test_beside_another_model_of_its_evaluator_it_starts_undefined() -> None:
    evaluator = Evaluator()
    evaluator.update(["a"], ["a"], model="other")
    watch = Watch("accuracy_ratio", evaluator=evaluator)
    assert math.isnan(watch.get())
    watch.update("a", "b")
    assert watch.get() == 0.0


def test_a_measure_that_is_not_there_is_refused_before_anything_is_learned() -> None:
    with pytest.raises(KeyError, match="near: kappa_persistent"):
        Watch("kappa_persistant")
    with pytest.raises(KeyError, match=r"expected one of landmark, fading:0\.999"):
        Watch("kappa_persistent", "fading:0.99")


def test_a_class_that_is_none_is_refused_at_once_and_costs_no_other_outcome() -> None:
    watch = Watch("accuracy_ratio")
    watch.update(1, 1)
    with pytest.raises(ValueError, match=r"y_pred must be texts, whole numbers or booleans, got 0\.5"):
        watch.update(1, 0.5)
    watch.update(np.int64(1), np.bool_(False))
    assert watch.get() == 0.5
