"""What begins anew after a corrected mapping or `state reset`, and what goes on, counted by hand."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from streamwatch.admin.state_verify import verified
from streamwatch.assembly.changes import check_changes
from streamwatch.assembly.reset import Reset, lost, perform
from streamwatch.cli import app
from streamwatch.edge.stores.kind import StateInUse, StateRefused
from streamwatch.edge.web.routes.overview import overview
from streamwatch.settings import Settings
from streamwatch.settings.differences import Unreadable
from tests.assembly.lives import DOCUMENT, START_MS, Life, Row, stream, with_value
from tests.commands import CliRunner

pytestmark = pytest.mark.slow


def by_models(start: int, stop: int, waiting: int = 3) -> list[Row]:
    """Predictions of m and n, in turn; every fifth is wrong, the last have no label."""
    rows = stream(start, stop, waiting=waiting)
    return [
        Row(r.topic, 0, r.offset, r.timestamp, r.value.replace(b'"m"', b'"n"') if r.offset % 2 else r.value)
        for r in rows
    ]


@pytest.fixture(scope="module")
def of_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state of two models: of 40 ids each other one, the last three wait."""
    directory = tmp_path_factory.mktemp("of-two") / "state"
    life = Life(DOCUMENT, directory)
    life.feed(by_models(0, 40))
    life.commit()
    life.close()
    return directory


@pytest.fixture
def directory(of_two: Path, tmp_path: Path) -> Path:
    return shutil.copytree(of_two, tmp_path / "state")


def sound(directory: Path) -> None:
    faults = [(check.what, check.faults) for check in verified(directory) if not check.good]
    assert faults == []


def test_another_forgetting_begins_measures_of_scores_anew_and_says_so(directory: Path) -> None:
    forgetting = ["landmark", "fading", {"sliding": {"size": 500}}, "adwin"]
    life = Life(with_value(DOCUMENT, "monitors.forgetting", forgetting), directory)
    [said] = life.events("setting_changed")
    begun = [name for name in life.state.resumed.restarted if name != "sliding:500"]
    assert (len(begun), begun[0].startswith("log loss")) == (1, True)
    assert "all measures of scores" in said["effect"]
    assert (life.value("accuracy_ratio", "landmark", "m"), life.value("log_loss", "landmark", "m")) == (
        pytest.approx(15 / 19),
        None,
    )
    life.close()


ALIASES = with_value(DOCUMENT, "topics.predictions.mapping.classes", {"x": "a"})


def test_class_aliases_begin_an_epoch_and_estimates_anew_and_say_what_was_before(directory: Path) -> None:
    (result,) = check_changes(Life(ALIASES, shutil.copytree(directory, directory.with_name("seen"))).settings)
    life = Life(ALIASES, directory)
    assert "estimates begin anew of m, n" in result.details
    assert "3 predictions of theirs wait as they were read under the old mapping" in result.details
    assert life.state.resumed.begun == ("m", "n")
    assert life.state.processor.positions  # reading goes on where it was
    life.feed(by_models(40, 60, waiting=0))
    life.commit()
    assert life.value("outcomes_total", "m") == 10
    details = life.report().details["m"]
    assert details["evaluation_since_timestamp_seconds"] == (START_MS + 2_000 * 39) / 1_000
    assert details["evaluation_changed"] == "topics.predictions[predictions].mapping.classes"
    assert details["evaluation_outcomes_before"] == 19  # of the even ids up to 36
    assert details["evaluation_began_anew"] is True
    row = overview(life.report()).rows["m"]
    assert row["evaluation_outcomes_before"] == 19
    life.close()
    again = Life(ALIASES, directory)
    assert again.report().details["m"]["evaluation_outcomes_before"] == 19
    again.close()
    sound(directory)


def test_a_start_that_was_killed_before_its_first_commit_has_changed_nothing(directory: Path) -> None:
    stated: list[list[dict[str, Any]]] = []
    for _ in range(2):
        killed = Life(ALIASES, directory)
        killed.feed(by_models(40, 50))
        stated.append([{**event, "timestamp": ""} for event in killed.events("setting_changed")])
        killed.close()
    assert stated[0] == stated[1] != []
    back = Life(DOCUMENT, directory)
    assert back.events("setting_changed") == []
    assert back.value("outcomes_total", "m") == 19
    assert "evaluation_changed" not in back.report().details["m"]
    back.close()


def test_the_same_numbers_come_of_a_model_begun_anew_as_of_one_never_seen_before(
    directory: Path, tmp_path: Path
) -> None:
    life = Life(ALIASES, directory)
    fresh = Life(ALIASES, tmp_path / "fresh")
    for each in (life, fresh):
        each.feed(by_models(40, 80))
    for name in ("accuracy_ratio", "kappa", "errors_total"):
        one, other = (
            {f.name: dict(f.samples) for f in each.report().families}.get(name) for each in (life, fresh)
        )
        assert one == other
    life.close()
    fresh.close()


def test_a_mapping_that_names_its_model_concerns_that_model_alone(tmp_path: Path) -> None:
    topics: dict[str, Any] = {
        "predictions": [
            {"name": "predictions", "mapping": {"model": "=m"}},
            {"name": "others", "mapping": {"model": "=n"}},
        ],
        "labels": ["labels"],
    }
    document = {**DOCUMENT, "topics": topics}

    def rows(start: int, stop: int) -> list[Row]:
        both = stream(start, stop, waiting=0)
        more = [Row("others", 0, r.offset, r.timestamp, r.value) for r in both if r.topic == "predictions"]
        return [*both, *more]

    life = Life(document, tmp_path / "state")
    life.feed(rows(0, 20))
    life.commit()
    life.close()
    topics["predictions"][0]["mapping"]["classes"] = {"x": "a"}
    life = Life(document, tmp_path / "state")
    life.feed(rows(20, 30))
    assert (life.value("outcomes_total", "m"), life.value("outcomes_total", "n")) == (10, 30)
    assert "evaluation_changed" in life.report().details["m"]
    assert "evaluation_changed" not in life.report().details["n"]
    life.close()


def test_another_utility_begins_an_epoch_of_the_models_it_concerns_and_leaves_their_numbers(
    directory: Path,
) -> None:
    document = with_value(DOCUMENT, "monitors.utility_by_model", {"m": "balanced"})
    life = Life(document, directory)
    assert life.value("outcomes_total", "m") == 19
    details = life.report().details
    assert details["m"]["evaluation_began_anew"] is False
    assert details["m"]["evaluation_outcomes_before"] == 19
    assert "evaluation_changed" not in details["n"]
    life.close()


def test_an_estimator_that_began_anew_shows_since_when(directory: Path) -> None:
    document = with_value(DOCUMENT, "monitors.detectors", [{"page_hinkley": {"threshold": 77.0}}, "adwin"])
    life = Life(document, directory)
    assert life.state.resumed.restarted == ("page_hinkley",)
    since = life.report().details["m"]["estimators_since_timestamp_seconds"]
    assert since == {"page_hinkley": (START_MS + 2_000 * 39) / 1_000}
    life.close()


def test_more_classes_may_be_allowed_and_a_model_that_had_too_many_begins_anew(tmp_path: Path) -> None:
    def classes(start: int, stop: int, names: str, model: str) -> list[Row]:
        rows: list[Row] = []
        for n in range(start, stop):
            at_ms = START_MS + 2_000 * n
            name = names[n % len(names)]
            made = {"id": f"{n}", "model": model, "prediction": name}
            rows.append(Row("predictions", 0, n, at_ms, json.dumps(made).encode()))
            reported = {"id": f"{n}", "label": name}
            rows.append(Row("labels", 0, n, at_ms + 1_000, json.dumps(reported).encode()))
        return rows

    document = with_value(DOCUMENT, "monitors.max_classes", 4)
    life = Life(document, tmp_path / "state")
    life.feed([*classes(0, 12, "abc", "few"), *classes(12, 40, "abcdefg", "many")])
    life.commit()
    life.close()
    life = Life(with_value(DOCUMENT, "monitors.max_classes", 40), tmp_path / "state")
    assert list(life.state.resumed.refused) == ["many"]
    assert life.value("outcomes_total", "few") == 12
    life.feed(classes(40, 60, "abcdefg", "few"))
    assert life.value("outcomes_total", "few") == 32
    assert life.report().details["few"]["classes"] == ("a", "b", "c", "f", "g", "d", "e")
    life.close()


def test_a_topic_that_is_added_is_read_from_the_clock_on_and_remains_so(directory: Path) -> None:
    document = with_value(DOCUMENT, "topics.predictions", ["predictions", "more"])
    clock_ms = START_MS + 2_000 * 39
    for _ in range(2):
        life = Life(document, directory)
        assert life.state.topics_since_ms == {"more": clock_ms}
        life.feed(by_models(40, 42))
        life.commit()
        life.close()


def test_a_topic_that_is_added_is_known_by_what_was_read_if_remembered_settings_are_not(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(_: bytes) -> Settings:
        raise Unreadable("no setting of this version: join.gone")

    monkeypatch.setattr("streamwatch.assembly.changes.settings_of", unreadable)
    document = with_value(DOCUMENT, "topics.predictions", ["predictions", "more"])
    settings = Settings(**{**document, "state": {"directory": str(directory)}})
    (result,) = check_changes(settings)
    assert result.details[-2:] == (
        "what has changed is not known: no setting of this version: join.gone",
        "read from the state's clock on: more",
    )
    life = Life(document, directory)
    assert life.state.topics_since_ms == {"more": START_MS + 2_000 * 39}
    life.close()


def test_a_segment_that_no_mapping_names_any_more_is_not_shown_and_ends(tmp_path: Path) -> None:
    key = "topics.predictions.mapping.segments"
    both = with_value(DOCUMENT, key, {"country": "value.country", "answer": "value.prediction"})
    life = Life(both, tmp_path / "state")
    life.feed(by_models(0, 40))
    life.commit()
    assert (counted := life.value("segment_outcomes_total", "m", "country", "x")) is not None
    life.close()
    one = with_value(DOCUMENT, key, {"answer": "value.prediction"})
    life = Life(one, tmp_path / "state")
    waited = [
        Row("labels", 0, n, START_MS + 2_000 * 40, b'{"id": "i%d", "label": "a"}' % n) for n in (37, 38, 39)
    ]
    life.feed(waited)  # of predictions that were read with the country
    assert life.value("segment_outcomes_total", "m", "country", "x") is None
    assert life.value("segment_outcomes_total", "m", "answer", "a") is not None
    assert set(dict(life.report().details["m"])["segments"]) == {"answer"}
    life.commit()
    life.close()
    life = Life(both, tmp_path / "state")
    life.feed(by_models(40, 50))
    assert 0 < (life.value("segment_outcomes_total", "m", "country", "x") or 0) < counted
    life.close()


def test_segments_added_to_a_state_know_the_label_before_their_first_outcome(tmp_path: Path) -> None:
    life = Life(DOCUMENT, tmp_path / "state")
    life.feed(stream(0, 100, waiting=0))
    life.commit()
    life.close()
    rows = stream(100, 104, waiting=0)
    said = [json.loads(row.value) for row in rows]
    by_id = {each["id"]: each["label"] for each in said if "label" in each}
    labels = [json.loads(row.value)["label"] for row in stream(99, 100, waiting=0) if row.topic == "labels"]
    labels += by_id.values()
    right = [each["prediction"] == by_id[each["id"]] for each in said if "prediction" in each]
    repeats = [label == before for before, label in pairwise(labels)]
    assert len(right) == len(repeats) == 4
    weights = [0.999**age for age in (3, 2, 1, 0)]
    accuracy, persistent = (
        sum(w for w, counts in zip(weights, which, strict=True) if counts) / sum(weights)
        for which in (right, repeats)
    )
    added = with_value(DOCUMENT, "topics.predictions.mapping.segments", ["country"])
    life = Life(added, tmp_path / "state")
    life.feed(rows)
    assert life.value("segment_outcomes_total", "m", "country", "x") == 4
    got = life.value("segment_kappa_persistent", "m", "country", "x")
    assert got == pytest.approx((accuracy - persistent) / (1 - persistent))
    life.close()


def test_a_topic_that_carries_something_else_is_refused_by_name(directory: Path) -> None:
    document = {**DOCUMENT, "topics": {"predictions": ["labels"], "labels": ["predictions"]}}
    with pytest.raises(StateRefused, match=r'topics: labels: \["labels"\] → \["predictions"\]: refused'):
        Life(document, directory)


def test_an_earlier_start_is_refused_and_a_later_one_is_not(tmp_path: Path) -> None:
    document = with_value(DOCUMENT, "kafka.start_from", "2023-01-01T00:00:00Z")
    life = Life(document, tmp_path / "state")
    life.feed(stream(0, 4))
    life.commit()
    life.close()
    Life(with_value(DOCUMENT, "kafka.start_from", "2023-02-01T00:00:00Z"), tmp_path / "state").close()
    with pytest.raises(StateRefused, match=r"start_from: .* earliest: refused.*state reset --all"):
        Life(DOCUMENT, tmp_path / "state")


def test_state_in_memory_leaves_a_state_on_disk_only_if_allowed_to(directory: Path) -> None:
    document = {**DOCUMENT, "state": {"kind": "memory"}}
    with pytest.raises(StateRefused, match="run --discard"):
        Life(document, directory)
    reported = {"kind": "memory", "directory": str(directory)}
    (result,) = check_changes(Settings(**{**DOCUMENT, "state": reported}))
    assert "run --discard" in result.what
    life = Life(document, directory, discard=True)
    assert not life.state.store.durable
    life.close()
    again = Life(DOCUMENT, directory)  # and what was left behind is as it was
    assert again.value("outcomes_total", "m") == 19
    again.close()
    assert not result.good


def test_a_model_begins_anew_with_its_folds_and_the_others_go_on(directory: Path) -> None:
    assert lost(directory, Reset(model="m"))[0].startswith("estimates, verdicts and history of m;")
    perform(directory, Reset(model="m"))
    sound(directory)
    life = Life(DOCUMENT, directory)
    assert life.events("setting_changed") == []
    assert life.value("outcomes_total", "m") is None
    assert life.value("outcomes_total", "n") == 18
    life.feed(by_models(40, 60, waiting=0))
    assert life.value("outcomes_total", "m") == 10
    assert life.report().details["m"]["evaluation_changed"] == "state reset"
    life.close()


def test_one_estimator_begins_anew_of_all_models_or_of_one(directory: Path) -> None:
    perform(directory, Reset(model="m", section="fading:0.999"))
    life = Life(DOCUMENT, directory)
    size = {
        (forgetting, model): life.value("effective_sample_size", forgetting, model)
        for forgetting in ("fading:0.999", "landmark")
        for model in "mn"
    }
    assert not size["fading:0.999", "m"]
    assert size["fading:0.999", "n"] == pytest.approx(18, rel=0.02)
    assert (size["landmark", "m"], size["landmark", "n"]) == (19, 18)
    life.close()
    perform(directory, Reset(section="fading:0.999"))
    life = Life(DOCUMENT, directory)
    assert not life.value("effective_sample_size", "fading:0.999", "n")
    assert life.value("outcomes_total", "n") == 18
    assert "fading:0.999" in life.report().details["n"]["estimators_since_timestamp_seconds"]
    life.close()
    sound(directory)


def test_the_join_begins_anew_and_labels_of_what_waited_count_as_before_the_start(directory: Path) -> None:
    (line,) = lost(directory, Reset(section="join"))
    assert line.startswith("3 predictions and ")
    perform(directory, Reset(section="join"))
    sound(directory)
    life = Life(DOCUMENT, directory)
    assert life.value("outcomes_total", "m") == 19
    assert (
        sum(
            dict(next(f for f in life.report().families if f.name == "pending_predictions").samples).values()
            or [0]
        )
        == 0
    )
    labels = [
        Row("labels", 0, n, START_MS + 2_000 * 60, json.dumps({"id": f"i{n}", "label": "a"}).encode())
        for n in (37, 38, 39)
    ]
    life.feed(labels)
    life.feed(by_models(61, 70, waiting=0))
    assert life.value("outcomes_total", "m") == 19 + 4
    life.commit()
    life.close()
    sound(directory)


def test_the_whole_state_begins_anew_and_is_still_the_same(directory: Path) -> None:
    before = Life(DOCUMENT, directory)
    identity, commits = before.state.store.identity, before.state.checkpoint.commits
    before.close()
    perform(directory, Reset(everything=True))
    life = Life(with_value(DOCUMENT, "topics.labels.namespace", ""), directory)
    assert (life.state.store.identity, life.state.checkpoint.commits) == (identity, commits + 1)
    assert dict(life.state.source_positions.positions) == {}
    life.feed(by_models(0, 40))
    life.commit()
    assert life.value("outcomes_total", "m") == 19
    life.close()
    again = Life(DOCUMENT, directory)
    assert again.value("outcomes_total", "m") == 19
    again.close()
    sound(directory)


def test_a_reset_of_what_is_not_there_is_refused_with_what_there_is(directory: Path) -> None:
    with pytest.raises(StateRefused, match="no model 'x'; it has 'm', 'n'"):
        lost(directory, Reset(model="x"))
    with pytest.raises(
        StateRefused, match="none called 'x'; it has 'join', 'estimators', 'comparisons', 'adwin'"
    ):
        perform(directory, Reset(section="x"))
    for wrong in ({}, {"model": "m", "everything": True}, {"model": "m", "section": "join"}):
        with pytest.raises(StateRefused):
            Reset(**wrong)
    perform(directory, Reset(everything=True))
    for call in (lost, perform):  # of a state that holds nothing, too
        with pytest.raises(StateRefused, match="no model 'm'; it has none"):
            call(directory, Reset(model="m"))


def test_a_reset_waits_for_no_daemon_and_changes_nothing_unless_confirmed(directory: Path) -> None:
    running = Life(DOCUMENT, directory)
    with pytest.raises(StateRefused) as refused:
        perform(directory, Reset(model="m"))
    assert isinstance(refused.value, StateInUse) or "in use" in str(refused.value)
    runner = CliRunner()
    refusal = runner.invoke(app, ["state", "reset", "--model", "m", "--yes", "-d", str(directory)])
    assert refusal.exit_code == 2
    assert "lost" not in refusal.stdout
    running.close()
    shown = runner.invoke(app, ["state", "reset", "--model", "m", "-d", str(directory)])
    assert shown.exit_code == 0
    assert shown.stdout.startswith("would be lost: estimates, verdicts and history of m;")
    assert "nothing was changed: add --yes" in shown.stdout
    life = Life(DOCUMENT, directory)
    assert life.value("outcomes_total", "m") == 19
    life.close()
    assert (
        runner.invoke(app, ["state", "reset", "--model", "m", "--yes", "-d", str(directory)]).exit_code == 0
    )
    assert runner.invoke(app, ["state", "reset", "--model", "zz", "-d", str(directory)]).exit_code == 2
    life = Life(DOCUMENT, directory)
    assert life.value("outcomes_total", "m") is None
    life.close()


def test_the_verdict_on_a_model_is_withheld_while_its_classes_have_nothing_in_common(tmp_path: Path) -> None:
    def rows(start: int, stop: int, names: str) -> list[Row]:
        found: list[Row] = []
        for n in range(start, stop):
            at_ms = START_MS + 20 * n
            made = {"id": f"{n}", "model": "m", "prediction": names[n % 2]}
            found.append(Row("predictions", 0, n, at_ms, json.dumps(made).encode()))
            reported = {"id": f"{n}", "label": "ab"[n % 2]}
            found.append(Row("labels", 0, n, at_ms + 10, json.dumps(reported).encode()))
        return found

    life = Life(
        {**DOCUMENT, "state": {"kind": "memory", "directory": str(tmp_path / "none")}}, tmp_path / "none"
    )
    life.feed(rows(0, 300, "xy"))
    assert "classes_disjoint" in life.report().details["m"]
    names = {family.name for family in life.report().families if family.samples}
    assert "verdict" not in names
    assert overview(life.report()).rows["m"]["verdict"] == "open"
    life.feed(rows(300, 302, "ab"))
    assert life.value("verdict", "m", "persistent") == 0


def of_folds(start: int, stop: int, waiting: int = 3) -> list[Row]:
    """Predictions of three folds of m each; the last ids have no label."""
    rows: list[Row] = []
    for row in stream(start, stop, waiting=waiting):
        if row.topic == "labels":
            rows.append(row)
            continue
        for fold in range(3):
            made = json.dumps({**json.loads(row.value), "fold": fold}).encode()
            rows.append(Row("predictions", 0, 3 * row.offset + fold, row.timestamp, made))
    return rows


def test_another_number_of_folds_is_refused_while_folds_wait_and_begins_them_anew_otherwise(
    tmp_path: Path,
) -> None:
    document = {**DOCUMENT, "folds": {"scheme": "cross-validation", "k": 3}}

    life = Life(document, tmp_path / "state")
    life.feed(of_folds(0, 20))
    life.commit()
    assert life.value("pending_predictions", "m") == 9
    life.close()
    other = {**DOCUMENT, "folds": {"scheme": "cross-validation", "k": 4}}
    with pytest.raises(StateRefused, match=r"folds.k: 3 → 4: refused.*state reset --section join"):
        Life(other, tmp_path / "state")
    perform(tmp_path / "state", Reset(section="join"))
    life = Life(other, tmp_path / "state")
    assert life.value("outcomes_total", "m") is None
    life.close()
    life = Life({**other, "folds": {"scheme": "cross-validation", "k": 5}}, tmp_path / "state")
    life.close()


def test_another_number_of_folds_is_refused_while_outcomes_of_folds_are_held_back(tmp_path: Path) -> None:
    order = {"order": "prediction_time", "reorder_window": "1h"}
    document = {**DOCUMENT, "join": order, "folds": {"scheme": "cross-validation", "k": 3}}
    life = Life(document, tmp_path / "state")
    life.feed(of_folds(0, 20, waiting=0))
    life.commit()
    assert (life.value("pending_predictions", "m"), life.value("outcomes_total", "m")) == (0, None)
    life.close()
    with pytest.raises(StateRefused, match=r"folds.k: 3 → 4: refused.*state reset --section join"):
        Life({**document, "folds": {"scheme": "cross-validation", "k": 4}}, tmp_path / "state")
    aliases = with_value(document, "topics.predictions.mapping.classes", {"x": "a"})
    life = Life(aliases, tmp_path / "state")
    (result,) = check_changes(Life(aliases, shutil.copytree(tmp_path / "state", tmp_path / "seen")).settings)
    assert "60 predictions of theirs wait as they were read under the old mapping" in result.details
    life.close()


def test_a_state_of_topics_is_refused_to_results_of_spark_until_it_is_emptied(directory: Path) -> None:
    document = {**DOCUMENT, "source": "results", "state": {"directory": str(directory)}}
    (result,) = check_changes(Settings(**document))
    assert not result.good
    assert "source: expected the one with which the state" in result.what
    assert "`streamwatch state reset --all`" in result.what
    perform(directory, Reset(everything=True))
    assert check_changes(Settings(**document)) == []


def test_topics_in_another_order_are_gone_on_with(tmp_path: Path) -> None:
    topics: dict[str, Any] = {"predictions": ["predictions", "more"], "labels": ["labels"]}
    life = Life({**DOCUMENT, "topics": topics}, tmp_path / "state")
    life.feed(stream(0, 20))
    life.commit()
    life.close()
    swapped = {**DOCUMENT, "topics": {**topics, "predictions": ["more", "predictions"]}}
    life = Life(swapped, tmp_path / "state")
    (event,) = life.events("setting_changed")
    assert (event["setting"], event["change"]) == ("topics.predictions", "converted at start")
    life.feed(stream(20, 40))
    assert life.value("outcomes_total", "m") == 34
    life.close()


def test_with_fewer_models_allowed_the_rest_begins_anew_sampled_labels_among_it(tmp_path: Path) -> None:
    mapping = {"label_probability": "value.pi", "min_label_probability": 0.1}
    document = with_value(DOCUMENT, "topics.predictions", [{"name": "predictions", "mapping": mapping}])
    rows = [
        Row(r.topic, 0, r.offset, r.timestamp, r.value.replace(b'"country"', b'"pi": 0.5, "country"'))
        for r in by_models(0, 40)
    ]
    life = Life(document, tmp_path / "state")
    life.feed(rows)
    life.commit()
    life.close()
    life = Life(with_value(document, "monitors.max_models", 1), tmp_path / "state")
    assert list(life.state.resumed.refused) == ["n"]
    assert life.value("outcomes_total", "m") == 19
    shown = {family.name: dict(family.samples) for family in life.report().families}
    assert list(shown["sampled_labels_total"]) == [("m",)]
    life.close()


@pytest.mark.parametrize(
    ("key", "value", "watched", "said"),
    [
        ("monitors.early_hints.delta", 0.1, "mn", "from now on"),
        ("monitors.early_hints.predictions", 200_000, "mn", "from now on"),
        ("monitors.early_hints.max_models", 200, "mn", "there is more room"),
        ("monitors.early_hints.max_models", 1, "m", "are not watched any more"),
        ("monitors.early_hints.reach", 4_097, "", "begins anew, early hints"),
        ("join.horizon", "7d", "", "early hints"),
    ],
)
def test_early_hints_begin_anew_only_where_it_is_said(
    key: str, value: object, watched: str, said: str, tmp_path: Path
) -> None:
    document = with_value(DOCUMENT, "monitors.early_hints", {"reach": 4_096})
    life = Life(document, tmp_path / "state")
    life.feed(by_models(0, 40))
    life.commit()
    life.close()
    changed = Life(with_value(document, key, value), tmp_path / "state")
    (event,) = changed.events("setting_changed")
    assert said in event["effect"]
    assert changed.state.checkpoint.pipeline.predictions.details().keys() == set(watched)
    changed.close()
