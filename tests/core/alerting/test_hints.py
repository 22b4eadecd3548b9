"""Early hints that people are notified of, against a plain account of what was notified and what is open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from streamwatch.core.alerting.book import AlarmBook, details_with_incidents
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec
from streamwatch.core.predictions.kind import ActiveHint
from tests.core.alerting.stored import stored
from tests.core.alerting.watched_book import WatchedBook, alarm

HOUR_MS = 3_600_000
NOW_MS = 1_000 * HOUR_MS
SPEC = AlarmsSpec(
    rules=(AlarmRule("early_hint", "loud", "critical", cooldown_ms=0), AlarmRule("page_hinkley")),
    otherwise=AlarmRule(severity="info", cooldown_ms=600_000),
    stale_after_ms=HOUR_MS,
)


def hint(ordinal: int = 1, given_ms: int = NOW_MS, name: str | None = "fraud") -> ActiveHint:
    return ActiveHint(ordinal, given_ms, name, more=True, before=0.1, now=0.4)


def review(
    book: AlarmBook, active: Mapping[str, ActiveHint], now_ms: int = NOW_MS, *, behind: bool = False
) -> list[Notification]:
    return book.review(WatchedBook(), now_ms, behind=behind, hints=active)


def suppressed(book: AlarmBook) -> dict[str, float]:
    [found] = [family for family in book.families() if family.name == "alarms_suppressed_total"]
    return {key[0]: float(value) for key, value in found.samples}  # type: ignore[arg-type]


def test_a_hint_is_notified_once_and_once_more_when_it_is_no_longer_active() -> None:
    book = AlarmBook(SPEC, "s")
    (begun,) = review(book, {"m": hint()})
    assert (begun.kind, begun.severity, begun.model, begun.series) == ("firing", "info", "m", "m")
    assert begun.hint is not None
    assert (begun.hint.as_notified, begun.started_at_ms, begun.ended_at_ms) == (hint(), NOW_MS, None)
    assert stored(begun) == begun
    assert review(book, {"m": hint()}, NOW_MS + 1) == []
    assert book.open_incidents() == [begun]
    (over,) = review(book, {}, NOW_MS + 5)
    assert (over.kind, over.incident, over.ended_at_ms) == ("resolved", begun.incident, NOW_MS + 5)
    assert over.hint is not None
    assert over.hint.reason == "no_longer_active"
    assert over.id != begun.id
    assert book.open_incidents() == []
    assert review(book, {}, NOW_MS + 6) == []


def test_severity_and_cooldown_are_those_of_the_rule_for_early_hints() -> None:
    book = AlarmBook(SPEC, "s")
    watched = review(book, {"loud": hint(), "m": hint()})
    assert [(each.model, each.severity) for each in watched] == [("loud", "critical"), ("m", "info")]
    review(book, {})
    again = {"loud": hint(2, NOW_MS + 599_999), "m": hint(2, NOW_MS + 599_999)}
    assert [each.model for each in review(book, again)] == ["loud"]
    assert suppressed(book)["cooldown"] == 1.0
    assert review(book, again) == [], "what was held back is not watched later"
    assert [each.model for each in review(book, {"m": hint(3, NOW_MS + 600_000)})] == ["loud", "m"]


def test_a_further_hint_while_one_is_open_is_counted_and_keeps_it_open() -> None:
    book = AlarmBook(SPEC, "s")
    review(book, {"m": hint()})
    assert review(book, {"m": hint(2, NOW_MS + HOUR_MS, "legit")}) == []
    assert review(book, {"m": hint(2, NOW_MS + HOUR_MS, "legit")}) == []
    assert suppressed(book)["already_open"] == 1.0
    assert [each.kind for each in review(book, {})] == ["resolved"]


def test_an_old_hint_waits_for_the_end_of_a_backlog_and_is_notified_if_it_stands_then() -> None:
    old = hint(given_ms=NOW_MS - HOUR_MS - 1)
    for stands in (True, False):
        book = AlarmBook(SPEC, "s")
        assert review(book, {"m": old}, behind=True) == []
        assert not book.due(NOW_MS, behind=True)
        again = AlarmBook(SPEC, "s")
        again.restore(book.state())
        assert again.due(NOW_MS, behind=False), "nothing need be read for it to be watched"
        assert len(review(again, {"m": old} if stands else {})) == stands
        assert not again.due(NOW_MS, behind=False)


def test_a_hint_of_a_backlog_that_is_just_not_too_old_is_notified_at_once() -> None:
    assert len(review(AlarmBook(SPEC, "s"), {"m": hint(given_ms=NOW_MS - HOUR_MS)}, behind=True)) == 1


def test_nothing_waits_for_the_end_of_a_backlog_once_hints_are_turned_off() -> None:
    book = AlarmBook(SPEC, "s")
    assert review(book, {"m": hint(given_ms=NOW_MS - HOUR_MS - 1)}, behind=True) == []
    assert book.review(WatchedBook(), NOW_MS, behind=True) == []
    assert not book.due(NOW_MS, behind=False)


def test_an_open_hint_ends_with_its_model_and_a_new_model_of_the_name_begins_anew() -> None:
    book = AlarmBook(SPEC, "s")
    (begun,) = review(book, {"m": hint()})
    (over,) = book.retire("m", NOW_MS + 1)
    assert over.hint is not None
    assert (over.kind, over.incident, over.hint.reason) == ("resolved", begun.incident, "model_retired")
    assert book.retire("m", NOW_MS + 1) == []
    assert len(review(book, {"m": hint(given_ms=NOW_MS + 2)})) == 1, "its cooldown went with it"


def test_hints_belong_to_no_incident_of_alarms_and_are_not_among_those_of_the_page() -> None:
    watched = WatchedBook(spec=SPEC)
    (drift,) = watched.hears(alarm())
    (begun,) = review(watched.book, {"m": hint()})
    assert begun.incident != drift.incident
    assert [each.incident for each in watched.book.open_incidents()] == [drift.incident, begun.incident]
    shown = details_with_incidents({}, watched.book.open_incidents())["m"]["open_incidents"]
    assert [each["incident"] for each in shown] == [drift.incident]  # type: ignore[attr-defined]
    assert details_with_incidents({}, [begun]) == {}


def test_a_book_without_hints_ends_those_that_were_notified() -> None:
    book = AlarmBook(SPEC, "s")
    review(book, {"m": hint()})
    assert [each.kind for each in book.review(WatchedBook(), NOW_MS, behind=False)] == ["resolved"]


def test_a_hint_that_stands_when_people_are_notified_again_is_notified_again_as_another() -> None:
    book = AlarmBook(SPEC, "s")
    (begun,) = review(book, {"m": hint()})
    (over,) = book.review(WatchedBook(), NOW_MS + 1, behind=False)
    assert book.review(WatchedBook(), NOW_MS + 2, behind=False) == []
    again = AlarmBook(SPEC, "s")
    again.restore(book.state())
    (anew,) = review(again, {"m": hint()}, NOW_MS + 3)
    assert (anew.kind, anew.started_at_ms) == ("firing", NOW_MS)
    assert anew.incident != begun.incident
    assert len({begun.id, over.id, anew.id}) == 3
    assert again.open_incidents() == [anew]


@dataclass
class Plain:
    """All that was notified, kept as lists: a model's state is asked of them anew each time."""

    watched: list[tuple[str, str, int]] = field(default_factory=list)
    """Kind, model and ordinal."""
    seen: set[tuple[str, int, int]] = field(default_factory=set)
    """Hints that were decided on."""
    given: dict[str, list[int]] = field(default_factory=dict)

    def is_open(self, model: str) -> bool:
        kinds = [kind for kind, name, _ in self.watched if name == model]
        return bool(kinds) and kinds[-1] == "firing"

    def last(self, model: str) -> int:
        return [ordinal for kind, name, ordinal in self.watched if name == model and kind == "firing"][-1]

    def retire(self, model: str) -> list[tuple[str, str, int]]:
        before = len(self.watched)
        if self.is_open(model):
            self.watched.append(("resolved", model, self.last(model)))
        self.given.pop(model, None)
        self.seen = {each for each in self.seen if each[0] != model}
        return self.watched[before:]

    def review(
        self, active: Mapping[str, ActiveHint] | None, now_ms: int, *, behind: bool
    ) -> list[tuple[str, str, int]]:
        before = len(self.watched)
        if active is None:
            self.watched += [("resolved", m, self.last(m)) for m in sorted(self.given) if self.is_open(m)]
            self.seen.clear()
            self.given.clear()
            return self.watched[before:]
        for model in sorted({name for _, name, _ in self.watched}):
            if self.is_open(model) and model not in active:
                self.watched.append(("resolved", model, self.last(model)))
        for model in sorted(active):
            found = active[model]
            mark = model, found.ordinal, found.given_ms
            if mark in self.seen:
                continue
            if not self.is_open(model):
                if behind and now_ms - found.given_ms > SPEC.stale_after_ms:
                    continue
                earlier = self.given.get(model, [])
                cooldown = 0 if model == "loud" else 600_000
                if not (earlier and abs(found.given_ms - earlier[-1]) < cooldown):
                    self.given.setdefault(model, []).append(found.given_ms)
                    self.watched.append(("firing", model, found.ordinal))
            self.seen.add(mark)
        return self.watched[before:]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_what_is_notified_is_what_a_plain_account_gives_restarted_at_any_time(
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    book, plain = AlarmBook(SPEC, "s"), Plain()
    active: dict[str, ActiveHint] = {}
    ordinals: dict[str, int] = {}
    now_ms = NOW_MS
    kinds: list[str] = []
    ids: set[str] = set()
    off = False
    for _ in range(300):
        now_ms += int(rng.integers(1, 900_000))
        for model in ("loud", "m", "n"):
            dice = rng.random()
            if dice < 0.2:
                ordinals[model] = ordinals.get(model, 0) + 1
                active[model] = hint(ordinals[model], now_ms - int(rng.choice([0, 2 * HOUR_MS])))
            elif dice < 0.35:
                active.pop(model, None)
        expected: list[tuple[str, str, int]] = []
        watched: list[Notification] = []
        if rng.random() < 0.05:
            active.pop("m", None)
            ordinals.pop("m", None)
            expected += plain.retire("m")
            watched += book.retire("m", now_ms)
        behind = bool(rng.random() < 0.4)
        if rng.random() < 0.05:  # a restart with `notify` the other way round
            off = not off
            kept = book.state()
            book = AlarmBook(SPEC, "s")
            book.restore(kept)
        shown = None if off else active
        if rng.random() < 0.3:  # decided, and lost before it was durable: decided again just so
            kept = book.state()
            lost = book.review(WatchedBook(), now_ms, behind=behind, hints=shown)
            book = AlarmBook(SPEC, "s")
            book.restore(kept)
            assert book.state() == kept
            again = book.review(WatchedBook(), now_ms, behind=behind, hints=shown)
            assert again == lost
            watched += again
        else:
            watched += book.review(WatchedBook(), now_ms, behind=behind, hints=shown)
        expected += plain.review(shown, now_ms, behind=behind)
        assert [(n.kind, n.model, n.hint.as_notified.ordinal) for n in watched if n.hint] == expected
        assert {n.model for n in book.open_incidents()} == {m for m in ("loud", "m", "n") if plain.is_open(m)}
        kinds += [n.kind for n in watched]
        assert ids.isdisjoint(n.id for n in watched)
        ids |= {n.id for n in watched}
    assert kinds.count("firing") > 10
    assert kinds.count("resolved") > 10
