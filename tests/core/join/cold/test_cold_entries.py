"""Cold entries are a list of entries, whatever is evicted, taken, merged, committed, or lost by a crash."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from random import Random

import msgspec
import numpy as np
import pytest

from streamwatch.core.join.cold.block import PACKED_ENTRY
from streamwatch.core.join.cold.contents import ColdEntries
from streamwatch.core.join.cold.merging import PackedEntries
from streamwatch.core.join.cold.run import sorted_by_low
from streamwatch.core.join.cold.store import DEAD, ENTRIES, FILTER, ColdDamaged, ColdSpec, MemoryRuns, key_of
from tests.core.join.cold.cold_model import IDS, SMALL, ColdSteps, CutRuns, array_of
from tests.core.join.cold.one_block import pack
from tests.tiers import by_tier

SEEDS = by_tier(fast=6, default=30, everything=1_000)
STEPS = 150


class InMemory(ColdSteps):
    """Runs in memory; a crash leaves some of what was written since the last commit."""

    def __init__(self, chance):
        self.runs = CutRuns()
        super().__init__(chance)

    def open_store(self):
        self.runs.cut(self.chance.randint(0, 30))
        return self.runs

    def commit_to_store(self, changes):
        self.runs.commit(changes)


@pytest.mark.slow
def test_any_sequence_of_steps_gives_what_a_list_gives():
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        steps = InMemory(Random(seed))
        steps.walk(STEPS)
        seen += steps.seen
    for what in ("merges of several", "merges of one", "died meanwhile", "taken", "commits", "entries lost"):
        assert seen[what] > SEEDS, seen
    assert min(seen["last classes that count"], seen["last classes dropped"]) > SEEDS, seen


def filled():
    """A store with one committed run, and the entries in it."""
    steps = InMemory(Random(1))
    made = steps.new_entries(0, 40)
    store = MemoryRuns()
    cold = ColdEntries(store, SMALL)
    cold.evict(0, array_of(made))
    store.commit(cold.changes())
    return store, made


def filled_block(count):
    """A block of so many entries; those of `filled` have four, but for the last."""
    return pack(array_of(InMemory(Random(1)).new_entries(0, count)))


def look_up(cold):
    low, high = np.array(IDS, np.uint64).T
    return cold.look_up(low, high)


def test_a_start_reads_no_block_of_entries_and_a_look_up_none_but_those_that_may_have_the_id():
    store, made = filled()
    asked = []
    get_all = store.get_all
    store.get_all = lambda keys: (asked.extend(keys), get_all(keys))[1]
    cold = ColdEntries(store, SMALL)
    assert not [key for key in asked if key.startswith(ENTRIES)]
    asked.clear()
    low, high = made[0].id
    assert len(cold.look_up(np.array([low], np.uint64), np.array([high], np.uint64)).entries) >= 1
    assert 1 <= len(asked) <= 1 + sum(entry.id[0] == low for entry in made)
    asked.clear()
    look_up(cold)
    assert len(asked) == len(set(asked)), "each block is read once"


def test_an_eviction_counts_after_it_has_run_and_not_before():
    store, made = filled()
    cold = ColdEntries(store, SMALL)
    before = cold.entries, cold.runs
    eviction = cold.plan_eviction(1, PackedEntries(array_of(made), np.zeros((len(made), 0), np.int32)))
    with pytest.raises(RuntimeError, match="this eviction of cold entries has not run"):
        cold.finish_eviction(eviction)
    assert (cold.entries, cold.runs) == before
    eviction.run()
    assert (cold.entries, cold.runs) == before
    cold.finish_eviction(eviction)
    assert (cold.entries, cold.runs) == (before[0] + len(made), before[1] + 1)


def test_what_was_never_committed_is_removed_at_the_next_start():
    store, made = filled()
    before = store.nbytes
    cold = ColdEntries(store, SMALL)
    cold.evict(1, array_of(made))
    assert store.nbytes > before
    ColdEntries(store, SMALL)
    assert store.nbytes == before


def test_runs_that_are_dead_leave_nothing_behind():
    store, made = filled()
    cold = ColdEntries(store, SMALL)
    found = look_up(cold)
    assert cold.mark_dead(found.runs, found.positions) == len(made)
    assert cold.plan_merge() is None
    store.commit(cold.changes())
    assert store.nbytes == cold.nbytes == cold.runs == 0


def test_dead_bits_take_no_more_room_than_twice_the_bits_of_a_run_however_many_commits():
    store, made = filled()
    cold = ColdEntries(store, SMALL)
    before = store.nbytes
    for low, high in IDS:
        found = cold.look_up(np.array([low], np.uint64), np.array([high], np.uint64))
        for run, position in zip(found.runs, found.positions, strict=True):
            cold.mark_dead(np.array([run]), np.array([position]))
            store.commit(cold.changes())
            assert store.nbytes <= before + 2 * (8 + len(key_of(b"d", 0)) * 3)
    assert cold.alive(0) == 0
    assert len(made) == 40


def test_what_died_in_commits_before_and_after_a_start_stays_dead():
    steps = InMemory(Random(1))
    made = steps.new_entries(0, 1_000)
    store = MemoryRuns()
    cold = ColdEntries(store)
    cold.evict(0, array_of(made))
    for died in range(1, 8):
        assert cold.mark_dead(np.array([0]), np.array([died])) == 1
        store.commit(cold.changes())
        cold = ColdEntries(store)
        assert cold.alive(0) == len(made) - died
    assert len(store.keys(key_of(DEAD, 0), key_of(DEAD, 1))) == 7, "in parts, not yet in one"


@pytest.mark.parametrize("damage", ["cut short", "longer", "missing", "another's"])
def test_damage_of_a_block_is_named(damage):
    store, _ = filled()
    cold = ColdEntries(store, SMALL)
    keys = store.keys(key_of(ENTRIES, 0), key_of(ENTRIES, 1))
    for key in keys:
        value = store._values.pop(key)
        spoilt = {"cut short": value[:-1], "longer": value + b"x", "another's": filled_block(3)}
        if damage in spoilt:
            store._values[key] = spoilt[damage]
    with pytest.raises(ColdDamaged, match="run 0 of cold entries"):
        look_up(cold)


def test_damage_of_a_filter_is_named_at_the_start():
    store, _ = filled()
    store._values[key_of(FILTER, 0)] += b"x"
    with pytest.raises(ColdDamaged, match="fences and filter of run 0 must have"):
        ColdEntries(store, SMALL)
    del store._values[key_of(FILTER, 0)]
    with pytest.raises(ColdDamaged, match="run 0 of cold entries lacks part 0 of kind 'f'"):
        ColdEntries(store, SMALL)


def test_a_manifest_that_is_not_readable_is_named():
    store, _ = filled()
    store._values[key_of(b"m", 0)] = b"\xc1"
    with pytest.raises(ColdDamaged, match="the manifest of run 0 is not readable"):
        ColdEntries(store, SMALL)


@pytest.mark.parametrize("number", [-1, 0, 2**31, 2**40, 2**60, 2**63 - 1])
@pytest.mark.parametrize(
    "name", ["number", "queue", "count", "block_entries", "fence_words", "filter_words", "oldest_ms"]
)
def test_a_number_of_a_manifest_that_cannot_be_is_refused_before_memory_depends_on_it(name, number):
    store, _ = filled()
    key = key_of(b"m", 0)
    manifest = msgspec.msgpack.decode(store._values[key])
    store._values[key] = msgspec.msgpack.encode({**manifest, name: number})
    tracemalloc.start()
    try:
        ColdEntries(store, SMALL)
        assert name == "oldest_ms" or number == 0, "any time may be"
    except ColdDamaged as error:
        assert "run 0" in str(error)  # noqa: PT017 - or it is as good as another
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 10_000_000


def test_positions_of_what_died_that_are_not_whole_are_refused():
    store, _ = filled()
    store._values[key_of(DEAD, 0, 1)] = b"\x01\x00\x00"
    with pytest.raises(ColdDamaged, match="what died in part 1 of run 0"):
        ColdEntries(store, SMALL)


@pytest.mark.parametrize("each", [1, 3, 50])
def test_a_filter_is_as_large_as_its_ids_need_however_many_entries_each_has_also_once_merged(each):
    spec = ColdSpec(filter_bits_of_few=16, fanout=2)
    ids, parts = 4_000, 2
    halves = np.random.default_rng(1).integers(0, 2**64 - 1, (parts, ids, 2), dtype=np.uint64)
    cold = ColdEntries(MemoryRuns(), spec)
    for part in range(parts):
        entries = np.zeros(ids * each, PACKED_ENTRY)
        entries["low"], entries["high"] = np.repeat(halves[part], each, axis=0).T
        entries["arrival"] = part * len(entries) + np.arange(len(entries))
        cold.evict(0, entries)
    for merged in range(2):
        if merged:
            merge = cold.plan_merge()
            merge.run()
            cold.finish_merge(merge)
        runs = list(cold._runs.values())
        assert sum(run.manifest.ids for run in runs) == parts * ids
        assert sum(run.bloom.nbytes for run in runs) == pytest.approx(2 * parts * ids, rel=0.05)
        low, high = halves.reshape(-1, 2).T.copy()
        assert np.bincount(cold.look_up(low, high).id_indices).tolist() == parts * ids * [each]


@pytest.mark.parametrize("most", [3, 32, 33, 700])
def test_entries_of_an_id_are_found_by_arrival_however_many_and_in_however_many_runs(most):
    chance = np.random.default_rng(most)
    ids = chance.integers(0, 2**64 - 1, (900, 2), dtype=np.uint64)
    ids[1::2, 0] = ids[::2, 0]  # pairs that differ only in the second half of the digest
    of = chance.permutation(np.repeat(np.arange(len(ids)), chance.integers(0, 4, len(ids))))
    of = np.concatenate([of, np.full(most, 5)])
    entries = np.zeros(len(of), PACKED_ENTRY)
    entries["low"], entries["high"] = ids[of].T
    entries["arrival"] = chance.permutation(len(of))
    entries["model"] = np.arange(len(of))
    cold = ColdEntries(MemoryRuns(), SMALL)
    for part in np.array_split(chance.permutation(entries), 5):
        cold.evict(0, part)
    asked = chance.permutation(len(ids))
    low, high = ids[asked].T.copy()
    found = cold.look_up(low, high)
    rank = np.argsort(asked)
    expected = np.lexsort((entries["arrival"], rank[of]))
    assert found.id_indices.tolist() == rank[of][expected].tolist()
    assert found.entries.tolist() == entries[expected].tolist()
    assert cold.mark_dead(found.runs, found.positions) == len(of)


def test_only_one_search_or_merge_is_planned_at_a_time_and_its_queue_is_left_alone():
    store, made = filled()
    cold = ColdEntries(store, SMALL)
    search = cold.plan_oldest_search(0, 5)
    assert cold.plan_merge() is None
    with pytest.raises(RuntimeError, match="one search of cold entries at a time"):
        cold.plan_oldest_search(1, 1)
    with pytest.raises(RuntimeError, match="nothing may be evicted of queue 0"):
        cold.evict(0, array_of(made))
    cold.discard_plans()
    with pytest.raises(RuntimeError, match="is not the one that was planned last"):
        cold.finish_oldest_search(search)
    with pytest.raises(ValueError, match="at least one entry must be wanted, got 0"):
        cold.plan_oldest_search(0, 0)
    with pytest.raises(ValueError, match=r"must be one of \(0, 1, 2\), got 3"):
        cold.plan_oldest_search(3, 1)
    with pytest.raises(ValueError, match=r"queue must be one of \(0, 1, 2, 3\), got 4"):
        cold.evict(4, array_of(made))


@pytest.mark.parametrize("copies", [1, 2, 5, 1_001, 4_000])
def test_digests_are_sorted_and_counted_however_many_are_equal(copies):
    chance = np.random.default_rng(copies)
    low = np.repeat(chance.integers(0, 2**64, 4_000 // copies + 1, np.uint64), copies)
    chance.shuffle(low)
    order, distinct = sorted_by_low(low)
    assert sorted(order.tolist()) == [*range(len(low))]
    assert low[order].tolist() == sorted(low.tolist())
    assert distinct == len(np.unique(low))


def test_no_digest_and_the_largest_ones_are_sorted():
    assert sorted_by_low(np.zeros(0, np.uint64))[1] == 0
    order, distinct = sorted_by_low(np.array([2**64 - 1, 0, 2**64 - 1, 2**63], np.uint64))
    assert (order.tolist()[:2], {*order.tolist()[2:]}, distinct) == ([1, 3], {0, 2}, 3)


def test_an_id_that_was_never_evicted_is_hardly_ever_sought():
    chance = np.random.default_rng(7)
    there, absent = chance.integers(0, 2**64, (2, 50_000, 2), np.uint64)
    entries = np.zeros(len(there), PACKED_ENTRY)
    entries["low"], entries["high"] = there.T
    entries["arrival"] = np.arange(len(there))
    cold = ColdEntries(MemoryRuns())
    assert not cold.may_have(*there.T.copy()).any()
    cold.evict(0, entries)
    assert cold.may_have(*there.T.copy()).all()
    assert cold.may_have(*absent.T.copy()).sum() < 10
