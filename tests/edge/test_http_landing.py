"""The landing page shows the report's numbers, and nothing of a name is markup."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

from streamwatch.core.series import Family
from streamwatch.edge.exporters.landing import MAX_ROWS, LandingPage
from tests.edge.exposition import realistic, report


class Reader(HTMLParser):
    """Rows of the table as texts, and every tag there is."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: list[str] = []
        self._in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


def page(made: list[Family] | None, live: tuple[Family, ...] = ()) -> str:
    return LandingPage().render(None if made is None else report(made), live, "text/html", {}).decode()


def model(name: str, accuracy: float, persistent: float) -> list[Family]:
    return [
        Family("outcomes_total", "counter", "h", ("model",), [((name,), 1200)]),
        Family("accuracy_ratio", "gauge", "h", ("forgetting", "model"), [(("landmark", name), accuracy)]),
        Family(
            "baseline_accuracy_ratio",
            "gauge",
            "h",
            ("baseline", "forgetting", "model"),
            [(("persistent", "landmark", name), persistent)],
        ),
        Family(
            "alarms_total", "counter", "h", ("detector", "model"), [(("adwin", name), 2), (("ph", name), 3)]
        ),
    ]


def test_a_model_stands_beside_its_baselines() -> None:
    _, row, *_ = Reader(page(model("m", 0.9, 0.85))).rows
    assert [cell.strip() for cell in row] == ["m", "1,200", "0.900", "0.850", "–", "–", "5"]


def test_a_model_no_better_than_the_last_class_is_marked() -> None:
    _, row, *_ = Reader(page(model("m", 0.8, 0.85))).rows
    assert row[2].split() == ["0.800", "not", "above", "persistent"]


def test_the_numbers_are_those_of_the_fading_estimate_where_there_is_one() -> None:
    made = realistic()
    accuracy = next(family for family in made if family.name == "accuracy_ratio")
    expected = dict(accuracy.samples)[("fading:0.999", "model-0")]
    _, row, *_ = Reader(page(made)).rows
    assert row[2].startswith(f"{expected:.3f}")


def test_no_name_becomes_markup() -> None:
    plain = Reader(page(model("m", 0.9, 0.85)))
    hostile = Reader(page(model('<script>alert(1)</script>"&', 0.9, 0.85)))
    assert hostile.tags == plain.tags
    assert hostile.rows[1][0] == '<script>alert(1)</script>"&'
    assert "\\ud800" in page(model("\ud800", 0.9, 0.85))


def test_before_the_first_outcome_the_page_says_so() -> None:
    down = Family("kafka_up", "gauge", "h", (), [((), 0)])
    text = page(None, (down,))
    assert "No outcome yet" in text
    assert "Kafka unreachable · nothing published yet" in text


def test_more_models_than_fit_are_counted() -> None:
    names = [((f"m{n:04}",), 1) for n in range(MAX_ROWS + 7)]
    rows = Reader(page([Family("outcomes_total", "counter", "h", ("model",), names)])).rows
    assert len(rows) == 1 + MAX_ROWS + 1
    assert "7 more" in rows[-1][0]


def test_the_only_script_that_may_run_is_the_one_on_the_page() -> None:
    (script,) = re.findall("<script>(.*?)</script>", page(None), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in LandingPage.headers["Content-Security-Policy"]
    assert not re.search(r"(?:src|href)=.?(?:https?:)?//", page(None))
