"""Batches of records in columns: the events they stand for, and how they are kept until their release."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence

import numpy as np
import pytest
import xxhash

from streamwatch.core.merge.inbox import KeptBatches
from streamwatch.core.records.batch import (
    LABEL,
    OBJECT,
    PREDICTION,
    ROW,
    RecordBatch,
    batch_of,
    no_records,
    rows_of,
)
from streamwatch.core.records.events import Event, Invalid, Label, NullRecord, Prediction
from streamwatch.core.records.vocabulary import NO_NAME, Names, Vocabulary
from tests.core.columns import in_columns
from tests.tiers import examples


def key_of(id_: str, *, digests: bool) -> str:
    return xxhash.xxh3_128_digest(id_.encode()).decode("latin-1") if digests else id_


def drawn(chance: random.Random, count: int, *, digests: bool) -> list[Event]:
    """Events of all kinds, their keys spelt as they are kept."""
    events: list[Event] = []
    for n in range(count):
        key = key_of(f"id-{chance.randrange(10 ** chance.randrange(1, 12))}", digests=digests)
        model, stamp = f"m{chance.randrange(4)}", chance.choice((None, 0, 1_700_000_000_000 + n))
        match chance.randrange(8):
            case 0 | 1 | 2:
                events.append(Prediction(key, model, f"c{n % 3}", -1, stamp))
            case 3 | 4 | 5:
                events.append(Label(key, f"c{n % 3}", -1, chance.choice((None, model)), stamp))
            case 6:
                events.append(Prediction(key, model, "c", -1, stamp, {"c": 0.5}))
            case _:
                events.append(
                    chance.choice((Invalid("t", 0, n, "missing_id"), NullRecord("t", key, None, -1, True)))
                )  # type: ignore[arg-type]
    return events


def at(events: Sequence[Event], clock_ms: Sequence[int]) -> list[Event]:
    """The events with the clock at their places."""
    placed = copy.deepcopy(list(events))
    for event, ms in zip(placed, clock_ms, strict=True):
        event.record_ms = ms
    return placed


@pytest.mark.parametrize("digests", [False, True])
def test_a_batch_gives_back_the_events_that_it_was_made_of(*, digests: bool) -> None:
    for seed in range(examples(1)):
        chance = random.Random(seed)
        events = drawn(chance, chance.choice((0, 1, 7, 90)), digests=digests)
        batch = in_columns(events, Vocabulary(), digests=digests)
        batch.rows["record_ms"] = np.arange(len(events))
        assert batch.events() == at(events, range(len(events)))
        start, stop = sorted((chance.randrange(99), chance.randrange(99)))
        assert batch.part(start, stop).events() == at(events, range(len(events)))[start:stop]


@pytest.mark.parametrize("side", [PREDICTION, LABEL, OBJECT])
def test_a_batch_of_one_side_gives_back_its_events(side: int) -> None:
    events = drawn(random.Random(1), 200, digests=False)
    batch = in_columns(events, Vocabulary(), digests=False)
    chosen = np.flatnonzero(batch.rows["side"] == side)
    of_rows = batch.rows[chosen], batch.texts, batch.objects, batch.vocabulary
    alike = RecordBatch(*of_rows, scores=batch.scores)
    assert alike.events() == [events[i] for i in chosen]


@pytest.mark.parametrize("digests", [False, True])
def test_kept_records_are_given_back_whatever_was_added_let_go_and_moved_in_between(*, digests: bool) -> None:
    for seed in range(examples(0.5)):
        chance, vocabulary, kept = random.Random(seed), Vocabulary(), KeptBatches()
        held: list[Event] = []
        words = np.empty((0, 8), np.int64)
        for _ in range(12):
            events = drawn(chance, chance.randrange(300), digests=digests)
            added = kept.add([in_columns(copy.deepcopy(events), vocabulary, digests=digests)])
            held, words = held + events, np.concatenate([words, added])
            places = chance.sample(range(len(held)), len(held) // 2)
            taken = kept.batch(rows_of(words[places].copy()), np.arange(len(places)))
            expected = at([held[place] for place in places], range(len(places)))
            left = [place for place in range(len(held)) if place not in set(places)]
            held, words = [held[place] for place in left], words[left].copy()
            if chance.random() < 0.4:
                kept.keep(rows_of(words))
            assert taken.events() == expected  # as it was, though others were added or moved since


def test_records_of_two_vocabularies_or_spellings_are_not_kept_together() -> None:
    events: list[Event] = [Label("a", "c", -1)]
    kept, vocabulary = KeptBatches(), Vocabulary()
    kept.add([in_columns(events, vocabulary, digests=False)])
    kept.add([batch_of(events, np.zeros(1, np.int64))])  # objects name nothing by number
    with pytest.raises(ValueError, match="one vocabulary"):
        kept.add([in_columns(events, Vocabulary(), digests=False)])
    spelt = in_columns([Label(key_of("a", digests=True), "c", -1)], vocabulary, digests=True)
    with pytest.raises(ValueError, match="texts of keys"):
        kept.add([spelt])


def test_objects_pass_as_they_were_given() -> None:
    events: list[Event] = [Invalid("t", 0, 5, "missing_id"), Label("a", "c", 9)]
    batch = batch_of(events, np.array([5, 6]), np.array([70, 80]))
    assert batch.given() == events
    assert batch.rows["offset"].tolist() == [5, 6]
    assert [event.record_ms for event in batch.events()] == [70, 80]
    assert no_records().events() == []


def test_numbers_of_names_stay_and_run_out_until_those_of_unneeded_names_are_released() -> None:
    names = Names(most=3)
    assert names.fixed_number("f") == 0
    assert not names.is_full
    assert [names.number(name) for name in ("a", "b", "a", "c", "b")] == [1, 2, 1, NO_NAME, 2]
    assert names.is_full
    names.release_all_but(np.array([2, -1]))
    assert not names.is_full
    assert (list(names.names), len(names)) == (["f", "", "b"], 2)
    assert [names.number(name) for name in ("b", "c", "a", "f")] == [2, 1, NO_NAME, 0]
    assert list(names.names) == ["f", "c", "b"]


def test_numbers_that_are_all_needed_are_asked_for_again_only_after_as_many_refusals() -> None:
    names = Names(most=20)
    for n in range(21):
        names.number(f"{n}")
    names.release_all_but(np.arange(20))
    tried = 0
    while not names.is_full:
        tried += 1
        assert names.number("x") == NO_NAME
    assert tried == 21


def test_a_row_is_one_cache_line() -> None:
    assert ROW.itemsize == 64
