"""The benchmark's streams, detectors and page: what is induced, what is promised, what is written."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import betaln

from streamwatch.papers.benchmark import generated, induced, page
from streamwatch.papers.benchmark.contestants import BUDGET, CLOCK, Betting, Ladder, alarms, evidence, ladders
from streamwatch.papers.benchmark.experiment import NAMES, PUBLISHED, TUNED, best
from streamwatch.papers.benchmark.metrics import Rule, Run, World
from streamwatch.papers.benchmark.simulated import CALM, DEVELOPMENT, HELD_OUT, Simulated, dominates, worlds
from streamwatch.papers.benchmark.simulated import Outcome as RungOutcome
from streamwatch.papers.benchmark.simulated import _rung as frozen_rung
from streamwatch.papers.commands import app
from streamwatch.papers.result import Measured, Table
from tests.commands import CliRunner

MOA_JARS = Path(__file__).parents[2] / ".cache" / "moa" / "libs"
DOCS = Path(__file__).parents[2] / "docs"


def recorded(n=4_000, classes=3):
    """Attributes that tell the row and column they are of."""
    rng = np.random.default_rng(0)
    x = np.arange(n)[:, None] + np.arange(4)[None, :] / 10.0
    return induced.Recorded(induced.DataSet("some", n, 500), x, rng.integers(classes, size=n))


def test_a_swap_relabels_one_class_from_the_onset_on():
    given = recorded()
    found = induced.induce(given, "label swap", 0, np.random.default_rng(1))
    before = given.true_class[found.rows]
    changed = found.true_class != before
    assert not changed[found.positions < found.onset].any()
    (label,) = np.unique(before[changed])
    after = found.positions >= found.onset
    assert (changed[after] == (before[after] == label)).all()
    assert len(np.unique(found.true_class[changed])) == 1


def test_of_one_class_three_of_four_are_left_out_from_the_onset_on():
    given = recorded()
    found = induced.induce(given, "class prior", 0, np.random.default_rng(2))
    whole = np.bincount(given.true_class, minlength=3)
    left_out = whole - np.bincount(found.true_class, minlength=3)
    (label,) = np.flatnonzero(left_out)
    after = (len(given.x) - found.onset) * whole[label] / len(given.x)
    assert left_out[label] == pytest.approx(0.75 * after, abs=5 * math.sqrt(after))
    assert len(found.positions[found.positions < found.onset]) == found.onset


def test_filtering_leaves_out_what_is_above_the_median_of_one_attribute():
    given = recorded()
    found = induced.induce(given, "feature filtering", 0, np.random.default_rng(3))
    after = found.positions >= found.onset
    assert given.x[found.rows[after]].max() <= np.median(given.x) + 1.0
    assert after.sum() == pytest.approx((len(given.x) - found.onset) / 2, abs=100)


def test_a_permutation_is_one_for_all_instances_after_the_onset():
    given = recorded()
    found = induced.induce(given, "feature permutation", 0, np.random.default_rng(4))
    assert (found.permuted == (found.positions >= found.onset)).all()
    assert sorted(found.permutation) == [0, 1, 2, 3]


def test_a_gradual_drift_changes_ever_more_over_its_width():
    found = induced.induce(recorded(40_000), "feature permutation", 8_000, np.random.default_rng(5))
    since = found.positions - found.onset
    for quarter, expected in enumerate((0.125, 0.375, 0.625, 0.875)):
        within = (since >= 2_000 * quarter) & (since < 2_000 * (quarter + 1))
        assert found.permuted[within].mean() == pytest.approx(expected, abs=0.05)
    assert found.permuted[since >= 8_000].all()


def test_every_kind_begins_within_the_papers_region():
    for kind in induced.KINDS:
        onsets = [induced.induce(recorded(1_000), kind, 0, np.random.default_rng(k)).onset for k in range(50)]
        assert 500 <= min(onsets) < max(onsets) <= 800


def test_data_sets_are_read_and_what_is_absent_is_reported(tmp_path):
    (tmp_path / "NOAA.csv").write_text("1.5,2,0\n3,4,1\n5,6,7\n")
    (found,), absent = induced.read(tmp_path)
    assert found.x.tolist() == [[1.5, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert found.true_class.tolist() == [0, 1, 2]
    assert "NOAA" not in absent
    assert len(absent) == 6


@pytest.mark.parametrize("text", ["1,2,x\n", "1,2,0\n3,4,0\n"])
def test_a_data_set_of_another_form_is_refused(tmp_path, text):
    (tmp_path / "NOAA.csv").write_text(text)
    with pytest.raises(induced.DataError, match="expected"):
        induced.read(tmp_path)


def test_of_a_data_set_with_one_class_attributes_and_classes_are_counted(tmp_path):
    (tmp_path / "NOAA.csv").write_text("1,2,0\n3,4,0\n")
    with pytest.raises(induced.DataError, match="got 2 attributes and 1 classes"):
        induced.read(tmp_path)


def test_a_folder_without_any_is_refused(tmp_path):
    with pytest.raises(induced.DataError, match="expected some of"):
        induced.read(tmp_path)


def test_the_papers_functions_are_those_of_its_seed():
    """SEA's, as CapyMOA 0.9 with NumPy's seed 123 makes the paper's stream."""
    functions = generated.functions_of(generated.GENERATORS[1], 29, np.random.RandomState(123))
    assert functions == [
        1,
        4,
        2,
        4,
        3,
        1,
        4,
        3,
        2,
        4,
        2,
        4,
        2,
        1,
        3,
        4,
        2,
        1,
        4,
        1,
        3,
        4,
        2,
        1,
        2,
        1,
        2,
        3,
        4,
        1,
    ]


def test_a_stream_changes_where_the_paper_says():
    command = generated.command(generated.GENERATORS[1], [1, 4, 2], 2_000, 7)
    assert command.startswith(
        "ConceptDriftStream -s (ConceptDriftStream -s (generators.SEAGenerator -f 1 -i 7) -d ("
    )
    assert command.endswith(") -d (generators.SEAGenerator -f 2 -i 7) -p 22000 -w 2000 -r 7")
    assert generated.drifts_of(2, 2_000) == ((10_000, 12_000), (22_000, 24_000))


@pytest.mark.slow
@pytest.mark.skipif(not MOA_JARS.is_dir(), reason="make bench puts MOA there")
def test_the_papers_figures_on_a_synthetic_stream_are_found_to_the_alarm():
    from streamwatch.papers.benchmark.experiment import _counted, _hits, _paper_detectors  # noqa: PLC0415
    from streamwatch.papers.benchmark.metrics import stacked  # noqa: PLC0415

    hits = _hits(generated.published(MOA_JARS, generated.GENERATORS[2], 0))
    losses = stacked([hits])
    for name, detector in zip(NAMES, _paper_detectors(MOA_JARS, TUNED["abrupt"]), strict=True):
        found = _counted(detector, losses, hits, Rule(generated.MAX_DELAY))
        assert [found.true, found.false, found.missed] == PUBLISHED["synthetic"]["STAGGER, abrupt"][name], (
            name
        )


def test_simulated_losses_have_the_error_and_the_correlation_that_they_say():
    rng = np.random.default_rng(6)
    for rho in (0.0, 0.5, 0.8):
        losses = Simulated(0.2, 0.2, rho=rho).still(400_000, rng).astype(float)
        assert losses.mean() == pytest.approx(0.2, abs=0.01)
        assert np.corrcoef(losses[1:], losses[:-1])[0, 1] == pytest.approx(rho, abs=0.01)
    day = Simulated(0.2, 0.2, day=1_000, swing=0.5).still(1_000_000, rng).reshape(-1, 1_000).mean(axis=0)
    smooth = day.reshape(20, 50).mean(axis=1)
    assert smooth.max() == pytest.approx(0.3, abs=0.01)
    assert smooth.min() == pytest.approx(0.1, abs=0.01)
    risen = np.stack([Simulated(0.1, 0.3).changed(rng) for _ in range(50)])
    assert risen[:, :CALM].mean() == pytest.approx(0.1, abs=0.01)
    assert risen[:, CALM:].mean() == pytest.approx(0.3, abs=0.01)


def test_no_held_out_stream_is_a_development_one():
    assert not {each.name for each in DEVELOPMENT} & {each.name for each in HELD_OUT}
    for group in ("independent", "dependent"):
        for streams in (DEVELOPMENT, HELD_OUT):
            assert any(each.group == group for each in streams)
    assert [each.rho for each in worlds(0.2)] == [0.0, 0.5, 0.8, 0.0]


def test_evidence_is_a_sum_over_when_the_error_rose():
    """By SciPy's Beta function, each outcome that may be the last of the lower error on its own."""
    rng = np.random.default_rng(7)
    losses = np.concatenate([rng.random(160) < 0.1, rng.random(96) < 0.4]).astype(float)
    n, k = len(losses), losses.sum()
    best = k * math.log(k / n) + (n - k) * math.log(1 - k / n)
    total = 0.0
    for j in range(CLOCK, n, CLOCK):
        first, after = losses[:j].sum(), losses[j:].sum()
        if after / (n - j) > first / j:
            mixtures = betaln(first + 0.5, j - first + 0.5) + betaln(after + 0.5, n - j - after + 0.5)
            total += math.exp(mixtures - 2 * math.log(math.pi) - best)
    counts = np.concatenate([[0.0], losses.reshape(-1, CLOCK).sum(axis=1).cumsum()])
    assert evidence(counts) == pytest.approx(math.log(total))


@pytest.mark.slow
def test_betting_keeps_its_promise_and_finds_a_rise():
    rng = np.random.default_rng(8)
    for error in (0.02, 0.3):
        false = alarms(rng.random((60, 8_000)) < error, Betting(0.05, 8_000))
        assert sum(map(bool, false)) <= 9, error  # 3 expected at most; 10 or more has probability .001
    risen = alarms(np.stack([Simulated(0.1, 0.3).changed(rng) for _ in range(10)]), Betting())
    assert all(CALM < those[0] < CALM + 600 for those in risen)


@pytest.mark.parametrize(("delta", "within"), [(0.0, 1_000), (1.0, 1_000), (0.05, 10)])
def test_a_promise_that_is_none_is_refused(delta, within):
    with pytest.raises(ValueError, match="expected delta"):
        Betting(delta, within)


def test_every_detector_is_tried_equally_often():
    found = ladders(None)
    assert len(found) >= 9 + 7
    assert {len(ladder.rungs) for ladder in found} == {BUDGET}


def rungs(alarms_of):
    """A ladder each of whose rungs alarms where a function of its number says, in every run."""
    return Ladder(
        "some", "theirs", tuple(lambda losses, k=k: [alarms_of(k) for _ in losses] for k in range(BUDGET))
    )


def test_the_rung_that_is_tuned_is_that_of_the_highest_f1():
    run = Run(np.zeros(100, np.bool_), np.arange(100), ((50, 50),), 100)
    world = World("", Rule(20), (run, run))
    assert best(rungs(lambda k: [[60], [10, 60], [10]][k % 3] if k < 9 else []), [world]) == 6
    assert best(rungs(lambda _: []), [world]) == BUDGET - 1


def test_the_rung_that_is_frozen_is_the_laxest_before_one_that_breaks_the_promise():
    calm = [np.zeros((2, 100_000), np.bool_)]
    assert frozen_rung(rungs(lambda k: list(range(1, BUDGET - k))), calm) == BUDGET - 3
    assert frozen_rung(rungs(lambda _: [1, 2, 3]), calm) == -1
    assert frozen_rung(rungs(lambda _: []), calm) == 0
    # What is laxer than a rung that breaks it is not looked at.
    assert frozen_rung(rungs(lambda k: [1, 2, 3] if k == 4 else []), calm) == 5


def outcome(rate, delays, error=0.0):
    return RungOutcome("some", "theirs", "", Measured(rate, error), np.array([delays]))


def test_a_detector_is_dominated_by_one_that_is_clearly_sooner_with_no_more_false_alarms():
    late, soon = [100.0, 110.0, 120.0], [50.0, 61.0, 69.0]
    assert dominates(outcome(1.0, soon), outcome(1.0, late))
    assert not dominates(outcome(1.0, late), outcome(1.0, soon))
    assert not dominates(outcome(1.1, soon), outcome(1.0, late))
    assert dominates(outcome(1.1, soon, 0.1), outcome(1.0, late, 0.1))
    assert not dominates(outcome(1.0, [20.0, 110.0, 190.0]), outcome(1.0, late))
    assert not dominates(outcome(1.0, soon), outcome(1.0, []))


def test_a_part_is_written_between_its_marks():
    text = "a\n<!-- benchmark: frozen -->\nold\n<!-- end of frozen -->\nb\n"
    table = Table("t", ("x",), (("1",),))
    once = page.written(text, "frozen", [table])
    assert "old" not in once
    assert once.startswith("a\n<!-- benchmark: frozen -->\n\n**t**\n")
    assert once.endswith("<!-- end of frozen -->\nb\n")
    assert page.written(once, "frozen", [table]) == once
    with pytest.raises(page.PageError, match="benchmark: recorded"):
        page.written(text, "recorded", [table])


def test_the_published_page_has_every_part():
    page.check(DOCS / "evidence" / "detector-benchmark.md", list(page.PARTS))


@pytest.mark.parametrize("part", ["reproduced", "generated", "recorded"])
def test_what_needs_moa_is_refused_without_it(part):
    refused = CliRunner().invoke(app, ["benchmark", "--part", part])
    assert refused.exit_code == 2
    assert "--moa" in refused.output


def test_a_page_without_marks_is_refused(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("nothing\n")
    refused = CliRunner().invoke(app, ["benchmark", "--part", "calibration", "--write", str(path)])
    assert refused.exit_code == 2
    assert "benchmark: calibration" in refused.output
