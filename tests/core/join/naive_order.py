"""Order in which the naive join lets its outcomes go: as they come, or by the time of their predictions."""

from __future__ import annotations


class NaiveOrder:
    def __init__(self, spec, count):
        self.spec = spec
        self.count = count
        self.held = []  # (prediction time, arrival, end of window, outcome)
        self.bound = (-1, -1)
        self.holds = 0
        self.outcomes = []

    def put(self, outcome, made_ms, resolved_ms):
        if self.spec.order == "resolution":
            self.let_go(outcome)
            return
        self.held.append((made_ms, self.holds, resolved_ms + self.spec.reorder_window_ms, outcome))
        self.holds += 1
        while len(self.held) > self.spec.max_reordered:
            first = min(self.held, key=lambda held: held[:2])
            self.held.remove(first)
            self.bound = max(self.bound, first[:2])
            self.count["released_early"] += 1
            self.let_go(first[3])

    def let_go(self, outcome):
        self.outcomes.append(outcome)
        if not outcome.assumed:
            self.count["resolved"] += 1

    def release_all(self):
        for held in sorted(self.held, key=lambda held: held[:2]):
            self.bound = max(self.bound, held[:2])
            self.let_go(held[3])
        self.held = []

    def release(self, clock):
        over = [held[:2] for held in self.held if held[2] <= clock]
        self.bound = max([self.bound, *over])
        leaving = sorted((held for held in self.held if held[:2] <= self.bound), key=lambda held: held[:2])
        self.held = [held for held in self.held if held[:2] > self.bound]
        for held in leaving:
            self.let_go(held[3])
