"""`streamwatch.replay` of frames: the evaluator's numbers, whatever the frame is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import streamwatch
from streamwatch import Evaluator
from streamwatch.history.frames import CHUNK
from tests.history.test_evaluator import stream
from tests.tiers import few


def columns(count: int = 2_000) -> dict[str, np.ndarray]:
    true, predicted = stream(count)
    predicted[count // 2 :] = true[: count - count // 2]  # it falls
    names = np.array(["a", "b"])[np.arange(count) % 2]
    return {"label": true, "prediction": predicted, "who": names, "at": np.arange(count) * 1_000 + 10**12}


def structured(given: dict[str, np.ndarray]) -> np.ndarray:
    made = np.zeros(len(given["label"]), [(name, column.dtype) for name, column in given.items()])
    for name, column in given.items():
        made[name] = column
    return made


def categories(given: dict[str, np.ndarray]) -> pd.DataFrame:
    return pd.DataFrame(given).astype({"label": "category", "prediction": "category", "who": "category"})


def lists(given: dict[str, np.ndarray]) -> dict[str, list[object]]:
    return {name: column.tolist() for name, column in given.items()}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, categories, structured, lists])
def test_a_frame_of_any_make_gives_what_the_evaluator_gives(make) -> None:
    given = columns()
    evaluator = Evaluator()
    alarms = evaluator.update(given["label"], given["prediction"], model=given["who"], event_ms=given["at"])
    found = streamwatch.replay(make(given), model="who", event_ms="at", points=7, progress=False)
    assert list(found.alarms) == alarms
    assert alarms
    for model in ("a", "b"):
        assert found.evaluator.values(model) == evaluator.values(model)
    estimates = pd.DataFrame(found.estimates())
    chosen = estimates[(estimates.metric == "accuracy_ratio") & (estimates.forgetting == "landmark")]
    right = (given["label"] == given["prediction"])[given["who"] == "a"].mean()
    assert chosen[chosen.model == "a"].value.item() == pytest.approx(right, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("zone", few(["Europe/Berlin", None], 1))
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_times_of_frames_are_those_of_the_world_whatever_their_zone(make, zone: str | None) -> None:
    given = columns()
    naive = given["at"].astype("datetime64[ms]")
    frame = make({**given, "at": naive})
    if zone is not None and make is pl.DataFrame:
        frame = frame.with_columns(pl.col("at").dt.replace_time_zone("UTC").dt.convert_time_zone(zone))
    elif zone is not None:
        frame["at"] = frame["at"].dt.tz_localize("UTC").dt.tz_convert(zone)
    found = streamwatch.replay(frame, model="who", event_ms="at", progress=False)
    whole = streamwatch.replay(given, model="who", event_ms="at", progress=False)
    assert found.alarms == whole.alarms
    assert len({alarm.event_ms for alarm in found.alarms}) > 1


def test_estimates_and_curves_are_frames_of_polars_too() -> None:
    found = streamwatch.replay(pl.DataFrame(columns(500)), points=5, progress=False)
    assert pl.DataFrame(found.evaluator.rows()).height == pl.DataFrame(found.estimates()).height
    assert pl.DataFrame(found.estimates()).filter(metric="outcomes_total")["value"].to_list() == [500.0]
    assert pl.DataFrame(dict(found.curves["model"]))["outcome"].to_list() == [100, 200, 300, 400, 500]
    assert pl.DataFrame(found.alarm_columns()).height == len(found.alarms)


def test_what_a_cell_shows_of_a_result_is_a_line() -> None:
    found = streamwatch.replay(columns(), model="who", points=20, progress=False)
    stated = f"<Replayed: <Evaluator: 2 models, 2,000 outcomes>, {len(found.alarms)} alarms>"
    assert repr(found) == stated
    one = streamwatch.replay({"label": [1], "prediction": [1]}, progress=False)
    assert repr(one) == "<Replayed: <Evaluator: 1 model, 1 outcome>, 0 alarms>"


def test_verdicts_are_sentences_and_a_notebook_shows_them_with_names_as_text() -> None:
    names = np.array(["<b>good</b>", "bad"])[np.arange(12_000) % 2]
    label = np.array(["a", "b"])[(np.arange(12_000) // 6) % 2]
    predicted = np.where(names == "bad", np.where(label == "a", "b", "a"), label)
    given = {"label": label, "prediction": predicted, "who": names}
    found = streamwatch.replay(given, model="who", progress=False)
    stated = found.verdicts()
    assert list(stated) == ["bad", "<b>good</b>"], "those that are worse come first"
    assert stated["bad"].startswith("bad is worse than no change since outcome ")
    assert stated["<b>good</b>"].startswith("<b>good</b> is better than no change since outcome ")
    shown = found._repr_html_()
    assert "<li>bad is worse than no change" in shown
    assert "&lt;b&gt;good" in shown
    assert "<b>" not in shown


def test_curves_are_the_landmark_at_every_look() -> None:
    given = columns(1_000)
    found = streamwatch.replay(given, points=10, progress=False)
    curve = found.curves["model"]
    assert curve["outcome"].tolist() == list(range(100, 1_001, 100))
    hits = np.cumsum(given["label"] == given["prediction"])
    np.testing.assert_allclose(
        curve["accuracy_ratio:landmark"], [hits[n - 1] / n for n in range(100, 1_001, 100)]
    )
    assert set(found.alarm_columns()["model"]) == {"model"}


@pytest.mark.slow
def test_a_plot_has_the_accuracy_the_baselines_and_a_line_for_each_alarm(tmp_path) -> None:
    found = streamwatch.replay(columns(), points=20, progress=False)
    figure = found.plot()
    (axes,) = figure.axes
    labels = {text.get_text() for text in axes.get_legend().get_texts()}
    assert labels == {"accuracy, fading:0.999", "no change", "always the majority"}
    assert len(axes.lines) == 3 + len(found.alarms)
    figure.savefig(tmp_path / "plot.png")


def test_a_bar_is_shown_when_asked_for_and_reaches_its_end(capsys) -> None:
    streamwatch.replay(columns(200), points=0, progress=True)
    assert "100%" in capsys.readouterr().err
    streamwatch.replay(columns(200), points=0)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("changed", "error", "stated"),
    [
        ({"y_true": "truth"}, KeyError, "no column 'truth'"),
        ({"points": -1}, ValueError, "points must be at least 0"),
    ],
)
def test_what_a_frame_does_not_have_is_stated(changed, error, stated) -> None:
    with pytest.raises(error, match=stated):
        streamwatch.replay(columns(10), progress=False, **changed)


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="'prediction' must be as long as 'label'"):
        streamwatch.replay({"label": [1, 2], "prediction": [1]}, progress=False)


@pytest.mark.parametrize("scores", [["at"], [], np.array(["at", "label"])])
def test_scores_that_do_not_say_of_which_class_they_are_are_refused(scores: Any) -> None:
    with pytest.raises(TypeError, match=f"mapping of class to column, got {type(scores).__name__}"):
        streamwatch.replay(columns(50), scores=scores, progress=False)


def test_a_single_name_of_a_segment_is_refused() -> None:
    with pytest.raises(
        TypeError, match="segments must be a list of columns, or a mapping, got the text 'at'"
    ):
        streamwatch.replay(columns(50), segments="at", progress=False)


def test_without_looks_there_is_no_plot_and_without_rows_there_is_nothing() -> None:
    with pytest.raises(ValueError, match="points=0"):
        streamwatch.replay(columns(50), points=0, progress=False).plot()
    empty = streamwatch.replay({"label": [], "prediction": []}, progress=False)
    assert (empty.alarms, dict(empty.curves), empty.evaluator.models) == ((), {}, [])
    with pytest.raises(KeyError, match="model: no model has outcomes so far, got None"):
        empty.plot()


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.uint64])
def test_whole_numbers_are_numbered_as_texts_are(kind) -> None:
    """By table or one by one: the same classes in the same order, negative and far ones too."""
    chance = np.random.default_rng(1)
    values = chance.integers(3, 9, 3 * 400).astype(kind)
    if np.issubdtype(kind, np.signedinteger):
        values = -values
    values[[0, 1]] = np.iinfo(np.int8).max, values.min()
    if kind is np.int8:
        values[2] = np.iinfo(np.int8).min
    true, predicted = values[:600], values[600:]
    by_table, by_text = Evaluator(), Evaluator()
    by_table.update(true, predicted)
    by_text.update(true.astype(str), predicted.astype(str))
    assert by_table.values() == by_text.values()
    assert CHUNK > 0
