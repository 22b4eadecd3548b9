"""Holders of buckets: one object for all workers, given up when what has it fails, gone with its workers."""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`: make test-spark")

from streamwatch.core.buckets.contract import FeedResult
from streamwatch.spark.delta_log import DeltaLog
from streamwatch.spark.holders import HolderError, start_holders
from tests.spark.counting import CountingIds
from tests.spark.one_machine import parent_of
from tests.spark.test_delta_log import Entries, Value

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="holders are for Linux")

DEADLINE_SECONDS = 60


class Telling:
    """A bucket that counts what it was fed, says which process it is in, and fails when it is told to."""

    def __init__(self, number):
        self.number, self.fed = number, 0

    def feed(self, batch, pieces, _end_ms):
        if b"fail" in pieces:
            raise ValueError(f"told to fail in batch {batch}")
        if b"end" in pieces:
            os._exit(9)
        self.fed += 1
        return FeedResult([(self.fed, b"")], [("pid", str(os.getpid()), b"")], b"")

    def take_in(self, delta):
        self.fed += int(delta)

    def base(self):
        return [str(self.fed).encode()]


@pytest.fixture
def holders():
    started = start_holders(most=2)
    yield started
    started.door.close()


def fed(holders, bucket, *pieces, keep=True):
    """Feed once as a task does; how often the object at hand was, and the process it is in."""
    with holders.open_slot("ids", bucket) as slot:
        telling = slot.new(partial(Telling, bucket)) if slot.kept is None else slot.kept.bucket
        result = telling.feed(1, pieces, None)
        if keep:
            kept = slot.kept or DeltaLog(Value(), Entries()).load(None, lambda: telling)
            slot.keep(kept)
    return result.parts[0][0], int(result.results[0][1])


def gone(pid):
    """Wait until a process is gone."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        os.sched_yield()


def test_workers_share_one_object_in_a_process_of_its_own(holders):
    _, at = fed(holders, 0)
    if (worker := os.fork()) == 0:
        os._exit(fed(holders, 0) != (2, at))
    assert os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) == 0
    assert fed(holders, 0) == (3, at)
    assert at != os.getpid()
    assert fed(holders, 1)[1] not in {at, os.getpid()}


def test_with_more_buckets_than_processes_a_holder_has_several(holders):
    found = [fed(holders, bucket) for bucket in range(5)]
    assert [count for count, _ in found] == [1] * 5
    assert len({pid for _, pid in found}) == 2
    assert [fed(holders, bucket) for bucket in range(5)] == [(2, pid) for _, pid in found]


def test_an_object_that_nobody_asked_to_keep_is_not_kept(holders):
    fed(holders, 0)
    assert fed(holders, 0, keep=False)[0] == 2
    assert fed(holders, 0)[0] == 1


def test_what_fails_in_a_holder_fails_in_the_worker_and_leaves_no_object(holders):
    _, at = fed(holders, 0)
    with pytest.raises(HolderError, match="told to fail in batch 1"):
        fed(holders, 0, b"fail")
    assert fed(holders, 0) == (1, at)


def test_a_holder_that_was_killed_is_followed_by_another(holders):
    _, at = fed(holders, 0)
    os.kill(at, signal.SIGKILL)
    gone(at)
    count, now_at = fed(holders, 0)
    assert (count, now_at != at) == (1, True)
    with pytest.raises((EOFError, ConnectionError)):
        fed(holders, 0, b"end")
    gone(now_at)
    assert fed(holders, 0)[0] == 1


def test_host_and_holders_end_with_the_last_that_could_ask():
    read, write = os.pipe()
    if (parent := os.fork()) == 0:
        started = start_holders()
        os.write(write, str(fed(started, 0)[1]).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(parent, 0)
    os.close(write)
    gone(int(os.read(read, 20)))
    os.close(read)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_workers_and_kills_do_every_committed_word_is_counted_once(holders, seed):
    chance = Random(seed)
    value, entries, words = Value(), Entries(), []
    for batch in range(1, 60):
        came = [f"word{chance.randrange(9)}" for _ in range(chance.randrange(6))]
        before = value.value, dict(entries.entries)
        with holders.open_slot("ids", 0) as slot:
            log = DeltaLog(value, entries, chance.choice([1, 200]))
            kept = log.load(slot.kept, lambda slot=slot: slot.new(partial(CountingIds, 0)))
            log.append(kept, kept.bucket.feed(batch, [" ".join(came).encode()], None).delta)
            if chance.random() < 0.8:
                slot.keep(kept)
        if chance.random() < 0.7:
            words += came
        else:
            value.value, entries.entries = before
    fresh = DeltaLog(value, entries).load(None, lambda: CountingIds(0))
    assert sorted(fresh.bucket.words.elements()) == sorted(words)


def test_a_worker_without_a_host_ends_the_parent_of_workers():
    read, write = os.pipe()
    if (parent := os.fork()) == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        started = start_holders()
        if os.fork() == 0:
            host = parent_of(fed(started, 0)[1])
            os.kill(host, signal.SIGKILL)
            gone(host)
            with pytest.raises(ConnectionError):
                fed(started, 0)
            os.write(write, b"raised")
            os._exit(0)
        while True:
            signal.pause()
    _, status = os.waitpid(parent, 0)
    os.close(write)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGTERM
    assert os.read(read, 20) == b"raised"
    os.close(read)
