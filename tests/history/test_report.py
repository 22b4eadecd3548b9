"""`streamwatch report` of a replay: its numbers are the replay's, names are text, nothing is loaded."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from streamwatch.cli import app
from streamwatch.core.metrics.series import Family
from streamwatch.edge.daemon_api import Address, NotThere
from streamwatch.history.replay.replay import ReplayResult
from streamwatch.history.reporting.page import page, span
from streamwatch.history.reporting.sources import MOST_ALARMS, POINTS, Curves, Source, from_daemon, of_result
from streamwatch.history.reporting.writing import (
    Grid,
    Heading,
    Listing,
    Page,
    Picture,
    Text,
    curves,
    html,
    markdown,
    slug,
)
from tests.commands import CliRunner

HOSTILE = '<script>alert("x")</script>&|`_[a](b)'


class Seen(HTMLParser):
    """Tags, addresses and cells of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses, self.rows, self.images = set(), [], [], []
        self.title = self.answer = ""
        self.order, self._inside = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        given = dict(attrs)
        self.addresses += [value for name, value in attrs if name in {"src", "href", "srcset", "action"}]
        self._inside = given.get("class", tag)
        self.order += {"img": ["img"], "p": [self._inside]}.get(tag, [])
        self.order += ["table"] if tag == "table" else []
        if tag == "tr":
            self.rows.append([])
        if tag == "img":
            self.images.append(given["alt"])

    def handle_data(self, data):
        if self._inside == "h1":
            self.title += data.strip()
        elif self._inside == "answer":
            self.answer += data.strip()
        elif self._inside == "summary":
            self.order.append(data)
            self._inside = ""
        if self.rows and data.strip():
            self.rows[-1].append(data)


def recorded(folder, outcomes=1_500, model="m"):
    """A file of outcomes whose model falls after two thirds."""
    file = folder / "outcomes.csv"
    lines = ["id,model,prediction,label"]
    for i in range(outcomes):
        wrong = i % 10 == 0 or (i > outcomes * 2 // 3 and i % 2 == 0)
        label = "ab"[(i // 3) % 2]
        lines.append(f"{i},{model},{'ba'[(i // 3) % 2] if wrong else label},{label}")
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.mark.slow
def test_the_page_of_a_replay_shows_what_the_replay_shows(tmp_path):
    file = recorded(tmp_path, 3_000)
    reported = CliRunner().invoke(app, ["replay", str(file), "--json"])
    numbers = json.loads(reported.stdout)
    metrics = numbers["models"]["m"]["metrics"]
    written = [str(tmp_path / "report.html"), str(tmp_path / "report.md")]
    made = CliRunner().invoke(app, ["report", str(file), "-o", written[0], "-o", written[1]])
    assert made.exit_code == 0, made.output
    page = Seen((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "script" not in page.tags
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    assert len(page.images) >= 1
    estimates = [row for row in page.rows if row and row[0] in metrics["accuracy_ratio"]]
    found = {row[0]: row[1] for row in estimates}
    assert found == {name: f"{value:,.4f}" for name, value in metrics["accuracy_ratio"].items()}
    alarms = [row for row in page.rows if row and row[0] in {"adwin", "page_hinkley", "verdict"}]
    expected = [(a["detector"], f"{a['outcome']:,}") for a in reversed(numbers["alarms"])]
    assert [(row[0], row[1]) for row in alarms] == expected
    assert expected
    assert page.title == "Report on model m"
    assert page.answer.startswith("m is worse than no change since outcome ")
    assert str(tmp_path) not in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.order.index("answer") < page.order.index("img") < page.order.index("table")
    folds = ["Where this comes from", "Counters of the stream", "Settings", "Versions"]
    raw = page.order[page.order.index(folds[0]) :]
    assert [each for each in raw if each in folds] == folds, "what is raw comes last, and is folded"
    assert raw.count("table") == 2
    assert "img" not in raw
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    for name in re.findall(r"\]\((report-pictures/[^)]+)\)", text):
        assert (tmp_path / name).stat().st_size > 5_000
    assert f"{metrics['accuracy_ratio']['landmark']:.4f}" in text
    assert "alpha" in text  # the settings
    assert "folds:" in text
    same = tmp_path / "same.md"
    beside = CliRunner().invoke(app, ["replay", str(file), "--report", str(same)])
    assert beside.exit_code == 0, beside.output
    made_at = re.compile(r"Made .*|.* outcomes in .*|\]\(\w+-pictures")
    assert made_at.sub("", same.read_text(encoding="utf-8")) == made_at.sub("", text)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["absent.csv"], "absent.csv"),
        (["http://127.0.0.1:1"], "http://127.0.0.1:1/api/v1/models: nothing listens there"),
        (["http://"], "expected a URL such as"),
        (["http://127.0.0.1:1", "--model", "m"], "--model: expected with files only"),
        (["a.csv", "--ca-file", "ca.pem"], "--ca-file: expected with the URL of a daemon only, got ca.pem"),
        (["http://127.0.0.1:1", "--set", "joim.horizon=1d"], "joim"),
        (["http://127.0.0.1:1", "b.csv"], "expected one URL or files"),
        (["a.csv", "-o", "report.pdf"], "expected a file .html or .md"),
        (["a.csv", "-o", "taken.html"], "taken.html cannot be written: it is a folder"),
        (["a.csv", "-o", "b.md"], "b.md cannot be written: expected a folder b-pictures, got a file"),
    ],
)
def test_what_cannot_be_reported_is_refused_with_what_was_expected(arguments, shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.html").mkdir()
    (tmp_path / "b-pictures").touch()
    refused = CliRunner().invoke(app, ["report", *arguments])
    assert refused.exit_code == 2
    assert shown in " ".join(refused.output.split())


def test_without_matplotlib_a_report_says_so_before_it_reads_anything(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    refused = CliRunner().invoke(app, ["report", "absent.csv"])
    assert refused.exit_code == 2
    assert "pip install 'streamwatchd[lab]'" in refused.output
    assert "absent.csv" not in refused.output


def test_recordings_are_named_by_their_files_also_where_a_path_has_a_comma():
    result = ReplayResult(("/data/may, june/a.csv", "b, c.csv"), lines=1)
    assert of_result(result, Curves(), {}, "").name == "a.csv, b, c.csv"


def test_names_that_look_like_markup_stay_text():
    blocks = (Heading(2, HOSTILE), Text(HOSTILE), Grid(HOSTILE, (HOSTILE, "b"), ((HOSTILE, HOSTILE),)))
    made = Page(HOSTILE, (*blocks, Listing(HOSTILE, f"```\n{HOSTILE}")))
    page = Seen(html(made))
    assert "script" not in page.tags
    assert page.addresses == []
    assert [row for row in page.rows if row[:2] == [HOSTILE, HOSTILE]]
    text, pictures = markdown(made, "pictures")
    assert pictures == {}
    plain = text.split("````")[0]
    assert "<script" not in plain.replace("\\<", "")
    rows = [line for line in plain.splitlines() if line.startswith("| ")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in rows)


def test_pictures_are_linked_also_where_the_name_of_the_report_has_spaces():
    made, _ = markdown(Page("t", (Picture("curves-m", "alt", b""),)), "my report (1)-pictures")
    assert "](my%20report%20%281%29-pictures/curves-m.png)" in made


def test_a_chart_names_the_baseline_that_the_lead_is_over():
    by_opponent = {"persistent": [0.1, 0.2]}
    series = {"outcomes_total": [1, 2], "lead": by_opponent}
    history = {"series": series, "forgetting": "landmark"}
    for no_change, over in (("persistent", "no change"), ("persistent_at_prediction", "the previous label")):
        drawn = curves("m", history, (), no_change)
        assert drawn is not None
        assert drawn.alternative == f"m: accuracy and lead over {over} by outcome, 0 alarms marked"


def test_curves_of_any_length_keep_at_most_so_many_points_in_order_and_evenly():
    curves = Curves()
    for outcomes in range(10, 200_000, 10):
        family = Family("outcomes_total", "counter", "", ("model",), [(("m",), float(outcomes))])
        accuracy = Family("accuracy_ratio", "gauge", "", ("model", "forgetting"), [(("m", "landmark"), 0.5)])
        curves.look(outcomes, lambda family=family, accuracy=accuracy: [family, accuracy])
    last = [Family("outcomes_total", "counter", "", ("model",), [(("m",), 200_000.0)])]
    seen = curves.histories(last, ["m"])["m"]["series"]["outcomes_total"]
    assert POINTS / 2 <= len(seen) <= POINTS + 1
    assert seen[-1] == 200_000
    steps = [b - a for a, b in pairwise(seen[:-1])]
    assert len(set(steps)) == 1


def test_file_names_of_models_are_plain_and_differ():
    names = ["m", "a/b", "a b", "..", "", "ä", "a-b", "fraud detection.eu", "fraud detection/eu"]
    made = [slug(name) for name in names]
    assert len(set(made)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9-]+", each) for each in made)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(5, "5 s"), (90, "90 s"), (900, "15 min"), (3_600, "1 h"), (1_209_600, "14 d")]
)
def test_lengths_of_time_are_stated_in_their_unit(seconds, shown):
    assert span(seconds) == shown


def of_two_models(worse: list[dict[str, object]]) -> str:
    """Markdown of a report on a daemon's two models, with its list of models that are worse."""
    document = {"metrics": {"outcomes_total": 900.0}, "details": {}}
    listed = {
        "share": 0.05,
        "pairs": 2_000,
        "rule": "of the pairs listed, by e-BH, few are false",
        "worse": worse,
    }
    source = Source(
        "http://d", 0, {}, {"a": document, "b": document}, {}, (), (), {}, (), (), settings=None, worse=listed
    )
    return markdown(page(source), "pictures")[0]


def test_a_report_on_several_models_lists_those_that_are_worse_with_what_the_list_promises():
    pair = {"model": "c", "opponent": "majority", "e_value": 81_200.0, "verdict": "worse"}
    shown = of_two_models([pair])
    assert "| c | the majority | 81,200 | worse |" in shown
    assert (
        "The share is 5%. 2,000 pairs of a model and an opponent are judged: of the pairs listed, by e-BH"
        in shown
    )
    assert "No model is listed as worse by cohorts" in of_two_models([])


def test_a_model_that_retires_while_a_report_reads_its_daemon_is_left_out(monkeypatch):
    document = {"metrics": {"outcomes_total": 900.0}, "details": {}}
    answers = {
        "/api/v1/models": {"models": dict.fromkeys("abc", document), "published_timestamp_seconds": 9.0},
        "/api/v1/models/a/history": {},
        "/api/v1/models/a": document,
        "/api/v1/models/b": document,  # new, so that no history is kept of it yet
        "/api/v1/health": {"ready": True, "stream": {}},
        f"/api/v1/alarms?limit={MOST_ALARMS}": {"alarms": []},
        "/api/v1/comparisons": {"comparisons": []},
        "/api/v1/worse": {"worse": []},
    }

    def get(_, path):
        if path not in answers:
            raise NotThere(f"{path}: answered 404")
        return json.dumps(answers[path]).encode()

    monkeypatch.setattr(Address, "get", get)
    source = from_daemon(Address("http://d"), {})
    assert (list(source.models), list(source.histories)) == (["a", "b"], ["a"])
    assert source.remarks == ["Left out, as they retired or were reset meanwhile: c."]


def test_a_verdict_by_cohorts_among_alarms_is_stated_with_the_interval_of_since():
    times = {"since": 1_700_000_000, "earliest": 1_699_999_940, "latest": 1_700_000_060}
    judgement = {
        "basis": "cohorts",
        "verdict": "worse",
        "opponent": "majority",
        "status": "early",
        **{f"{name}_timestamp_seconds": at for name, at in times.items()},
    }
    alarm = {"model": "a", "detector": "verdict", "outcome": 900, "judgement": judgement}
    alarm |= {"timestamp_seconds": 1_700_000_100, "statistic": 2.0, "threshold": 1.0}
    document = {"metrics": {"outcomes_total": 900.0}, "details": {}}
    source = Source("http://d", 0, {}, {"a": document}, {}, [alarm], (), {}, (), (), settings=None)
    shown = markdown(page(source), "pictures")[0]
    between = "between 2023-11-14 22:12:20 UTC and 2023-11-14 22:14:20 UTC"
    assert f"worse since 2023-11-14 22:13:20 UTC, {between}, early" in shown


def test_alarms_are_not_said_to_be_all_where_older_ones_may_be_left_out():
    document = {"metrics": {"outcomes_total": 900.0}, "details": {}}
    alarm = {"model": "a", "detector": "adwin", "outcome": 5, "timestamp_seconds": 0.0}

    def shown(*, lacks_alarms: bool) -> str:
        models = {"a": document, "b": document}
        source = Source(
            "r", 0, {}, models, {}, [alarm], (), {}, (), (), settings=None, lacks_alarms=lacks_alarms
        )
        return markdown(page(source), "pictures")[0]

    whole = shown(lacks_alarms=False)
    assert "One drift alarm was raised, the last at its outcome 5" in whole
    assert "No drift alarm was raised" in whole
    assert "among" not in whole
    lacking = shown(lacks_alarms=True)
    assert "One drift alarm is among the latest 1,000 of all models, the last at its outcome 5" in lacking
    assert "No drift alarm is among the latest 1,000 of all models." in lacking
    assert "alarms and changes among the latest 1,000 of all models" in lacking
    assert "was raised" not in lacking
