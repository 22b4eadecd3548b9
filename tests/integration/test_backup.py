"""A backup of a state that a daemon is writing to: restored, it leads to the same numbers."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sys
from pathlib import Path

import pytest

from streamwatch.edge.stores.rocksdb.exporting import backups_in
from tests.integration.conftest import Broker
from tests.integration.one_log import all_evaluated, assert_same_numbers, dumped, replayed
from tests.integration.results_topics import (
    Topics,
    assert_outcomes_once,
    committed,
    replayed_outcomes,
)
from tests.integration.running import child
from tests.integration.test_one_order import MODELS, PARTITIONS, Written, overrides
from tests.integration.test_results_topics import all_published, read_topics


async def ran(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """A command of streamwatch: exit code, output, errors."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "streamwatch", *arguments, cwd=folder, stdout=-1, stderr=-1
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


@pytest.mark.timeout(900)
async def test_a_backup_under_load_is_restored_and_goes_on_as_if_nothing_had_happened(
    kafka: Broker, tmp_path: Path
) -> None:
    """A backup, load, a kill, the state lost: the daemon on the backup reads again what came after it."""
    topics, results = await read_topics(kafka), await Topics.on(kafka)
    for name in ("first", "restored", "backlog"):
        (tmp_path / name).mkdir()
    state, backups, seen = tmp_path / "state", tmp_path / "backups", tmp_path / "seen"
    settings = overrides(kafka, topics, "first")
    hook = json.dumps(["/bin/sh", "-c", f'ls "$0" > {seen}'])
    durable = [
        *overrides(kafka, topics, "first", state),
        *results.settings(),
        f"state.backups.directory={backups}",
        f"state.backups.command={hook}",
        "state.backups.keep=2",
    ]
    named = [option for each in durable for option in ("--set", each)]
    writer = Written(kafka, topics, seed=5)
    with child(tmp_path / "first", *durable) as daemon:
        daemon.url()
        writing = asyncio.create_task(writer.write())
        made: list[str] = []
        for _ in range(3):
            await asyncio.sleep(4)
            code, out, err = await ran(tmp_path, "state", "backup", *named)
            assert code == 0, err
            made.append(out.strip())
        code, _, err = await ran(tmp_path, "state", "export", "open.swx", "--directory", str(state))
        assert code == 0, err
        await writing
        await all_published(daemon, writer.records)
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
        assert daemon.log.count("backup_made") == 3, daemon.log
    assert [str(path) for path in backups_in(backups)] == made[1:]
    assert "format.json" in seen.read_text()
    for copy in made[1:]:
        code, out, err = await ran(tmp_path, "state", "verify", "--directory", copy)
        assert code == 0, out + err
    shutil.rmtree(state)
    shutil.copytree(made[1], state)
    with child(tmp_path / "restored", *durable) as daemon:
        restored = await all_published(daemon, writer.records)
        assert "state_older_than_topics" in daemon.log
    with child(tmp_path / "backlog", *settings) as daemon:
        backlog = await all_evaluated(daemon, writer.records, MODELS)
    log = tmp_path / "log.jsonl"
    dumped(kafka, topics, PARTITIONS, log)
    replay = await asyncio.to_thread(replayed, log, settings)
    assert_same_numbers(backlog, [restored], replay)
    [outcomes] = committed(kafka.bootstrap_servers, results.outcomes)
    assert_outcomes_once(outcomes, await asyncio.to_thread(replayed_outcomes, log, settings))
    imported = str(tmp_path / "imported")
    code, _, err = await ran(tmp_path, "state", "import", "open.swx", "--directory", imported)
    assert code == 0, err
    code, out, err = await ran(tmp_path, "state", "verify", "--directory", imported)
    assert code == 0, out + err
