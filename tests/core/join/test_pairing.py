"""Outcomes of two compared models on one id are pairs; the naive join beside says so for drawn streams."""

from __future__ import annotations

from streamwatch.core.records.events import PairedAnswer
from streamwatch.core.specs import ComparisonSpec, JoinSpec, champion_of
from tests.core.join.join_stream import DAY, Stream, label, label_for_all, predict
from tests.core.join.streams import answers

COMPARED = (ComparisonSpec("old", ("new*",)),)


def stream(**changed):
    return Stream(JoinSpec(comparisons=COMPARED, **changed))


def pairs(outcomes):
    return [(outcome.model, answers(outcome)) for outcome in outcomes]


def test_the_later_of_two_outcomes_carries_the_answer_of_the_earlier_one():
    for first, second in (("old", "new"), ("new", "old")):
        s = stream()
        s.feed(predict("1", "x", 0, first), predict("1", "y", 1, second))
        assert pairs(s.feed(label("1", "x", 2, first))) == [(first, None)]
        assert pairs(s.feed(label("1", "x", 3, second))) == [(second, (PairedAnswer(first, "x"),))]
        assert s.value("pairs_made_total") == 1


def test_one_label_for_all_pairs_every_challenger_with_the_champion_and_none_with_another():
    s = stream()
    s.feed(*(predict("1", "x", 0, model) for model in ("new-1", "old", "new-2", "third")))
    assert pairs(s.feed(label_for_all("1", "x", 1))) == [
        ("new-1", None),
        ("old", (PairedAnswer("new-1", "x"),)),
        ("new-2", (PairedAnswer("old", "x"),)),
        ("third", None),
    ]


def test_a_challenger_that_predicts_after_the_label_is_paired_too():
    s = stream()
    s.feed(predict("1", "x", 0, "old"), label_for_all("1", "x", 1))
    assert pairs(s.feed(predict("1", "z", 2, "new"))) == [("new", (PairedAnswer("old", "x"),))]


def test_models_that_got_different_labels_are_no_pair_and_are_counted():
    s = stream()
    s.feed(predict("1", "x", 0, "old"), predict("1", "x", 0, "new"))
    s.feed(label("1", "x", 1, "old"))
    assert pairs(s.feed(label("1", "y", 1, "new"))) == [("new", None)]
    assert (s.value("pairs_made_total"), s.value("pairs_labels_differ_total")) == (0, 1)


def test_what_is_withdrawn_or_expires_unlabelled_is_never_paired():
    s = stream(horizon_ms=1_000)
    s.feed(predict("1", "x", 0, "old"), predict("1", "x", 0, "new"), label("1", "x", 1, "new"))
    s.until(5_000)
    assert s.value("pairs_made_total") == 0


def test_an_assumed_class_is_a_label_like_any_other():
    s = stream(horizon_ms=1_000, assume="x")
    s.feed(predict("1", "x", 0, "old"), predict("1", "y", 0, "new"))
    assert pairs(s.until(5_000)) == [("old", None), ("new", (PairedAnswer("old", "x"),))]


def test_a_partner_that_comes_after_the_dedup_horizon_is_not_met_and_is_counted_as_expired():
    s = stream(dedup_horizon_ms=8_000, horizon_ms=DAY)
    # The first generation waits for nobody, as nobody was known when it was opened.
    s.feed(predict("0", "x", 0, "old"), predict("0", "x", 0, "new"), label_for_all("0", "x", 0))
    s.until(2_000)
    s.feed(predict("1", "x", 2_000, "old"), label("1", "x", 2_000, "old"), predict("1", "x", 2_000, "new"))
    s.feed(predict("2", "x", 2_000, "old"), predict("2", "x", 2_000, "new"), label_for_all("2", "x", 2_000))
    assert s.value("pairs_expired_total") == 0
    for second in range(3, 20):
        s.until(1_000 * second)
    assert s.value("pairs_expired_total") == 1
    assert pairs(s.feed(label("1", "x", 20_000, "new"))) == [("new", None)]
    assert s.value("pairs_made_total") == 2


def test_ids_of_other_namespaces_are_other_ids():
    s = stream()
    s.feed(predict("a\x1f1", "x", 0, "old"), predict("b\x1f1", "x", 0, "new"))
    assert pairs(s.feed(label_for_all("a\x1f1", "x", 1), label_for_all("b\x1f1", "x", 1))) == [
        ("old", None),
        ("new", None),
    ]


def test_nothing_is_paired_where_no_comparison_is_asked_for():
    s = Stream(JoinSpec())
    s.feed(predict("1", "x", 0, "old"), predict("1", "x", 0, "new"))
    assert pairs(s.feed(label_for_all("1", "x", 1))) == [("old", None), ("new", None)]


def test_the_first_comparison_that_has_both_models_names_the_champion():
    comparisons = (ComparisonSpec("a", ("b", "x*")), ComparisonSpec("b", ("*",)))
    assert champion_of(comparisons, "a", "b") == champion_of(comparisons, "b", "a") == "a"
    assert champion_of(comparisons, "c", "b") == "b"
    assert champion_of(comparisons, "a", "x-1") == "a"
    assert champion_of(comparisons, "a", "c") is None
    assert champion_of(comparisons, "b", "b") is None
