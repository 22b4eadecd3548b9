"""Which join a configuration gets: the compiled one wherever it does all that is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from streamwatch.assembly.specs import joins_in_columns
from streamwatch.settings import Settings


def chosen(**sections: Any) -> bool:
    document: dict[str, Any] = {
        "kafka": {"bootstrap_servers": ["none:0"]},
        "topics": {"predictions": [{"name": "p"}], "labels": [{"name": "l"}]},
        "state": {"kind": "memory"},
        **sections,
    }
    return joins_in_columns(Settings(**document))


def test_state_in_memory_is_joined_in_columns() -> None:
    assert chosen()


REASONS: dict[str, dict[str, Any]] = {
    "state that lasts": {"state": {"kind": "rocksdb", "directory": "/somewhere"}},
    "outcomes that wait for the order of predictions": {"join": {"order": "prediction_time"}},
    "models that are compared": {"monitors": {"comparisons": [{"champion": "a", "challengers": ["b"]}]}},
    "models that predict in folds": {"folds": {"scheme": "split-validation", "k": 5}},
}


@pytest.mark.parametrize("reason", REASONS)
def test_it_is_joined_row_by_row_because_of(reason: str) -> None:
    assert not chosen(**REASONS[reason])
