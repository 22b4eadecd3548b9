"""What a person sees in ten seconds: does a model beat no change, since when has it not, and what to do."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from playwright.async_api import Page, expect

from streamwatch.core.metrics.series import Family, Report
from streamwatch.edge.web.server import HttpServer
from tests.browser.chromium import DESKTOP
from tests.browser.conftest import Opened
from tests.browser.test_list import predictions_only
from tests.browser.test_status_page import MODELS, until_observed
from tests.edge.web.http_faces import BEGAN_MS, FakeHealth, Model, alarm, report_of, worse
from tests.edge.web.test_headline import details as by_cohorts
from tests.edge.web.test_headline import judged
from tests.edge.web.test_trouble import with_open_alarm

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
GREEK_AND_JARGON = re.compile(
    r"[Ͱ-Ͽ]|fading|landmark|adwin|hoeffding|outcome \d|[\d,]+ outcomes", re.IGNORECASE
)
SINCE = BEGAN_MS / 1000 - 60
LIMITS = {"since": 0, "earliest": -600, "latest": 60}
DISJOINT = {"classes_disjoint": {"predicted_class": ["1"], "true": ["fraud"]}}


def headline(verdict: str, status: str, opponent: str | None = None) -> dict[str, Any]:
    """Details of a model with a verdict by cohorts."""
    lead = judged(verdict, 0.1 if verdict == "better" else -0.1)
    more = {} if opponent is None else {"opponent": opponent}
    times = {f"{name}_timestamp_seconds": SINCE + after for name, after in LIMITS.items()}
    return by_cohorts(verdict, lead, lead, status=status, **times, **more)


STATES: dict[str, tuple[Model, dict[str, Any], str, str, str]] = {
    "better": (
        Model(),
        {},
        "Better than no change",
        r"^since ",
        "Nothing. This page shows when that changes",
    ),
    "worse": (worse(Model()), {}, "Worse than no change", r"^since ", "roll back, retrain"),
    "open": (Model(accuracy=0.81), {}, "No clear difference", r"^$", "Nothing yet"),
    "provisional": (
        Model(),
        {"headline": {"basis": "labels"}},
        "Better than no change",
        r"^since ",
        "Nothing. This page shows when that changes",
    ),
    "early": (
        Model(),
        headline("worse", "early", "majority"),
        "Worse than the majority",
        r"^since ",
        "judge it by another utility",
    ),
    "confirmed": (
        Model(),
        headline("better", "confirmed"),
        "Better than no change and the majority",
        r", confirmed$",
        "Nothing. This page shows when that changes",
    ),
    "withheld": (Model(), DISJOINT, "Cannot be judged", r"^$", "with aliases in the mapping"),
}


def every_state() -> Report:
    """A report with a model in each state, one of them with an open alarm."""
    models = {name: model for name, (model, *_) in STATES.items()}
    made = report_of({**models, "alarmed": Model()}, 0, [alarm("alarmed")])
    made = replace(made, details={name: details for name, (_, details, *_) in STATES.items()})
    return with_open_alarm(made, "alarmed")


def heard_of(made: Report, predicted_s: float, labelled_s: float) -> Report:
    """The report with the times of the latest prediction and the latest label of the model m."""
    times = {"last_prediction_timestamp_seconds": predicted_s, "last_label_timestamp_seconds": labelled_s}
    families = [Family(name, "gauge", "h", ("model",), [(("m",), at)]) for name, at in times.items()]
    return replace(made, families=[*made.families, *families])


@pytest.mark.parametrize("state", STATES)
async def test_the_verdict_is_in_words_with_since_when_and_what_to_do(
    server: HttpServer, opened: Opened, state: str
) -> None:
    _, _, words, since, todo = STATES[state]
    server.publish(every_state())
    page = await opened(server.url)
    row = page.locator("#rows tr", has=page.get_by_role("link", name=state, exact=True))
    await expect(row.locator(".badge").first).to_have_text(words)
    await expect(row.locator(".since")).to_have_text(re.compile(since))
    caveat = {"provisional": "provisional", "early": "early"}.get(state, "")
    await expect(row.locator(".caveat")).to_have_text(caveat)
    await page.goto(f"{server.url}/#/model/{state}")
    answer = page.get_by_role("region", name="Verdict")
    await expect(answer.locator(".badge")).to_have_text(words)
    await expect(answer.locator(".since")).to_have_text(
        re.compile(
            (r"^Since .* \(between .* and .*\)\.$" if state in {"early", "confirmed"} else r"^Since .*\.$")
            if since != "^$"
            else r"."
        )
    )
    await expect(answer.locator(".todo")).to_contain_text(todo)
    if state != "withheld":
        known = "the last label known when a prediction was made"
        meant = known if state in {"early", "confirmed"} else "the previous label again"
        await expect(answer.locator(".sentence").first).to_contain_text(f"No change, {meant}")
    await expect(page.get_by_role("img", name=re.compile("^Accuracy"))).to_be_visible()


async def test_an_open_alarm_is_on_the_row_and_in_the_answer_with_its_runbook(
    server: HttpServer, opened: Opened
) -> None:
    server.publish(every_state())
    page = await opened(server.url)
    row = page.locator("#rows tr", has_text="alarmed")
    await expect(row.locator(".incident")).to_have_text(re.compile("^Incident since "))
    await page.goto(f"{server.url}/#/model/alarmed")
    answer = page.get_by_role("region", name="Verdict")
    await expect(answer.locator(".incidents")).to_contain_text("error 2.0\u202f% → 31.0\u202f% (adwin)")
    link = answer.get_by_role("link", name="Runbook: DriftAlarm")
    await expect(link).to_have_attribute("href", re.compile(r"/deploy/runbooks/DriftAlarm\.md$"))


async def test_the_first_view_has_no_greek_no_forgetting_and_no_outcome_numbers_until_details_are_wanted(
    server: HttpServer, opened: Opened
) -> None:
    server.publish(report_of(MODELS, 0, [alarm("better")]))
    page = await opened(server.url)
    await expect(page.locator("#rows tr")).to_have_count(3)
    await expect(page.locator("#alarms li")).to_have_count(1)
    assert GREEK_AND_JARGON.findall(await page.locator("body").inner_text()) == []
    switch = page.get_by_role("button", name="Details")
    await expect(switch).to_have_attribute("aria-pressed", "false")
    await switch.click()
    await expect(page.locator("#rows .c-kappa_plus").first).to_have_text("0.000")
    shown = await page.locator("body").inner_text()
    assert {"κ", "fading", "adwin"} <= set(GREEK_AND_JARGON.findall(shown))
    await page.reload()
    await expect(switch).to_have_attribute("aria-pressed", "true")
    await expect(page.locator("#rows .c-kappa_plus").first).to_be_visible()


async def test_a_model_s_page_has_none_of_it_either_before_its_sections_are_opened(
    server: HttpServer, opened: Opened
) -> None:
    server.publish(every_state())
    await until_observed(server, "better", 1)
    page = await opened(f"{server.url}/#/model/better")
    await expect(page.get_by_role("img", name=re.compile("^Accuracy"))).to_be_visible()
    assert GREEK_AND_JARGON.findall(await page.locator("#model .top-of-model").inner_text()) == []


async def test_accuracy_over_the_last_hours_is_a_line_above_both_baselines(
    server: HttpServer, opened: Opened
) -> None:
    for step in range(4):
        server.publish(report_of({"m": Model(accuracy=0.9 - step / 10)}, 3_600 * step))
        await until_observed(server, "m", step + 1)
    page = await opened(server.url)
    line = page.locator("#rows .sparkline")
    await expect(line).to_have_attribute(
        "aria-label", "Accuracy over the last 3.0\u202fh: from 90.0\u202f% to 60.0\u202f%"
    )
    heights: dict[str, list[float]] = {}
    for name in ("accuracy", "no_change", "majority"):
        path = await line.locator(f".{name}").get_attribute("d") or ""
        heights[name] = [float(y) for _, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)]
        assert len(heights[name]) == 4
    assert heights["accuracy"] == sorted(heights["accuracy"]), "it falls: down is up in pixels"
    assert len(set(heights["no_change"])) == len(set(heights["majority"])) == 1
    assert heights["accuracy"][0] < heights["no_change"][0] < heights["majority"][0]
    assert heights["accuracy"][-1] == heights["majority"][-1]


async def test_ages_of_the_last_prediction_and_the_last_label_are_reported(
    server: HttpServer, opened: Opened
) -> None:
    now = 1_760_007_200.0
    made = heard_of(report_of({"m": Model(), "n": Model()}), now - 7_000, now - 7_300)
    server.publish(made)
    page = await opened(server.url)
    heard, unheard = page.locator("#rows tr").nth(0), page.locator("#rows tr").nth(1)
    await expect(heard.locator(".c-last-prediction .value")).to_have_text(re.compile(r"^\d+.d ago$"))
    await expect(heard.locator(".c-last-label")).to_have_attribute("title", re.compile("08:51:40"))
    await expect(unheard.locator(".c-last-label .value")).to_have_text("–")


async def test_sections_fold_and_stay_as_they_were_left(server: HttpServer, opened: Opened) -> None:
    server.publish(report_of({"m": Model(), "n": Model()}))
    await until_observed(server, "m", 1)
    page = await opened(f"{server.url}/#/model/m")
    await expect(page.get_by_role("img")).to_have_count(1)
    tall = await page.evaluate("document.documentElement.scrollHeight")
    assert tall < 1.5 * DESKTOP["height"], "the answer is on the first screen, and little is below it"
    await page.locator("summary", has_text="Every estimate").click()
    await expect(page.get_by_role("region", name="Estimates")).to_be_visible()
    await page.goto(f"{server.url}/#/model/n")
    await page.reload()
    await expect(page.get_by_role("region", name="Estimates")).to_be_visible()
    await expect(page.get_by_role("img")).to_have_count(1)
    everything = page.get_by_role("button", name="Open all sections")
    await everything.click()
    await expect(page.get_by_role("img")).to_have_count(6)
    await page.get_by_role("button", name="Fold all sections").click()
    await expect(page.get_by_role("img")).to_have_count(1)


async def test_models_are_grouped_by_the_beginning_of_their_names(server: HttpServer, opened: Opened) -> None:
    models = {f"fraud-{n}": Model() for n in range(3)} | {"churn-1": worse(Model()), "lonely": Model()}
    server.publish(report_of(models))
    page = await opened(server.url)
    await page.get_by_label("Group by name").check()
    items = page.get_by_role("list", name="Groups of models").get_by_role("listitem")
    await expect(items).to_have_count(3)
    await expect(items.first).to_have_text(re.compile(r"^churn-\s*1 model\s*1 worse than no change$"))
    await expect(items.nth(1)).to_have_text(re.compile(r"^fraud-\s*3 models\s*3 better$"))
    await expect(page.locator("#models")).to_be_hidden()
    await expect(page).to_have_url(re.compile(r"group=on$"))
    await items.nth(1).get_by_role("link").click()
    await expect(page.locator("#rows tr")).to_have_count(3)
    await expect(page.locator("#within")).to_contain_text("Models of the group fraud-")
    await page.reload()
    await expect(page.locator("#rows tr")).to_have_count(3)
    await page.get_by_role("link", name="all groups").click()
    await expect(items).to_have_count(3)
    await page.get_by_label("Group by name").uncheck()
    await expect(page.locator("#rows tr")).to_have_count(5)


async def remedies(page: Page, banner: str) -> tuple[list[str], str]:
    """Links of a red banner, and what it says."""
    links = page.locator(f"{banner} .remedy a")
    await expect(links).not_to_have_count(0)
    found = [await link.get_attribute("href") or "" for link in await links.all()]
    return [href.rpartition("/")[2] for href in found], await page.locator(banner).inner_text()


async def test_every_red_banner_names_its_remedy_and_links_to_it(
    server: HttpServer, health: FakeHealth, opened: Opened
) -> None:
    silent = {"nothing_joins": {"predictions": 9}}
    scores = {"scores_as_classes": {"predicted_class": ["0.5"]}}
    made = report_of({"a": Model(), "b": Model(), "c": Model()})
    server.publish(replace(made, details={"a": DISJOINT, "b": silent, "c": scores}))
    health.facts |= {"kafka_up": 0.0}
    page = await opened(server.url)
    links, stated = await remedies(page, "#warnings")
    assert links == ["ClassesDisjoint.md", "NothingJoins.md", "ScoresAsClasses.md"]
    assert stated.count(f"streamwatch doctor --url {server.url}") == 1
    assert "streamwatch inspect shows those that match nothing" in stated
    links, stated = await remedies(page, "#wrong")
    assert links == ["KafkaUnreachable.md"]
    assert "Restore the connection to Kafka" in stated
    assert f"streamwatch doctor --url {server.url}" in stated
    for name, page_of_docs in (("a", "ClassesDisjoint.md"), ("b", "NothingJoins.md")):
        await page.goto(f"{server.url}/#/model/{name}")
        await expect(page.locator("#model .warnings")).to_be_visible()
        links, stated = await remedies(page, "#model .todo")
        assert page_of_docs in links
        assert f"streamwatch doctor --url {server.url}" in stated


@pytest.mark.parametrize(
    ("role", "stated"),
    [
        ("holder", "publishes and notifies"),
        ("standby", "standby: another replica publishes and notifies"),
        ("diverged", "standby with other numbers than the holder's"),
    ],
)
async def test_a_replica_says_which_part_it_has(
    server: HttpServer, health: FakeHealth, opened: Opened, role: str, stated: str
) -> None:
    health.role = role
    server.publish(report_of({"a": Model()}))
    page = await opened(server.url)
    await expect(page.locator("#chips li", has_text=stated)).to_have_count(1)
    await expect(page.locator("#wrong .remedy a")).to_have_count(int(role == "diverged"))


async def test_a_lost_connection_says_what_to_look_at(
    opened: Opened, server: HttpServer, complaints: list[str]
) -> None:
    server.publish(report_of({"m": Model()}))
    page = await opened(server.url)
    await expect(page.locator("#rows tr")).to_have_count(1)
    await server.stop()
    links, stated = await remedies(page, "#banner")
    assert links == ["Down.md"]
    assert "Is the daemon running?" in stated
    await page.close()
    assert all("ERR_" in complaint for complaint in complaints)
    complaints.clear()


async def test_a_model_without_outcomes_has_neither_line_nor_number(
    server: HttpServer, opened: Opened
) -> None:
    server.publish(predictions_only("mute", 120))
    await until_observed(server, "healthy", 1)
    page = await opened(server.url)
    row = page.locator("#rows tr", has_text="mute")
    await expect(row.locator(".c-accuracy .value")).to_have_text("–")
    assert await row.locator(".sparkline path[d]").count() == 0
    healthy = page.locator("#rows tr", has_text="healthy")
    await expect(healthy.locator(".sparkline path[d]")).to_have_count(3)


async def test_an_alarm_that_is_unconfirmed_and_what_is_foreseen_are_in_the_answer(
    server: HttpServer, opened: Opened
) -> None:
    made = every_state()
    details = {name: dict(shown) for name, shown in made.details.items()}
    alarms = [{"detector": "adwin", "before": 0.02, "after": 0.31, "status": "unconfirmed"}]
    incident = {"incident": "i", "severity": "warning", "started_timestamp_seconds": SINCE, "alarms": alarms}
    details["alarmed"] = {"open_incidents": [incident]}
    opponents = {"majority": {"five_points_shown_after_seconds": 12 * 86_400.0}}
    details["open"] = {"cohorts": {"opponents": opponents}}
    server.publish(replace(made, details=details))
    page = await opened(f"{server.url}/#/model/alarmed")
    answer = page.get_by_role("region", name="Verdict")
    await expect(answer.locator(".incidents")).to_contain_text("(adwin, unconfirmed)")
    await page.goto(f"{server.url}/#/model/open")
    await expect(answer.locator(".todo")).to_contain_text(
        "A lead of 5 points, either way, would show after about 12.0\u202fd"
    )
