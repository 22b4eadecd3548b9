"""Which join a configuration gets: the compiled one wherever it does all that is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from streamwatch.assembly.specs import commit_events, joins_in_columns
from streamwatch.settings import Settings


def settings(**sections: Any) -> Settings:
    document: dict[str, Any] = {
        "kafka": {"bootstrap_servers": ["none:0"]},
        "topics": {"predictions": [{"name": "p"}], "labels": [{"name": "l"}]},
        "state": {"kind": "memory"},
        **sections,
    }
    return Settings(**document)


def chosen(**sections: Any) -> bool:
    return joins_in_columns(settings(**sections))


def durable(megabytes: int) -> dict[str, Any]:
    """State that lasts, and how much of the join may be in memory."""
    return {"kind": "rocksdb", "directory": "/somewhere", "join_memory_megabytes": megabytes}


def test_state_in_memory_is_joined_in_columns() -> None:
    assert chosen()
    assert chosen(join={"max_pending": 10**9})


def test_outcomes_that_wait_for_the_order_of_predictions_are_joined_in_columns() -> None:
    assert chosen(join={"order": "prediction_time"})


def test_state_on_disk_is_joined_in_columns_however_much_may_be_held() -> None:
    assert chosen(state={"kind": "rocksdb", "directory": "/somewhere"})
    assert chosen(state=durable(1), join={"max_pending": 10**9})


SERVED: dict[str, dict[str, Any]] = {
    "models that are compared": {"monitors": {"comparisons": [{"champion": "a", "challengers": ["b"]}]}},
    "models that predict in folds": {"folds": {"scheme": "split-validation", "k": 5}},
}


@pytest.mark.parametrize("what", SERVED)
def test_it_is_joined_in_columns_with(what: str) -> None:
    assert chosen(**SERVED[what])


REASONS: dict[str, dict[str, Any]] = {
    "state that lasts and a join that is to be on disk": {"state": durable(0)},
    "predictions that are revised": {"join": {"conflicts": "last"}},
    "models that are compared in the order of predictions": {
        "join": {"order": "prediction_time"},
        "monitors": {"comparisons": [{"champion": "a", "challengers": ["b"]}]},
    },
}


@pytest.mark.parametrize("reason", REASONS)
def test_it_is_joined_row_by_row_because_of(reason: str) -> None:
    assert not chosen(**REASONS[reason])


def test_a_commit_waits_for_more_events_where_they_are_packed_and_for_as_many_as_the_settings_say() -> None:
    def events(**state: Any) -> int:
        return commit_events(settings(state=state))

    packed, row_by_row = events(), events(join_memory_megabytes=0)
    assert packed > row_by_row
    assert events(kind="memory") == packed
    assert events(commit_events=7) == events(commit_events=7, join_memory_megabytes=0) == 7
