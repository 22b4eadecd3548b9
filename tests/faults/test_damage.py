"""State that is damaged, newer, or somebody else's: refused by name, never read as if it were whole."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamwatch.demo.embedded import EmbeddedBroker
from streamwatch.edge.stores.kind import StateDamaged, StateRefused
from tests.edge.stores.rocksdb.open_copy import copy_while_open
from tests.faults.committed import Committing
from tests.faults.disk.volume import read_only
from tests.faults.disk.watching import Pairs, daemon, watching
from tests.faults.disk.writing import IDS, ROOT, Expected, expectations, found_in, until
from tests.integration.running import DEADLINE_SECONDS

COMMITS = 12
PLACES = (0.0, 0.15, 0.35, 0.5, 0.7, 0.9, 1.0)
"""Where in a file, as a share of its size."""
NOBODY = 65_534
OPENING = f"""
import os, pickle, sys  # what is imported late may not be readable any more
from pathlib import Path
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
if not os.geteuid():
    os.setuid({NOBODY})
try:
    RocksStore.open(RocksSpec(Path(sys.argv[1]))).close()
except Exception as error:
    print(type(error).__name__, error)
"""

AT_WORK = (
    *("num-running-flushes", "num-running-compactions"),
    *("mem-table-flush-pending", "compaction-pending"),
)
"""Figures of RocksDB: while one is not 0, there are files that nothing refers to yet."""

Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state as a killed process leaves it: sorted files, and a log that is still needed."""
    folder = tmp_path_factory.mktemp("killed")
    committing = Committing(folder / "living", IDS)
    assert list(committing.until(COMMITS))[-1] == COMMITS
    until(lambda: not any(committing.store._database.figure("columns", name) for name in AT_WORK))
    copy_while_open(folder / "living", folder / "state")
    committing.store.close()
    return folder / "state"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Expected]:
    with expectations(tmp_path_factory.mktemp("expected") / "state") as expected:
        yield expected


def flip(path: Path, place: float) -> None:
    content = bytearray(path.read_bytes())
    content[min(int(len(content) * place), len(content) - 1)] ^= 0x10
    path.write_bytes(content)


def cut(path: Path, place: float) -> None:
    os.truncate(path, int(path.stat().st_size * place))


def opened(state: Path, copy: Path, damage: Damage, expected: Expected) -> int | str:
    """The commit found in a damaged copy, or the words it is refused with."""
    shutil.copytree(state, copy)
    damage(copy)
    try:
        return found_in(copy, expected)
    except StateDamaged as error:
        return str(error).replace(str(copy), "state")
    finally:
        shutil.rmtree(copy)


def named(pattern: str, state: Path) -> list[str]:
    names = sorted(path.name for path in state.glob(pattern))
    assert names
    return names


def test_a_flipped_bit_in_a_sorted_file_is_noticed_or_changes_nothing(
    killed: Path, expected: Expected, tmp_path: Path
) -> None:
    whole = found_in_copy(killed, tmp_path / "whole", expected)
    refused = 0
    for name in named("*.sst", killed):
        for place in PLACES:
            found = opened(killed, tmp_path / "copy", lambda copy: flip(copy / name, place), expected)  # noqa: B023
            if isinstance(found, str):
                refused += 1
                assert found.startswith("the state is damaged: state/")
                assert name in found or "properties" in found, "of a file's properties it says no more"
            else:
                assert found == whole
    assert refused > len(named("*.sst", killed))


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: cut(path, 0.5)], ids=["lost", "cut short"])
def test_a_sorted_file_that_is_not_whole_is_refused_by_name(
    killed: Path, expected: Expected, tmp_path: Path, damage: Damage
) -> None:
    for name in named("*.sst", killed)[:6]:
        found = opened(killed, tmp_path / "copy", lambda copy: damage(copy / name), expected)  # noqa: B023
        assert isinstance(found, str)
        assert found.startswith(f"the state is damaged: state/{name} ")


@pytest.mark.parametrize("damage", [flip, cut])
def test_a_hole_in_the_log_leads_to_an_earlier_commit_or_is_refused(
    killed: Path, expected: Expected, tmp_path: Path, damage: Callable[[Path, float], None]
) -> None:
    found = []
    for name in named("*.log", killed):
        for place in PLACES[1:-1]:
            here = opened(killed, tmp_path / "copy", lambda copy: damage(copy / name, place), expected)  # noqa: B023
            found.append(here)
            assert isinstance(here, int) or here.startswith("the state is damaged: state/*.log ")
    earlier = [commit for commit in found if isinstance(commit, int)]
    assert earlier, "a torn end of the log is what a power cut leaves: what follows is read from Kafka again"
    assert max(earlier) < COMMITS


@pytest.mark.parametrize("place", PLACES)
def test_a_damaged_manifest_is_refused_by_name(
    killed: Path, expected: Expected, tmp_path: Path, place: float
) -> None:
    (name,) = named("MANIFEST-*", killed)
    found = opened(killed, tmp_path / "copy", lambda copy: flip(copy / name, place), expected)
    assert isinstance(found, str)
    assert found.startswith(f"the state is damaged: state/{name} ")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "CURRENT"),
        (b"MANIFEST-00000\x11\n", "CURRENT"),
        (b"MANIFEST-000001\n", "MANIFEST-000001"),
        (None, "CURRENT"),
    ],
)
def test_a_damaged_pointer_to_the_manifest_is_refused_by_name(
    killed: Path, expected: Expected, tmp_path: Path, content: bytes | None, named: str
) -> None:
    def damage(copy: Path) -> None:
        (copy / "CURRENT").unlink()
        if content is not None:
            (copy / "CURRENT").write_bytes(content)

    found = opened(killed, tmp_path / "copy", damage, expected)
    assert isinstance(found, str)
    assert found.startswith(f"the state is damaged: state/{named} ")


def test_a_state_of_a_newer_version_is_refused_and_not_a_byte_of_it_changed(
    killed: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    shutil.copytree(killed, state)
    told = json.loads((state / "format.json").read_text())
    (state / "format.json").write_text(json.dumps(told | {"schema": told["schema"] + 1}))
    before = content_of(state)
    with pytest.raises(StateRefused, match="nothing was changed"):
        Committing(state, IDS)
    assert content_of(state) == before


def test_a_directory_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(StateRefused, match=r"letters\.txt.*state\.directory"):
        Committing(tmp_path, IDS)
    assert content_of(tmp_path) == {"letters.txt": b"dear"}


def test_a_file_where_the_directory_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    for path in (tmp_path / "state", tmp_path / "state" / "below"):
        with pytest.raises(StateRefused, match="is not a directory"):
            Committing(path, IDS)


def test_a_directory_that_may_not_be_written_is_refused(killed: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:  # anybody may enter it, other than `tmp_path`
        state, empty = Path(folder) / "state", Path(folder) / "empty"
        Path(folder).chmod(0o755)
        shutil.copytree(killed, state)
        empty.mkdir(0o555)
        state.chmod(0o555)
        for path in (state, empty, empty / "new"):
            said = opened_by_somebody_else_than_root(path)
            assert said.startswith("StateForbidden "), said
            assert "may not be read or written" in said
            assert "state.directory" in said
        state.chmod(0o755)


@pytest.mark.real("loop mount")
def test_a_volume_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with read_only(tmp_path) as volume, pytest.raises(StateRefused, match="Read-only file system"):
        Committing(volume, IDS)


def opened_by_somebody_else_than_root(path: Path) -> str:
    command = [sys.executable, "-c", OPENING, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


def content_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def found_in_copy(state: Path, copy: Path, expected: Expected) -> int:
    shutil.copytree(state, copy)
    return found_in(copy, expected)


@pytest.fixture(scope="module")
def pairs() -> Iterator[Pairs]:
    with EmbeddedBroker() as broker:
        yield Pairs(broker)


def refusal(folder: Path, state: Path, settings: list[str]) -> str:
    """What a daemon says that ends with exit code 2."""
    with daemon(folder, state, settings) as running:
        assert running.process.wait(DEADLINE_SECONDS) == 2, running.log
        assert "Traceback" not in running.log
        return running.log


async def test_the_daemon_refuses_with_exit_code_2_what_is_in_use_damaged_or_newer(
    tmp_path: Path, pairs: Pairs
) -> None:
    state = tmp_path / "state"
    pairs.write(3_000)
    pairs.flush()
    async with watching(tmp_path, state, pairs.settings) as first:
        await first.until_counted(pairs.written)
        assert f"the state in {state} is in use by another process" in refusal(
            tmp_path, state, pairs.settings
        )
        await first.until_counted(pairs.written)
        code, _ = first.end(signal.SIGTERM)
        assert code == 0
    damaged = max(state.glob("*.sst"), key=lambda path: path.stat().st_size)
    sound = damaged.read_bytes()
    for place in range(20):
        flip(damaged, place / 20)
    assert f"the state is damaged: {damaged} " in refusal(tmp_path, state, pairs.settings)
    damaged.write_bytes(sound)
    told = (state / "format.json").read_text()
    (state / "format.json").write_text(json.dumps(json.loads(told) | {"schema": 99}))
    before = content_of(state)
    assert "has schema 99" in refusal(tmp_path, state, pairs.settings)
    assert content_of(state) == before
    (state / "format.json").write_text(told)
    async with watching(tmp_path, state, pairs.settings) as last:
        await last.until_counted(pairs.written)
