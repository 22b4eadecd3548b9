"""States as earlier versions left them open, say what they said then but for verdicts, and go on.

`states/schema-N.tar.gz` is the directory that the code of the time wrote (`written_state`, without RocksDB's
log), `states/schema-N.json` what that code said of it. A new schema brings a pair of its own, made before
anything else is changed; none is ever made again.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from streamwatch.admin.state_verify import verified
from streamwatch.core.series import Histogram
from streamwatch.daemon import POSITIONS, decode_positions
from streamwatch.edge.stores.rocksdb.directory.meta import SCHEMA
from streamwatch.edge.stores.rocksdb.directory.opening import read_format
from tests.core.join.join_stream import label, predict
from tests.edge.stores.rocksdb.stream import digested
from tests.edge.stores.rocksdb.written_state import PREDICTIONS, Life

FOLDER = Path(__file__).parent / "states"
SCHEMAS = sorted(
    int(file.name.removeprefix("schema-").split(".")[0]) for file in FOLDER.glob("schema-*.tar.gz")
)


@pytest.fixture(params=SCHEMAS)
def released(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A directory of each schema, and what its code said of it."""
    with tarfile.open(FOLDER / f"schema-{request.param}.tar.gz") as archive:
        archive.extractall(tmp_path / "state", filter="data")
    said = json.loads((FOLDER / f"schema-{request.param}.json").read_text())
    written = read_format(tmp_path / "state")
    assert written is not None
    assert (written.schema, written.identity) == (request.param, said["identity"])
    return tmp_path / "state", said


def plain(value: float | Histogram) -> Any:
    return [list(value.counts), value.total] if isinstance(value, Histogram) else value


def series(life: Life) -> dict[str, dict[tuple[str, ...], Any]]:
    return {
        family.name: {key: plain(value) for key, value in family.samples}
        for family in life.stream.pipeline.families()
    }


VERDICTS = ("verdict", "lead")
"""Beginnings of the names of series that begin anew: evidence of earlier versions started too early."""
FIRST = 2
"""States of before it are refused: they have no order that could be gone on from."""


def test_every_schema_before_this_version_s_left_a_directory_and_none_is_of_a_newer_one() -> None:
    assert set(SCHEMAS) >= set(range(FIRST, SCHEMA)), "make it with the code before the new schema"
    assert max(SCHEMAS) <= SCHEMA


def test_a_state_of_this_schema_is_sound_whatever_version_of_an_estimator_wrote_it(
    released: tuple[Path, dict[str, Any]],
) -> None:
    written = read_format(released[0])
    assert written is not None
    if written.schema == SCHEMA:
        assert [check.found for check in verified(released[0]) if check.faults] == []


def test_a_state_of_every_released_schema_opens_says_what_it_said_and_goes_on(
    released: tuple[Path, dict[str, Any]],
) -> None:
    directory, said = released
    life = Life(directory)
    saved = life.store.load()
    assert (saved.commits, life.store.identity) == (said["commits"], said["identity"])
    positions = decode_positions(saved.sections[POSITIONS]).positions
    assert {place.topic: offset for place, offset in positions.items()} == said["positions"]
    assert sorted(saved.outbox) == said["outbox"]
    assert [[i.incident, list(i.detectors)] for i in life.book.open_incidents()] == said["incidents"]
    assert life.monitors.models() == said["models"]
    assert "verdict persistent by accuracy" in life.resumed.restarted
    found = series(life)
    for name, samples in said["series"].items():
        if name.startswith(VERDICTS) or name == "series_dropped":  # a fact of each scrape, of no state
            continue
        assert found[name] == {tuple(key): value for key, value in samples}, name

    life.offset = positions[PREDICTIONS]
    outcomes = found["outcomes_total"]["m",]
    life.feed(*digested([predict("new", "x", 30_000), label("new", "x", 30_000)]))
    life.until(40_000)
    life.commit()
    life.store.close()
    again = Life(directory)
    assert series(again)["outcomes_total"]["m",] > outcomes
    again.store.close()
