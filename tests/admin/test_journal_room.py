"""Bytes that outcomes take in a state on disk, as `streamwatch check` and docs/decisions/state.md say."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from streamwatch.admin.capacity import DISK_OUTCOME_BYTES
from streamwatch.core.join.durable.columns import COLUMNS, unpack_columns
from streamwatch.core.join.durable.packed import HELD, HELD_PAIRS, HELD_SCORES
from streamwatch.core.pipeline.journal import read
from streamwatch.edge.stores.rocksdb.inspect import Inspection
from tests.assembly.lives import DOCUMENT, START_MS, Life, Row, with_value

IDS, WAITING, MODELS = 6_000, 700, ("a", "b", "c")


def records(classes: int, *, scored: bool, digits: int = 17) -> list[Row]:
    """Predictions of three models every 37 ms, and labels that come 26 s later."""
    draw, rows = random.Random(classes), []
    for n in range(IDS):
        at_ms = START_MS + 37 * n
        for place, model in enumerate(MODELS):
            made: dict[str, Any] = {"id": f"i{n}", "model": model, "prediction": str(draw.randrange(classes))}
            if scored:
                scores = [draw.random() for _ in range(classes)]
                made["scores"] = {
                    str(name): round(each / sum(scores), digits) for name, each in enumerate(scores)
                }
            rows.append(Row("predictions", 0, len(MODELS) * n + place, at_ms, json.dumps(made).encode()))
        if n >= WAITING:
            label = {"id": f"i{n - WAITING}", "label": str(draw.randrange(classes))}
            rows.append(Row("labels", 0, n - WAITING, at_ms + draw.randrange(30), json.dumps(label).encode()))
    return rows


def stored(directory: Path, document: dict[str, Any], rows: list[Row]) -> Inspection:
    life = Life(document, directory)
    for start in range(0, len(rows), 8_000):
        life.feed(rows[start : start + 8_000])
        life.commit()
    life.close()
    return Inspection(directory)


COMPARED = with_value(DOCUMENT, "monitors.comparisons", [{"champion": "a", "challengers": ["b", "c"]}])


@pytest.mark.parametrize(
    ("document", "classes", "digits", "least", "most"),
    [
        (DOCUMENT, 2, 0, 6.7, 7.1),
        (DOCUMENT, 20, 0, 6.7, 7.1),
        (COMPARED, 3, 0, 9.3, 9.8),
        (DOCUMENT, 3, 17, 6.8 + 3 * 8, 6.8 + 3 * 8.3),
        (DOCUMENT, 10, 17, 6.8 + 10 * 8, 6.8 + 10 * 8.3),
        (DOCUMENT, 10, 4, 6.8 + 10 * 2, 6.8 + 10 * 2.3),
    ],
)
def test_outcomes_of_the_journal_take_the_bytes_that_the_check_counts(
    document: dict[str, Any], classes: int, digits: int, least: float, most: float, tmp_path: Path
) -> None:
    state = stored(tmp_path / "state", document, records(classes, scored=digits > 0, digits=digits))
    entries = [(len(value), len(read(value))) for _, value in state.journal()]
    state.close()
    outcomes = sum(count for _, count in entries)
    assert outcomes == len(MODELS) * (IDS - WAITING)
    each = sum(size for size, _ in entries) / outcomes
    assert least < each < most
    assert digits or each < DISK_OUTCOME_BYTES < 3 * each


def test_an_outcome_that_waits_for_its_order_takes_the_bytes_that_the_check_counts(tmp_path: Path) -> None:
    document = with_value(DOCUMENT, "join.order", "prediction_time")
    state = stored(tmp_path / "state", document, records(3, scored=False))
    sizes: dict[bytes, list[bytes]] = {}
    for key, value in state.items("columns"):
        sizes.setdefault(key[:1], []).append(value)
    state.close()
    assert HELD_SCORES not in sizes
    assert HELD_PAIRS not in sizes
    runs = sizes[HELD]
    held = sum(len(unpack_columns(value, COLUMNS + 3)[0]) for value in runs)
    each = sum(map(len, runs)) / held
    assert held > 1_000
    assert 18 < each < 19
    assert each < DISK_OUTCOME_BYTES
