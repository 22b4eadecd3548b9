"""A model's page says that predictions have changed while no label is in, and what scores made expect."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from playwright.async_api import expect

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.metrics.series import Report
from streamwatch.core.predictions.early_hints import EarlyHints, EarlyHintsSpec
from streamwatch.core.predictions.kind import batch_of
from streamwatch.core.records.events import Outcome, Prediction
from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.layouts import TINY

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]

START = 1_760_000_000_000


def changed(predictions: int = 12_000) -> EarlyHints:
    """Predictions of which a class whose name is markup becomes frequent, with labels of the first half."""
    rng = np.random.default_rng(4)
    watch = EarlyHints(EarlyHintsSpec(bucket_ms=1_000_000))
    events: list[Prediction] = []
    for i in range(predictions):
        named = "<b>fraud</b>" if rng.random() < (0.1 if i < 10_000 else 0.6) else "legit"
        score = float(rng.uniform(0.5, 1))
        events.append(
            Prediction(str(i), "m", named, START + 1_000 * i, scores={named: score, "?": 1 - score})
        )
    watch.observe(batch_of(events))
    watch.learn(
        [
            Outcome(
                "m",
                e.predicted_class,
                e.predicted_class,
                e.record_ms,
                0,
                scores=e.scores,
                resolved_ms=e.record_ms,
            )
            for e in events[:6_000]
        ]
    )
    return watch


async def test_a_hint_is_reported_to_be_one_and_stands_beside_what_labels_show(
    server: HttpServer, opened: Opened
) -> None:
    watch = changed()
    view = watch.views()["m"]
    estimators = EstimatorSet(replace(TINY, max_models=1))
    estimators.fold([Outcome("m", "legit", "legit", START, 0)])
    families = [*estimators.families(), *watch.families()]
    server.publish(Report(families, START + 20_000_000, watch.details()))
    page = await opened(f"{server.url}/#/model/m", unfolded=True)
    panels = page.locator("#model .tables section")
    hint = panels.filter(has=page.get_by_role("heading", name="Predictions before their labels"))
    await expect(hint).to_contain_text(
        "Early hint: the predictions have changed, and their labels are not in yet."
    )
    await expect(hint).to_contain_text("than 4,096 predictions earlier")
    share = f"share of <b>fraud</b>{view.before['<b>fraud</b>']:.1%}"[:-1]
    await expect(hint.locator("tbody")).to_contain_text(share)
    expected = panels.filter(has=page.get_by_role("heading", name="Expected accuracy"))
    await expect(expected.locator("tbody tr")).to_have_count(min(12, len(view.stretches)))
    await expect(expected).to_contain_text("Compared with labels, it was off by 0.0")


async def test_a_reference_that_is_not_as_old_yet_is_not_said_to_be(
    server: HttpServer, opened: Opened
) -> None:
    watch = changed(4_000)
    estimators = EstimatorSet(replace(TINY, max_models=1))
    estimators.fold([Outcome("m", "legit", "legit", START, 0)])
    families = [*estimators.families(), *watch.families()]
    server.publish(Report(families, START + 20_000_000, watch.details()))
    page = await opened(f"{server.url}/#/model/m", unfolded=True)
    hint = page.locator("#model .tables section").filter(
        has=page.get_by_role("heading", name="Predictions before their labels")
    )
    await expect(hint.locator("thead th")).to_have_text(["", "the first", "now"])
