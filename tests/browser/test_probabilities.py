"""A model's page says what its scores are worth: losses, the reliability diagram, curves over thresholds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from playwright.async_api import expect

from streamwatch.core.estimators.registers.probabilities import ProbabilitiesSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.metrics.series import Report
from streamwatch.core.records.events import Outcome
from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.layouts import TINY

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]


def scored(model: str, seed: int = 7) -> list[Outcome]:
    """Outcomes of a model whose scores are what they say, with a class whose name is markup."""
    rng = np.random.default_rng(seed)
    found: list[Outcome] = []
    for i, score in enumerate(rng.random(600).tolist()):
        truth = "<b>fraud</b>" if rng.random() < score else "legit"
        answer = "<b>fraud</b>" if score >= 0.5 else "legit"
        scores = {"<b>fraud</b>": score, "legit": 1 - score}
        found.append(Outcome(model, truth, answer, 1_760_000_000_000 + i, 0, scores=scores))
    return found


async def test_a_page_shows_both_diagrams_with_their_numbers_and_nothing_without_scores(
    server: HttpServer, opened: Opened
) -> None:
    estimators = EstimatorSet(replace(TINY, max_models=2, registers=(ProbabilitiesSpec(),)))
    estimators.fold(scored("with"))
    estimators.fold([Outcome("without", "a", "a", 1_760_000_000_000, 0)])
    server.publish(Report(estimators.families(), 1_760_000_001_000, estimators.details()))
    page = await opened(f"{server.url}/#/model/with", unfolded=True)
    panels = page.locator("#model .tables section")
    losses = panels.filter(has=page.get_by_role("heading", name="Probabilities"))
    await expect(losses).to_contain_text("The scores of 600 outcomes were usable, those of 0 were not.")
    assert await losses.locator("tbody th").all_inner_texts() == list(ProbabilitiesSpec().mechanisms)
    diagram = panels.filter(has=page.get_by_role("heading", name="Reliability"))
    await expect(diagram.locator("svg circle")).to_have_count(5)  # of two classes: scores from 0.5 on
    await expect(diagram.locator("tbody tr")).to_have_count(5)
    curve = panels.filter(has=page.get_by_role("heading", name="If <b>fraud</b> were predicted"))
    await expect(curve.locator("svg polyline")).to_have_count(2)
    shares = [0.999**age * (o.true_class != "legit") for age, o in enumerate(reversed(scored("with")))]
    share = 100 * sum(shares) * 0.001 / (1 - 0.999**600)
    assert await curve.locator("tbody tr").nth(0).inner_text() == f"0\t{share:.1f}\u202f%\t100.0\u202f%"
    await page.goto(f"{server.url}/#/model/without")
    await expect(page.locator("#model h1")).to_have_text("without")
    await expect(page.locator("#model td")).not_to_have_count(0)
    await expect(page.get_by_role("heading", name="Reliability")).to_have_count(0)
