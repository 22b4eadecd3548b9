"""Every experiment at reduced size: it says what its paper says, and depends on its seed by chance only."""

from __future__ import annotations

import gzip
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from streamwatch.papers.catalogue import KINDS
from streamwatch.papers.commands import app
from streamwatch.papers.comparison import read_recording
from streamwatch.papers.random_alarms import LATEST, LEADER, LOWEST, TIES, _majorities
from streamwatch.papers.result import Effort, Figure, Line, Panel, draw_figure, drawn, markdown, over_runs
from tests.commands import CliRunner
from tests.tiers import rotated

pytestmark = pytest.mark.slow
NAMES = [kind.name for kind in KINDS]
ELEC2 = Path(__file__).parents[1] / "golden" / "elec2_predictions.csv.gz"


@cache
def result(name, seed=1):
    (kind,) = [kind for kind in KINDS if kind.name == name]
    return kind.run(Effort(seed, reduced=True, recording=ELEC2))


def number(name, table, row, column):
    """Cell of the table whose title begins so, of the row and column that are called so."""
    (found,) = [t for t in result(name).tables if t.title.startswith(table)]
    (cells,) = [r for r in found.rows if r[0] == row]
    (at,) = [i for i, heading in enumerate(found.headings) if heading == column]
    return cells[at]


@pytest.mark.parametrize("name", NAMES)
def test_every_table_is_whole_and_every_figure_can_be_drawn(name, tmp_path):
    found = result(name)
    assert found.tables
    for table in found.tables:
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.headings)}
        lines = markdown(table).splitlines()
        assert sum(line.startswith("|") for line in lines) == len(table.rows) + 2
    for figure in found.figures:
        assert draw_figure(figure, tmp_path).stat().st_size > 5_000


@pytest.mark.parametrize("name", rotated(NAMES))
def test_another_seed_changes_every_number_within_its_error(name):
    """Within 10 standard errors, of few runs each, and 19 of 20 within 4; half a last digit is rounding."""
    one, other = result(name).numbers(), result(name, seed=2).numbers()
    assert one.keys() == other.keys()
    distances = []
    for key, first in one.items():
        second = other[key]
        if math.isnan(first.value) or math.isnan(second.value):
            continue
        error = math.hypot(*(0.0 if math.isnan(m.error) else m.error for m in (first, second)))
        distances.append(abs(first.value - second.value) / (error + 0.5 * 10.0**-first.decimals))
        assert distances[-1] < 10, (key, first, second)
    assert np.quantile(distances, 0.95) < 4


@pytest.mark.parametrize("name", ["comparison", "optimal"])
def test_an_equal_seed_gives_equal_numbers(name):
    (kind,) = [kind for kind in KINDS if kind.name == name]
    again = kind.run(Effort(1, reduced=True, recording=ELEC2)).numbers()
    for key, found in result(name).numbers().items():
        assert found.value == again[key].value or math.isnan(found.value), key


def test_what_remembers_everything_is_above_holdout_and_what_fades_is_not():
    """By hand: (1/n)Σp(t) = .10 + .40·2000·(1 − e^(−10))/20000 = .1400 beside .1000 (Gama et al. 2009)."""
    title = "Error at outcome 20,000"
    for row, expected in {"holdout": 0.1, "prequential": 0.14, "fading .999": 0.1}.items():
        found = number("holdout", title, row, "found")
        assert found.value == pytest.approx(expected, abs=4 * max(found.error, 0.0025)), row
    assert number("holdout", title, "prequential", "found").value > 0.13


def test_q_of_a_window_and_of_a_factor_tell_the_same_and_that_of_all_lags_behind():
    title, column = "Q = ln", "correlation with last 250"
    assert number("comparison", title, "fading .995", column).value > 0.95
    assert number("comparison", title, "all outcomes", column).value < 0.9


def test_mcnemar_over_all_outcomes_does_not_come_back():
    column = "looks beyond it since it first was"
    assert number("comparison", "McNemar", "all outcomes", column).value > 0.99
    assert number("comparison", "McNemar", "last 1,000", column).value < 0.9


def test_the_papers_page_hinkley_is_quicker_and_less_sure_the_more_it_forgets():
    title = "Outcomes from a drift to its alarm, the paper's"
    forgetful, all_of_it = (
        number("page-hinkley", title, row, "false alarms").value for row in ("0.0001", "0")
    )
    assert forgetful > all_of_it
    for drift in (1, 2, 3):
        column = f"drift {drift}, found"
        values = [number("page-hinkley", title, row, column).value for row in ("0.0001", "1e-08", "0")]
        assert values[0] < values[2]
        assert values[1] == pytest.approx(values[2], rel=0.01)


def test_noise_of_windows_and_factors_is_that_of_their_effective_sample_size():
    title = "Windows and fading factors of equal"
    (table,) = [t for t in result("windows").tables if t.title.startswith(title)]
    for row in table.rows:
        assert row[2].value == pytest.approx(row[1].value, abs=4 * row[2].error), row[0]


def test_elec2_is_that_of_the_literature_and_every_classifier_of_five_attributes_loses_to_no_change():
    title = "The stream"
    assert round(number("dependence", title, "P(M)", "found").value, 2) == 0.58
    assert round(number("dependence", title, "P(T)", "found").value, 2) == 0.85
    assert round(-number("dependence", title, "Δ(47)", "found").value, 2) == 0.02  # printed as Δ(48)
    assert round(number("dependence", title, "Δ(48)", "found").value, 3) == -0.002
    (table,) = [t for t in result("dependence").tables if t.title.startswith("As recorded")]
    assert len(table.rows) == 6
    for row in table.rows:
        cells = dict(zip(table.headings, row, strict=True))
        assert cells["κ"].value > 0 > cells["κ_per"].value
        assert cells["κ⁺"].value == 0
        assert cells["κ_per, shuffled"].value > 0


def test_temporal_correction_comes_to_the_best_there_is_and_gains_nothing_without_dependence():
    title = "Synthetic labels"
    for row in ("0.0", "0.3", "0.6", "0.8", "0.9"):
        corrected = number("dependence", title, row, "temporal correction")
        best = number("dependence", title, row, "best with x and the last label").value
        assert best - 0.012 < corrected.value < best + 0.004, row
    gains = [
        number("dependence", title, row, "temporal correction").value
        - number("dependence", title, row, "knows x").value
        for row in ("0.0", "0.3", "0.6", "0.8", "0.9")
    ]
    assert gains == sorted(gains)
    assert abs(gains[0]) < 0.01


def test_random_alarms_raise_accuracy_where_labels_come_in_runs_and_cost_it_where_they_do_not():
    title = "Accuracy of naive Bayes"
    for row in ("as it is", "order of labels kept"):
        assert number("random-alarms", title, row, "p = 0.1").value > (
            number("random-alarms", title, row, "never").value + 0.05
        )
    assert number("random-alarms", title, "shuffled", "p = 0.1").value < (
        number("random-alarms", title, "shuffled", "never").value - 0.02
    )
    majority = "Accuracy of the majority"
    for ties in TIES:
        row = f"as recorded, {ties}"
        assert number("random-alarms", majority, row, "p = 1").value == pytest.approx(
            number("random-alarms", majority, row, "no change").value, abs=1e-4
        )
    keeps, lowest, latest = (
        number("random-alarms", majority, f"as recorded, {ties}", "p = 0.1").value
        for ties in (LEADER, LOWEST, LATEST)
    )
    assert keeps < lowest < latest


@pytest.mark.parametrize("ties", TIES)
def test_a_majority_with_ties_is_counted_from_the_label_before_its_alarm_on(ties):
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 400)
    starts = sorted(rng.choice(np.arange(1, 400), 60, replace=False).tolist())
    leader = 0
    for t, answer in enumerate(_majorities(truth, 3, starts, ties).tolist()):
        if t == 0:
            assert answer == 0
            continue
        begun = max([0, *(s - 1 for s in starts if s <= t)])
        counts = np.bincount(truth[begun:t], minlength=3)
        best = np.flatnonzero(counts == counts.max()).tolist()
        if ties == LOWEST:
            expected = best[0]
        elif ties == LATEST:
            expected = next(y for y in truth[begun:t][::-1].tolist() if y in best)
        else:
            leader = leader if leader in best else int(truth[t - 1])
            expected = leader
        assert answer == expected, t


def test_the_learner_that_reacts_is_before_the_one_that_is_better_on_average_once_drifts_weigh_more():
    title, row = "Accuracy and drift-weighted", "runs in which quick is before slow"
    by_weight = [
        number("weighted", title, row, f"weighted, {signal}").value
        for signal in ("own drifts", "shared ADWIN", "known drifts")
    ]
    assert by_weight == [1.0, 1.0, 1.0]
    assert number("weighted", title, row, "accuracy").value < 1.0


def test_the_longer_a_memory_the_deeper_the_fall_and_the_later_the_recovery():
    (table,) = result("recovery").tables
    found = {row[1]: row for row in table.rows if row[0].startswith("waveforms")}
    depths = [found[name][3].value for name in ("remembers 250", "remembers 2,000", "remembers all")]
    assert depths == sorted(depths)
    assert found["remembers 250"][4].value < found["remembers 2,000"][4].value
    assert found["remembers all"][5].value == 0.0


def test_a_command_prints_the_tables_and_draws_the_figures(tmp_path):
    arguments = ["comparison", "--reduced", "--markdown", "--figures", str(tmp_path)]
    printed = CliRunner().invoke(app, arguments)
    assert printed.exit_code == 0, printed.output
    for table in result("comparison").tables:
        assert markdown(table) in printed.stdout
    assert len(list(tmp_path.glob("*.png"))) == len(result("comparison").figures)


def test_a_recording_that_cannot_be_used_is_refused_with_what_was_expected(tmp_path):
    absent = CliRunner().invoke(app, ["dependence"])
    assert absent.exit_code == 2
    assert "expected --recording FILE" in absent.output
    wrong = tmp_path / "answers.csv"
    for text, message in (
        ("label,m\na,b\n", "y_true"),
        ("y_true,m\na,a\nb,a\n", "at least 2,000 rows, got 2"),
        ("y_true\n" + "a\nb\n" * 1_000, "a column of answers per classifier"),
        ("y_true,m\n" + "a,a\n" * 2_000, "at least two classes in y_true, got a only"),
    ):
        wrong.write_text(text)
        for name in ("dependence", "imbalance", "windows", "dependent-losses"):
            refused = CliRunner().invoke(app, [name, "--reduced", "--recording", str(wrong)])
            assert refused.exit_code == 2
            assert message in " ".join(refused.output.split())
    packed = tmp_path / "answers.csv.gz"
    packed.write_bytes(gzip.compress(b"y_true,m\n" + b"a,a\nb,b\n" * 2_000)[:-20])
    for path, text in ((packed, None), (wrong, "y_true,m\n" + "a,a\n" * 2_000 + "x" * 200_000)):
        if text is not None:
            path.write_text(text)
        refused = CliRunner().invoke(app, ["random-alarms", "--recording", str(path)])
        assert refused.exit_code == 2
        assert f"{path.name} cannot be read" in refused.output.replace("\n", "")
    wrong.write_text("y_true\n")
    assert CliRunner().invoke(app, ["random-alarms", "--recording", str(wrong)]).exit_code == 2


def test_a_recording_may_have_a_byte_order_mark_and_blank_lines_at_its_end(tmp_path):
    (tmp_path / "answers.csv").write_bytes(b"\xef\xbb\xbfy_true,m\n" + b"a,a\nb,b\n" * 2_000 + b"\n\n")
    found = read_recording(tmp_path / "answers.csv")
    assert (found.labels, len(found.true_class), list(found.answers)) == (("a", "b"), 4_000, ["m"])


def test_a_folder_that_takes_no_figures_is_refused_before_anything_runs(tmp_path, monkeypatch):
    (kind,) = [kind for kind in KINDS if kind.name == "holdout"]
    monkeypatch.setattr("streamwatch.papers.holdout.KIND", replace(kind, run=pytest.fail))
    (tmp_path / "file").touch()
    refused = CliRunner().invoke(app, ["holdout", "--figures", str(tmp_path / "file" / "pictures")])
    assert refused.exit_code == 2
    assert "cannot be written" in " ".join(refused.output.split())


def test_a_number_of_a_single_run_says_that_its_error_is_not_known():
    assert over_runs([3.0], 1).text() == "3.0 ± ?"
    assert over_runs([3.0, 3.0], 1).text() == "3.0"
    assert over_runs([], 1).text() == "–"


def test_a_window_of_a_thousand_is_the_most_like_adwin_and_the_shorter_ones_the_more_restless():
    title = "Accuracy of ht@8 as recorded"
    far, restless = (
        [number("windows", title, f"sliding {size}", column).value for size in ("100", "1,000", "10,000")]
        for column in ("mean distance from ADWIN", "mean change in 100 outcomes")
    )
    assert far[1] == min(far)
    assert restless == sorted(restless, reverse=True)


def test_mcnemar_calls_equal_classifiers_different_the_oftener_the_more_outcomes_there_are():
    (figure,) = result("validation").figures
    lines = {line.label: line.y for line in figure.panels[0].lines}
    assert lines["McNemar"][-1] > lines["McNemar"][0]
    assert lines["McNemar"][-1] > lines["Wilcoxon"][-1]
    column = "cv, found"
    (table, *_) = result("validation").tables
    for test, line in lines.items():
        assert line[-1] == pytest.approx(
            number("validation", table.title, f"{test}, prequential", column).value
        )


def test_what_is_named_is_named_in_the_picture_and_one_scale_shows_what_moves():
    points = Line("others", np.array([1.0, 2.0]), np.array([1.0, 3.0]), dots=True, names=("ADWIN", "DDM"))
    moved = Line("others", np.array([7.0]), np.array([9.0]), dots=True)
    panels = (Panel("a", "x", "y", (points,)), Panel("b", "x", "y", (moved,)))
    canvas = drawn(Figure("f", "title", panels, beside=True))
    first, second = canvas.axes
    assert {text.get_text() for text in first.texts} == {"ADWIN", "DDM"}
    assert first.get_xlim() == second.get_xlim()
    assert first.get_ylim() == second.get_ylim()


def test_no_legend_hides_what_is_drawn():
    for name in ("windows", "detectors"):
        (figure,) = result(name).figures
        canvas = drawn(figure)
        canvas.canvas.draw()
        for axes in canvas.axes:
            legend = axes.get_legend().get_window_extent()
            assert legend.x0 >= axes.get_window_extent().x1


def test_the_measures_of_the_papers_confusion_are_those_it_prints():
    (table,) = [t for t in result("imbalance").tables if t.title.startswith("The worked example")]
    for name, printed, found in table.rows:
        assert found.value == pytest.approx(float(printed.replace("−", "-")), abs=0.0051), name


def test_a_majority_of_a_window_has_periods_of_positive_kappa_and_a_tree_of_negative_gain_over_the_majority():
    (table,) = [t for t in result("imbalance").tables if t.title.startswith("Share of outcomes")]
    majority, tree = table.rows
    cells = dict(zip(table.headings, majority, strict=True))
    assert cells["κ"].value > 0.05 < cells["H"].value
    assert cells["κ_m"].value < 0.05
    assert dict(zip(table.headings, tree, strict=True))["κ_m below −.01"].value > 0.01


def test_the_gain_over_the_majority_turns_negative_as_classes_get_unequal_and_kappa_does_not():
    title = "A classifier made for equal classes"
    for row in ("0.1", "0.03", "0.01"):
        assert number("imbalance", title, row, "κ").value > 0 > number("imbalance", title, row, "κ_m").value
    assert number("imbalance", title, "0.5", "normalised: 0 to best").value == pytest.approx(1.0, abs=0.01)


def test_mcnemar_calls_equal_classifiers_different_more_often_than_tests_over_folds():
    title, column = (
        "Share of runs in which a test calls two classifiers different at .05; equal",
        "split, found",
    )
    mcnemar = number("validation", title, "McNemar, prequential", column).value
    assert mcnemar > 0.15
    for test in ("sign", "Wilcoxon"):
        assert number("validation", title, f"{test}, prequential", column).value < mcnemar


def test_mcnemar_finds_noise_in_the_pairs_of_all_folds_and_folds_differ_as_much_as_noise_costs():
    title = "What the tests of difference go by"
    for scheme in ("bootstrap", "cv", "split"):
        row = f"{scheme}, 10% more wrong"
        one, every, lost, deviation = (
            number("validation", title, row, column).value
            for column in (
                "McNemar on one fold",
                "McNemar on all folds",
                "accuracy lost",
                "its sd over folds",
            )
        )
        assert every > one + 0.05
        assert 0 < lost < 2 * deviation


def test_the_worked_example_of_ten_folds_is_that_of_an_exact_test():
    """By SciPy: wilcoxon(differences).pvalue is .009766, binomtest(8, 10).pvalue .109375."""
    title = "The worked example of ten folds"
    assert number("validation", title, "Wilcoxon, p", "found").value == pytest.approx(0.009766, abs=1e-6)
    assert number("validation", title, "sign test, p", "found").value == pytest.approx(0.109375)


def test_at_an_equal_rate_of_false_alarms_a_larger_change_is_seen_sooner():
    title = "Mean delay at 20"
    for row in ("streamwatch page_hinkley", "streamwatch adwin", "streamwatch cusum"):
        late = [number("detectors", title, row, f"step .2 to {to}").value for to in (".25", ".3", ".5")]
        assert late == sorted(late, reverse=True), row


def test_losses_that_go_together_cost_hddm_a_at_its_defaults_many_false_alarms_and_ewma_few():
    title, column = "Detectors as published: losses that go", "false alarms in 100,000"
    few = number("detectors", title, "streamwatch ewma", column).value
    assert number("detectors", title, "streamwatch hddm_a", column).value > 100 > 3 * few
    assert number("detectors", title, "river HDDMA", column).value > 100


def test_redrawn_losses_raise_few_false_alarms_where_those_that_go_together_raise_many():
    """Per 100,000 outcomes at ρ = .8; shuffled losses, which detectors are made for, raise hardly any."""
    title = "Detectors as published: losses repeat, ρ = .8"
    for row in ("adwin", "ddm", "hddm_a"):
        false = {
            version: number("dependent-losses", title, row, f"false alarms, {version}").value
            for version in ("shuffled", "ordered", "thinned", "redrawn")
        }
        assert false["ordered"] > 60
        assert 5 * max(false["shuffled"], false["thinned"], false["redrawn"]) < false["ordered"], row


def test_errors_are_independent_under_the_first_two_conditions_of_the_proposition_and_not_under_the_third():
    (table,) = [t for t in result("dependent-losses").tables if t.title.startswith("Correlation of an error")]
    found = [row[-1] for row in table.rows]
    for index, row in enumerate(table.rows):
        assert found[index].value == pytest.approx(row[-2].value, abs=4 * max(found[index].error, 0.004))
    assert max(abs(found[0].value), abs(found[1].value)) < 0.02
    assert 0.035 < found[2].value < found[3].value


def test_what_correlates_in_recorded_losses_is_gone_once_they_are_redrawn_or_shuffled():
    title = "Correlation of a recorded loss"
    assert number("dependent-losses", title, "as recorded", "ordered").value > 0.4
    assert abs(number("dependent-losses", title, "as recorded", "redrawn").value) < 0.05
    assert abs(number("dependent-losses", title, "shuffled", "ordered").value) < 0.05


def test_classifiers_are_never_better_than_the_optimum_by_more_than_chance():
    (table,) = [t for t in result("classifiers").tables if "ensembles" in t.title]
    for row in table.rows:
        cells = dict(zip(table.headings, row, strict=True))
        optimum = cells["Opt."]
        for name in ("NB", "SGD", "DWM", "OZAB"):
            error = math.hypot(optimum.error, cells[name].error)
            assert cells[name].value > optimum.value - 4 * error, (row[0], name)
