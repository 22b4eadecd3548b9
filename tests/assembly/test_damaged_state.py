"""A start on a state of which a part cannot be read: refused by name, whatever the part."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

from streamwatch.assembly.changes import read_plan
from streamwatch.assembly.reset import Reset, lost, perform
from streamwatch.assembly.state import state_opening
from streamwatch.assembly.topics import build_topics
from streamwatch.core.join.durable.packed import CLASS, parts_of
from streamwatch.edge.stores.kind import StateDamaged
from streamwatch.edge.stores.rocksdb.database import SECTION_PREFIX
from streamwatch.settings import Settings
from streamwatch.telemetry import Telemetry
from tests.edge.stores.rocksdb.written_state import altering, put, written_state

SECTIONS = ("pipeline", "estimators", "settings", "positions", "merge", "alarms")
NO_MSGPACK = b"\xc1\xc1"


def opening(directory: Path) -> None:
    """Open the state as a start does."""
    chosen = Settings(
        kafka={"bootstrap_servers": "nowhere:9092"},  # type: ignore[arg-type]
        topics={"predictions": "predictions", "labels": "labels"},  # type: ignore[arg-type]
        join={"order": "prediction_time"},  # type: ignore[arg-type]
        state={"directory": str(directory)},  # type: ignore[arg-type]
    )
    telemetry = Telemetry(stream=io.StringIO())
    try:
        state_opening(chosen, build_topics(chosen), telemetry)().store.close()
    finally:
        read_plan(chosen)  # nobody has it open


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("written") / "state"
    written_state(directory)
    return directory


@pytest.fixture
def directory(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "state")


def test_a_sound_state_is_opened(directory: Path) -> None:
    opening(directory)


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_that_cannot_be_read_is_named(directory: Path, section: str) -> None:
    shown = f"the section '{section}' cannot be read"
    with altering(directory) as database:
        put(database, "meta", SECTION_PREFIX + section.encode(), NO_MSGPACK)
    with pytest.raises(StateDamaged, match=f"{directory} is damaged: .*{shown}"):
        opening(directory)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "shown"),
    [
        ("models", "what is kept of model '[a-z]+' cannot be read"),
        ("outbox", "the notification '.*' of the outbox cannot be read"),
        ("journal", r"entry \d+ of the journal cannot be read"),
    ],
)
def test_an_entry_that_cannot_be_read_is_named(directory: Path, family: str, shown: str) -> None:
    with altering(directory) as database:
        key = [key for key, _ in database.items(family)][-1]
        put(database, family, key, NO_MSGPACK)
    with pytest.raises(StateDamaged, match=f"{directory} is damaged: {shown}"):
        opening(directory)


@pytest.mark.slow
def test_an_empty_name_of_a_class_is_named_by_its_key(directory: Path) -> None:
    with altering(directory) as database:
        key = next(key for key, _ in database.items("columns") if parts_of(key)[0] == CLASS)
        put(database, "columns", key, b"")
    with pytest.raises(StateDamaged, match=f"is damaged: the value under {key.hex()} cannot be read"):
        opening(directory)


@pytest.mark.slow
def test_all_of_a_state_begins_anew_although_a_section_cannot_be_read(directory: Path) -> None:
    with altering(directory) as database:
        put(database, "meta", SECTION_PREFIX + b"pipeline", NO_MSGPACK)
    for call in (lost, perform):
        with pytest.raises(StateDamaged, match="the section 'pipeline' cannot be read"):
            call(directory, Reset(section="join"))
    (line,) = lost(directory, Reset(everything=True))
    assert line.startswith("all that the state holds, which cannot be listed: ")
    perform(directory, Reset(everything=True))
    assert lost(directory, Reset(everything=True)) == ["all that the state holds"]
    opening(directory)
