"""A committed state that tests of damage begin with."""

from __future__ import annotations

import pytest

from tests.core.join.join_stream import label_for_all, predict
from tests.core.pipeline.test_checkpoint import Life


@pytest.fixture(scope="module")
def life() -> Life:
    """Outcomes of two models in the journal and in snapshots, dedup entries, and what waits."""
    life = Life(journal=20)
    for n in range(12):
        life.feed(*(predict(str(n), "xy"[n % 2], n, model, topic="t") for model in ("model-m", "model-n")))
        life.feed(label_for_all(str(n), "x", n, topic="t"))
        if n % 4 == 3:
            life.commit()
    life.feed(predict("waits", "x", 20, "model-m", topic="t"), label_for_all("early", "x", 21, topic="t"))
    life.commit()
    return life
