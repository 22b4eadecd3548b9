"""A book's state with a damaged number is refused by name, or the book goes on."""

from __future__ import annotations

import numpy as np

from streamwatch.core.alerting.notification import Notification
from tests.core.alerting.watched_book import HOUR_MS, NOW_MS, WatchedBook, alarm
from tests.damage import encoded, gone_on
from tests.tiers import by_tier

TRIES = by_tier(fast=50, default=150, everything=5_000)


def go_on(watched: WatchedBook) -> None:
    """Hear of further alarms, review the open ones, report, and leave a model."""
    watched.hears(alarm("m", ordinal=3), now_ms=NOW_MS + HOUR_MS)
    watched.reviews(NOW_MS + 30 * HOUR_MS)
    watched.book.families()
    notifications: list[Notification] = watched.book.open_incidents()
    assert all(each.model for each in notifications)
    watched.book.retire("m", NOW_MS + 31 * HOUR_MS)
    watched.book.state()


def test_of_open_alarms() -> None:
    chance = np.random.default_rng(1)
    before = WatchedBook()
    before.hears(alarm("m"), alarm("n"), alarm("n", detector="adwin"))
    before.hears(alarm("m", ordinal=2), now_ms=NOW_MS + 60_000)
    before.reviews(NOW_MS + 60_000)
    state = before.book.state()
    for _ in range(TRIES):
        after = WatchedBook()
        other = encoded(state, chance)
        gone_on(lambda after=after, other=other: after.book.restore(other), lambda after=after: go_on(after))
