"""The page of a model that predicts and has no outcome yet: no complaint of the browser."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from streamwatch.core.metrics.series import Report
from streamwatch.core.predictions.early_hints import EarlyHintsSpec
from streamwatch.core.predictions.label_delays import LabelDelaysSpec
from streamwatch.core.predictions.registers import PredictionRegisters
from streamwatch.core.records.events import Outcome, Prediction
from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]

START = 1_760_000_000_000
HOUR_MS = 3_600_000


async def test_a_model_without_outcomes_shows_what_its_predictions_say(
    server: HttpServer, opened: Opened
) -> None:
    registers = PredictionRegisters([EarlyHintsSpec(), LabelDelaysSpec(HOUR_MS)])
    events = [
        Prediction(str(i), "m", "fraud" if i > 9_000 or i % 7 == 0 else "legit", START + 500 * i)
        for i in range(12_000)
    ]
    registers.observe_events(events)
    registers.learn([Outcome("other", "a", "a", START, 0)])
    server.publish(Report(registers.families(), START + HOUR_MS, registers.details()))
    page = await opened(f"{server.url}/#/model/m", unfolded=True)
    panels = page.locator("#model .tables section")
    hint = panels.filter(has=page.get_by_role("heading", name="Predictions before their labels"))
    await expect(hint).to_contain_text(
        "Early hint: the predictions have changed, and their labels are not in yet."
    )
    await expect(page.locator("#model .answer")).to_contain_text("No label has matched any prediction")
