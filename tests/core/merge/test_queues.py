"""Queues of held records against plain lists, with times and arrivals so few that ties are everywhere."""

from __future__ import annotations

from random import Random
from statistics import median_low

import numpy as np
import pytest

from streamwatch.core.merge.partitions import Bounds
from streamwatch.core.merge.queues import IN_ORDER, LATENESS_UNKNOWN, HeldRecords
from streamwatch.core.merge.timestamps import BELIEVED, FARTHEST, TIMELESS, lower_medians
from tests.tiers import by_tier

LIVES = by_tier(fast=30, default=100, everything=2_000)
MOST_AHEAD_MS = 4


def test_lower_medians_are_those_of_the_timestamps_that_count() -> None:
    chance = Random(1)
    for _ in range(LIVES):
        counts = [chance.randrange(6) for _ in range(chance.randrange(1, 6))]
        stamps = [chance.randrange(10) for _ in range(sum(counts))]
        if chance.randrange(2):
            stamps.sort()
        counted = [chance.random() < 0.7 for _ in stamps]
        found = lower_medians(np.array(stamps, np.int64), np.array(counted, np.bool_), np.array(counts))
        start = 0
        for count, (number, median) in zip(counts, found.tolist(), strict=True):
            own = [stamps[i] for i in range(start, start + count) if counted[i]]
            assert (number, median) == (len(own), median_low(own) if own else -1)
            start += count


class PlainQueues:
    """Lists of (time, when it arrived, whether it has a time of its own, id), by partition."""

    def __init__(self, width: int) -> None:
        self.queues: list[list[tuple[int, int, bool, int]]] = [[] for _ in range(width)]
        self.running = [-1] * width

    def is_odd(self, stamps: list[tuple[int, bool]], partition: int) -> bool:
        """Whether one of some new timestamps of a partition has to be judged."""
        newest = self.running[partition]
        if newest < 0:
            return bool(stamps)
        for stamp, decodable in stamps:
            if decodable and not (0 < stamp < FARTHEST and stamp - newest <= MOST_AHEAD_MS):
                return True
            newest = max(newest, stamp) if decodable else newest
        return False

    def put(self, partition: int, stamp: int, *, decodable: bool, arrived: int, number: int) -> None:
        if decodable:
            self.running[partition] = max(self.running[partition], stamp)
        self.queues[partition].append((self.running[partition], arrived, decodable, number))

    def take(
        self, bounds: Bounds, late: tuple[int, int], clock: int, most: int
    ) -> list[tuple[int, int, int, int, int]]:
        """Id, partition, time, clock and lateness of what may be released."""
        found: list[tuple[int, int, int, int, int]] = []
        is_free = True
        while len(found) < most:
            heads = [(queue[0][0], partition) for partition, queue in enumerate(self.queues) if queue]
            if not heads:
                break
            key = time, partition = min(heads)
            _, arrived, decodable, number = self.queues[partition][0]
            if key > bounds.read:
                is_free = False
            elif key > bounds.rested:
                has_waited = arrived <= bounds.waited_ms or time <= bounds.rest_ms
                is_free = is_free and arrived <= bounds.fetched_ms and has_waited
            if not (is_free or key < late):
                break
            clock = max(clock, time)
            lateness = IN_ORDER
            if key < late:
                lateness = clock - time if decodable else LATENESS_UNKNOWN
            found.append((number, partition, time, clock, lateness))
            del self.queues[partition][0]
        return found


def bounds_drawn(chance: Random, now: int) -> Bounds:
    """Bounds near the newest times."""

    def near() -> int:
        return now + chance.randrange(-4, 3)

    if chance.randrange(4) == 0:
        return Bounds()
    return Bounds((near(), chance.randrange(4)), (near() - 1, chance.randrange(4)), near(), near(), near())


class Both:
    """Held records, and the plain lists that they are compared with."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.width = chance.randrange(1, 5)
        self.plain, self.held = PlainQueues(self.width), HeldRecords()
        self.held.reorder(np.empty(0, np.int64), self.width)
        self.running, self.counts = np.full(self.width, -1), np.zeros(self.width, np.int64)
        self.slots: list[int] = []
        """Id in the pool of each record."""
        self.now = 10

    def put(self) -> None:
        """Put a few records of any partitions, as the merge does: judged where a timestamp is odd."""
        chance, now, plain = self.chance, self.now, self.plain
        stamps = (0, 1, now - 2, now - 1, now, now + 1, now + 9)
        new = [
            (chance.randrange(self.width), chance.choice(stamps), chance.random() < 0.8)
            for _ in range(chance.randrange(5))
        ]
        new = [each for each in new if each[1] > 1 or chance.randrange(8) == 0]
        if not new:
            return
        words = np.arange(8 * len(new), dtype=np.int64).reshape(len(new), 8)
        ids = self.held.put(words, *map(np.array, zip(*[(s, d, p) for p, s, d in new], strict=True)), now)
        moving_ms, decodable = self.held.moving_ms(ids)
        assert decodable.tolist() == [has_time for *_, has_time in new]
        assert moving_ms.tolist() == [stamp if has_time else -1 for _, stamp, has_time in new]
        odd = np.zeros(self.width, np.bool_)
        of_each = [[(s, d) for p, s, d in new if p == partition] for partition in range(self.width)]
        judged = [plain.is_odd(each, partition) for partition, each in enumerate(of_each)]
        left = self.held.queue_plain(ids, self.running, odd, self.counts, MOST_AHEAD_MS)
        assert odd.tolist() == judged
        assert left == sum(len(each) for each, is_odd in zip(of_each, judged, strict=True) if is_odd)
        given: dict[int, list[tuple[int, int]]] = {}
        for i, (partition, own, has_time) in enumerate(new):
            # Where they are judged, some time is given, also where none is known yet.
            stamp = min(max(own, 1), now) if judged[partition] else own
            decodable = has_time or (judged[partition] and plain.running[partition] < 0)
            number = len(self.slots)
            plain.put(partition, stamp, decodable=decodable, arrived=now, number=number)
            self.slots.append(int(ids[i]))
            reason = BELIEVED if decodable else TIMELESS
            given.setdefault(partition, []).append((plain.queues[partition][-1][0], reason))
        for partition in np.flatnonzero(odd).tolist():
            times, reasons = map(np.array, zip(*given[partition], strict=True))
            self.running[partition] = plain.running[partition]
            self.held.queue_judged(
                self.held.ids_of(ids, partition), times, reasons.astype(np.uint8), partition
            )
        assert self.held.rows(ids).tobytes() == words.tobytes()

    def take(self) -> None:
        """Take out what bounds and lateness allow."""
        chance, now = self.chance, self.now
        bounds, most = bounds_drawn(chance, now), chance.choice((1, 2, 100))
        late, clock = (now - chance.randrange(4), chance.randrange(4)), now - chance.randrange(6)
        taken = self.held.take(bounds, late, clock, most)
        expected = self.plain.take(bounds, late, clock, most)
        columns = taken.indices, taken.times_ms, taken.clock_ms, taken.lateness_ms
        assert taken.ids.tolist() == [self.slots[number] for number, *_ in expected]
        assert list(zip(*(each.tolist() for each in columns), strict=True)) == [each[1:] for each in expected]
        assert taken.late == sum(each[-1] != IN_ORDER for each in expected)
        queues = self.plain.queues
        heads = [(queue[0][0], partition) for partition, queue in enumerate(queues) if queue]
        assert len(self.held) == sum(map(len, queues))
        assert (self.held.head == -1) == (not heads)
        if heads:
            assert self.held.first_key == min(heads)
            assert self.held.first_arrived_ms == queues[min(heads)[1]][0][1]

    def look(self) -> None:
        """Compare what is queued."""
        queues = self.plain.queues
        assert self.running.tolist() == self.plain.running
        assert self.held.ids().tolist() == [self.slots[number] for queue in queues for *_, number in queue]
        some = self.chance.sample(range(self.width), self.chance.randrange(self.width + 1))
        ends = [(queues[p][-1][0], p) for p in some if queues[p]]
        assert self.held.last_key(np.array(some, np.int64)) == max(ends, default=None)
        asked = self.now - self.chance.randrange(4)
        assert self.held.holds_from_before(asked) == any(q and q[0][1] <= asked for q in queues)


@pytest.mark.parametrize("seed", range(LIVES))
def test_queues_release_what_plain_lists_release(seed: int) -> None:
    both = Both(Random(seed))
    for _ in range(60):
        both.now += both.chance.randrange(3)
        both.put()
        both.look()
        both.take()
