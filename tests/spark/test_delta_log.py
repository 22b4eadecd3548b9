"""The log of a bucket, over dictionaries instead of Spark's states."""

from __future__ import annotations

import copy
from random import Random

import pytest

from streamwatch.spark import delta_log
from streamwatch.spark.delta_log import CachedObject, DeltaLog, KeptObjects, LogDamagedError
from tests.spark.counting import CountingIds


class Value:
    def __init__(self):
        self.value = None

    def exists(self):
        return self.value is not None

    def get(self):
        return self.value

    def update(self, value):
        self.value = value


class Entries:
    def __init__(self):
        self.entries = {}

    def getValue(self, key):  # noqa: N802
        return self.entries.get(key)

    def updateValue(self, key, value):  # noqa: N802
        self.entries[key] = value

    def containsKey(self, key):  # noqa: N802
        return key in self.entries

    def removeKey(self, key):  # noqa: N802
        del self.entries[key]


class Bucket:
    """One bucket's states, the objects of some workers, and the words that were fed."""

    def __init__(self, rebase_bytes=200):
        self.value, self.entries = Value(), Entries()
        self.rebase_bytes = rebase_bytes
        self.words = []
        self.batch = 0
        self.built = 0

    def new(self):
        self.built += 1
        return CountingIds(0)

    def feed(self, kept, words, *, commit=True):
        """One attempt at a batch in a worker that has `kept`; without `commit` Spark forgets it."""
        before = copy.deepcopy((self.value, self.entries))
        log = DeltaLog(self.value, self.entries, self.rebase_bytes)
        kept = log.load(kept, self.new)
        assert kept.bucket.words.total() == len(self.words)
        fed = kept.bucket.feed(self.batch + 1, [" ".join(words).encode()], None)
        log.append(kept, fed.delta)
        if commit:
            self.batch += 1
            self.words += words
        else:
            self.value, self.entries = before
        return kept


def test_an_object_that_stayed_in_its_worker_is_used_as_it_is():
    bucket = Bucket()
    kept = None
    for number in range(20):
        kept = bucket.feed(kept, [f"word{number}"])
    assert bucket.built == 1


def test_a_new_worker_builds_the_object_from_the_log():
    bucket = Bucket()
    for number in range(20):
        bucket.feed(None, [f"word{number}"] * 3)
    assert bucket.built == 20


def test_an_object_of_a_failed_attempt_is_not_used():
    bucket = Bucket()
    kept = bucket.feed(None, ["one"])
    ahead = bucket.feed(kept, ["never", "committed"], commit=False)
    bucket.feed(ahead, ["two"])
    assert bucket.built == 2
    assert bucket.words == ["one", "two"]


def test_an_object_that_others_have_overtaken_reads_what_it_missed():
    bucket = Bucket(rebase_bytes=10_000)
    early = bucket.feed(None, ["one"])
    early = copy.deepcopy(early)
    bucket.feed(None, ["two"])
    bucket.feed(None, ["three"])
    built = bucket.built
    late = bucket.feed(early, ["four"])
    assert bucket.built == built
    assert late.bucket.batches == [1, 2, 3, 4]


def test_an_object_older_than_the_base_is_built_anew():
    bucket = Bucket(rebase_bytes=100)
    early = copy.deepcopy(bucket.feed(None, ["one"]))
    for number in range(30):
        bucket.feed(None, [f"word{number}"] * 5)
    assert bucket.value.value[2] > 2  # the log begins later now
    bucket.feed(early, ["two"])
    assert bucket.words[-1] == "two"


def test_the_log_stays_in_proportion_to_the_state():
    bucket = Bucket(rebase_bytes=500)
    kept = None
    for number in range(400):
        kept = bucket.feed(kept, [f"word{number % 7}"])
    entry, _, first, base_bytes, delta_bytes = bucket.value.value
    assert entry == 400
    assert delta_bytes <= max(500, base_bytes)
    assert {key[0] for key in bucket.entries.entries} == set(range(first, entry + 1))


@pytest.mark.parametrize("seed", range(20))
def test_whatever_workers_do_an_object_has_counted_every_committed_word_once(seed, monkeypatch):
    monkeypatch.setattr(delta_log, "PART_BYTES", 16)
    random = Random(seed)
    bucket = Bucket(rebase_bytes=random.choice([1, 60, 1_000]))
    workers: list[CachedObject | None] = [None, None, None]
    for _ in range(60):
        worker = random.randrange(3)
        if random.random() < 0.1:
            workers[worker] = None  # another process
        words = [f"word{random.randrange(9)}" for _ in range(random.randrange(6))]
        kept = workers[worker]
        workers[worker] = bucket.feed(kept, words, commit=random.random() < 0.7)
    fresh = DeltaLog(bucket.value, bucket.entries).load(None, bucket.new)
    assert sorted(fresh.bucket.words.elements()) == sorted(bucket.words)


def test_a_log_that_lacks_a_part_is_refused(monkeypatch):
    monkeypatch.setattr(delta_log, "PART_BYTES", 4)
    bucket = Bucket()
    bucket.feed(None, ["one"])
    last = max(bucket.entries.entries)
    del bucket.entries.entries[last]
    with pytest.raises(LogDamagedError, match="entry 1"):
        DeltaLog(bucket.value, bucket.entries).load(None, bucket.new)


def test_kept_objects_are_handed_out_once():
    kept = CachedObject(CountingIds(0), 1, b"token")
    objects = KeptObjects({})
    objects.put("ids", 3, kept)
    assert objects.take("models", 3) is None
    assert objects.take("ids", 3) is kept
    assert objects.take("ids", 3) is None
