"""Dedup entries of the naive join: generations in plain lists, looked through from the first to the last."""

from __future__ import annotations


def due_second(record_ms, horizon_ms):
    whole, rest = divmod(record_ms + horizon_ms, 1000)
    return whole + (1 if rest else 0)


class NaiveDedup:
    def __init__(self, spec, count):
        self.spec = spec
        self.count = count
        self.generations = [[]]  # the last one is open
        self.generation = 0  # number of the open one
        self.opened = -1
        self.passed = -1  # the clock when time passed last

    def entries(self):
        return [settled for generation in self.generations for settled in generation]

    def find(self, key, model):
        for settled in self.entries():
            if (settled["id"], settled["model"]) == (key, model):
                return settled
        return None

    def add(self, entry, why, record_ms, true_class=None):
        settled = {
            "id": entry["id"],
            "model": entry["model"],
            "class": entry["class"],
            "why": why,
            "true_class": true_class,
            "arrival": entry.get("arrival"),
            "waits": entry.get("waits", set()),
            "expected": frozenset(entry.get("expected", ())),
            "again": 0,  # meetings with a partner that had been met already
        }
        self.generations[-1].append({**settled, "at": record_ms})
        if len(self.generations[-1]) >= max(1, self.spec.max_dedup_entries // 8):
            self.new_generation()
        if len(self.entries()) > self.spec.max_dedup_entries:
            if len(self.generations) == 1:
                self.new_generation()
            self.count["dedup_entries_evicted"] += len(self.drop_generation())

    def new_generation(self):
        self.generations.append([])
        self.generation += 1
        self.opened = self.passed

    def pass_time(self, clock):
        horizon = self.spec.dedup_horizon_ms
        self.passed = clock
        if not self.generations[-1]:
            self.opened = clock
        elif clock - self.opened >= max(1000, horizon // 8):
            self.new_generation()
        while len(self.generations) > 1 and clock // 1000 >= due_second(
            max(settled["at"] for settled in self.generations[0]), horizon
        ):
            self.drop_generation()

    def drop_generation(self):
        gone = self.generations.pop(0)
        self.count["pairs_expired"] += max(
            0, sum(len(settled["waits"]) - settled["again"] for settled in gone)
        )
        return gone
