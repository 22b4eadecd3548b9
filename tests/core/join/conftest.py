"""What is tested of the compiled join holds for what it reports of predictions, too."""

from __future__ import annotations

import pytest

from tests.core.predictions.listing_register import listing_known


@pytest.fixture(scope="module", autouse=True)
def _predictions_are_listed():
    with listing_known():
        yield
