"""Early hints from predictions to people: the figures notified, and a process killed at any commit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec
from streamwatch.core.predictions.early_hints import EarlyHints, EarlyHintsSpec
from streamwatch.core.predictions.kind import batch_of
from streamwatch.core.predictions.registers import PredictionRegisters
from streamwatch.core.records.events import Prediction
from tests.core.alerting.watched_book import WatchedBook

SPEC = EarlyHintsSpec(max_models=3)
RULES = AlarmsSpec(otherwise=AlarmRule(cooldown_ms=1_000))
COMMIT = 700


def stream() -> list[Prediction]:
    """Two models; the share of class b changes in m for good, and in n to and fro."""
    rng = np.random.default_rng(4)
    found: list[Prediction] = []
    for i in range(40_000):
        model = "mn"[i % 2]
        high = i > 20_000 if model == "m" else (i // 10_000) % 2
        found.append(Prediction(str(i), model, "b" if rng.random() < (0.6 if high else 0.2) else "a", i))
    return found


STREAM = stream()


def decide(register: EarlyHints, book: AlarmBook, now_ms: int) -> list[Notification]:
    return book.review(WatchedBook(), now_ms, behind=False, hints=register.active_hints())


def fresh() -> tuple[EarlyHints, AlarmBook]:
    return EarlyHints(SPEC), AlarmBook(RULES, "s")


def issued_by(kills: Sequence[int]) -> list[Notification]:
    """Everything decided at the end of each commit; a killed process goes on from the commit before."""
    register, book = fresh()
    kept, issued = (b"", book.state()), list[Notification]()
    for number, start in enumerate(range(0, len(STREAM), COMMIT)):
        part = STREAM[start : start + COMMIT]
        for _ in range(1 + (number in kills)):
            register, book = fresh() if number in kills else (register, book)
            if number in kills:
                register.restore(kept[0])
                book.restore(kept[1])
            cut = 1 + number % (COMMIT - 1)
            for piece in (part[:cut], part[cut:]):
                register.observe(batch_of(piece))
            decided = decide(register, book, start)
        kept = register.snapshot(), book.state()
        issued += decided
    return issued


def test_hints_begin_and_end_where_the_register_says_with_its_figures() -> None:
    register, book = fresh()
    stands: dict[str, bool] = {}
    seen = 0
    for start in range(0, len(STREAM), COMMIT):
        register.observe(batch_of(STREAM[start : start + COMMIT]))
        views = register.views()
        for notification in decide(register, book, start):
            assert notification.hint is not None
            model, hint = notification.model, notification.hint.as_notified
            view = views[model]
            stands[model] = notification.kind == "firing"
            seen += 1
            if notification.kind == "firing":
                assert view.hint is not None
                assert (hint.ordinal, hint.given_ms) == (view.hints, view.hint.record_ms)
                assert hint.predicted_class in ("a", "b")
                assert hint.before == view.before[str(hint.predicted_class)]
                assert hint.now == view.now[str(hint.predicted_class)]
                assert hint.more == (hint.now > hint.before)
        assert {model for model, yes in stands.items() if yes} == {
            model for model, view in views.items() if view.hint is not None
        }
    assert seen >= 3
    assert set(stands) == {"m", "n"}


@pytest.mark.parametrize("seed", range(4))
def test_a_process_killed_between_commits_issues_what_one_that_was_not_killed_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kills = rng.choice(len(STREAM) // COMMIT, 15, replace=False).tolist()
    assert issued_by(kills) == issued_by(())


def test_registers_give_the_hints_of_all_of_them() -> None:
    registers = PredictionRegisters([SPEC])
    assert registers.active_hints() == {}
    registers.observe_events(STREAM[:24_000])
    alone = EarlyHints(SPEC)
    alone.observe(batch_of(STREAM[:24_000]))
    assert registers.active_hints() == alone.active_hints() != {}
