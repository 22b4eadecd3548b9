"""States as versions have written them, with the numbers that they stand for.

    python -m tests.upgrade.stored --write

A version that opens them has to show the same numbers, and come to the same ones when it goes on. Each is an
export of a state that defaults wrote, with comparisons, segments and early hints; beside it are the numbers
right after it was opened, and after further records.

Until the first release, whoever changes the schema replaces what is here. From then on each release adds its
own, and those of all releases before it stay.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from streamwatch import __version__
from streamwatch.admin.state_transfer import export_to
from streamwatch.edge.stores.rocksdb.database import SCHEMA
from tests.assembly.lives import DOCUMENT, START_MS, Life, Row

STATES = Path(__file__).parent / "states"
SETTINGS: dict[str, Any] = {
    **DOCUMENT,
    "topics": {
        "predictions": [{"name": "predictions", "mapping": {"segments": ["country"]}}],
        "labels": ["labels"],
    },
    "join": {"horizon": "30m"},
    "monitors": {
        "comparisons": [{"champion": "old", "challengers": ["new", "worse"]}],
        "early_hints": {},
    },
}
MODELS = {"old": 7, "new": 11, "worse": 3}
"""Each is wrong on every so many ids."""
STORED, FURTHER = 1_500, 900
"""Ids before the state was stored, and ids that follow."""
WAITING = 40
"""Newest ids whose labels come with what follows."""


def records(start: int, stop: int) -> list[Row]:
    """Predictions of three models and labels that come 80 s later, of these ids; offsets follow from them."""
    rows: list[Row] = []
    for n in range(start, stop):
        at_ms, truth = START_MS + 2_000 * n, "abc"[(n // 4) % 3]
        for place, (model, wrong) in enumerate(MODELS.items()):
            predicted = truth if n % wrong else "abc"[(n // 4 + 1) % 3]
            made = {"id": f"i{n}", "model": model, "prediction": predicted, "country": "xyz"[n % 3]}
            scores = {each: 0.7 if each == predicted else 0.15 for each in "abc"}
            value = json.dumps({**made, "scores": scores}).encode()
            rows.append(Row("predictions", 0, len(MODELS) * n + place, at_ms, value))
        labelled = n - WAITING
        if labelled >= 0:
            label = {"id": f"i{labelled}", "label": "abc"[(labelled // 4) % 3]}
            rows.append(Row("labels", 0, labelled, at_ms + 500, json.dumps(label).encode()))
    return rows


def numbers(life: Life) -> dict[str, str]:
    """Everything that is shown, by name and labels."""
    return {
        f"{family.name}{list(labels)}": repr(value)
        for family in life.report().families
        for labels, value in family.samples
    }


def lived(directory: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Open a state, and go on; the numbers at first and in the end."""
    life = Life(SETTINGS, directory)
    try:
        first = numbers(life)
        life.feed(records(STORED, STORED + FURTHER))
        life.commit()
        return first, numbers(life)
    finally:
        life.close()


def stored() -> Sequence[Path]:
    """Exports of states, by name."""
    return sorted(STATES.glob("*.swx"))


def write() -> None:
    """Write a state as this version does, and its numbers."""
    STATES.mkdir(exist_ok=True)
    name = f"{__version__}-schema-{SCHEMA}"
    with TemporaryDirectory() as folder:
        directory = Path(folder) / "state"
        life = Life(SETTINGS, directory)
        life.feed(records(0, STORED))
        life.commit()
        life.close()
        export_to(STATES / f"{name}.swx", directory, lambda _entries, _bytes: None)
        (STATES / f"{name}.swx").chmod(0o644)  # it is nobody's secret
        first, last = lived(directory)
    (STATES / f"{name}.json").write_text(json.dumps({"opened": first, "gone_on": last}, indent=0) + "\n")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--write", action="store_true", required=True)
    options.parse_args()
    write()
