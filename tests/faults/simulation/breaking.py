"""Deliveries that break one promise each, to see that it is found out."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from streamwatch.core.alerting import outbox
from streamwatch.core.alerting.incidents import Incidents
from streamwatch.core.alerting.outbox import Entry, Outbox
from streamwatch.daemon.alerting import Alerting
from streamwatch.daemon.deliveries import Deliveries

_next, _decide, _restore, _settle = Deliveries._next, Alerting.decide, Outbox.restore, Outbox.settle
_enter, _resume = Outbox._enter, Incidents.restore


def removed_before_it_is_told(self, queue):
    notification, seconds = _next(self, queue)
    if notification is not None and seconds <= 0:
        self.outbox.settle(queue.receiver.name, notification)
    return notification, seconds


def told_before_it_is_durable(self, *arguments, **more):
    outgoing = _decide(self, *arguments, **more)
    self._deliveries.add(outgoing.notifications, outgoing.open_incidents)
    return outgoing


def another_id_after_a_restart(self, kept):
    entries = {name: msgspec.msgpack.decode(entry, type=Entry) for name, entry in kept.items()}
    anew = {f"{name}_again": entry for name, entry in entries.items()}
    for name, entry in anew.items():
        entry.notification = msgspec.structs.replace(entry.notification, id=name)
    return _restore(self, {name: msgspec.msgpack.encode(entry) for name, entry in anew.items()})


def another_content_after_a_restart(self, kept):
    entries = {name: msgspec.msgpack.decode(entry, type=Entry) for name, entry in kept.items()}
    for entry in entries.values():
        entry.notification = msgspec.structs.replace(
            entry.notification, issued_ms=entry.notification.issued_ms + 1
        )
    return _restore(self, {name: msgspec.msgpack.encode(entry) for name, entry in entries.items()})


def not_kept_at_all(self, notification, receivers):
    del self, notification, receivers


def never_removed(self, receiver, notification):
    settled = _settle(self, receiver, notification)
    self._changed.discard(notification.id)
    return settled


def by_the_hosts_clock(entry):
    return entry.notification.issued_ms, entry.notification.id


def newest_of_a_series_first(self, entry):
    _enter(self, entry)
    for name in entry.attempts:
        self._queues[name][entry.notification.series].rotate()


def incidents_that_do_not_know_what_was_told(self, incidents):
    _resume(self, [msgspec.structs.replace(incident, sent=0) for incident in incidents])


def reminded_of_what_is_not_told(self, receiver, series):
    del self, receiver, series
    return False


def given_up_without_a_count(self, name, notification, reason, attempts):
    del reason, attempts
    self.outbox.settle(name, notification)


Break = Callable[[pytest.MonkeyPatch], None]


def _instead(place: object, name: str, broken: Callable[..., object]) -> tuple[str, Break]:
    return broken.__name__, lambda patch: patch.setattr(place, name, broken)


BROKEN: dict[str, Break] = dict(
    [
        _instead(Deliveries, "_next", removed_before_it_is_told),
        _instead(Alerting, "decide", told_before_it_is_durable),
        _instead(Outbox, "restore", another_id_after_a_restart),
        _instead(Outbox, "restore", another_content_after_a_restart),
        _instead(Deliveries, "record", not_kept_at_all),
        _instead(Outbox, "settle", never_removed),
        _instead(outbox, "_number", by_the_hosts_clock),
        _instead(Outbox, "_enter", newest_of_a_series_first),
        _instead(Incidents, "restore", incidents_that_do_not_know_what_was_told),
        _instead(Outbox, "has_pending", reminded_of_what_is_not_told),
        _instead(Deliveries, "_drop", given_up_without_a_count),
    ]
)
