"""The book of alarms that tests of a room begin with."""

from __future__ import annotations

import pytest

from tests.core.alerting.watched_book import WatchedBook


@pytest.fixture
def watched() -> WatchedBook:
    return WatchedBook()
