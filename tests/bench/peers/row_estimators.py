"""What one model's default estimators keep, row by row in Python, with river's parts where river has them.

The peer of the job on Spark: the same mechanisms and estimates, written as one would without a kernel. Left
out are bounds, intervals, history, late labels, and all that reports and exports.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable

from river import drift

ALPHA, WINDOW, SLOW = 0.999, 1_000, 0.9999
BETS = (0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8)
BLOCKS = (16, 64, 256)
CLAIM_AT, CLAIM_FROM = 2 * 100_000 / 0.05, 1_152
Answers = dict[str, Hashable]
"""Of the opponents that had one."""


class Totals:
    """Of one mechanism: outcomes, confusion matrix, hits, repeats, hits of the opponents."""

    def __init__(self) -> None:
        self.cells: dict[tuple[Hashable, Hashable], float] = {}
        self.truth: dict[Hashable, float] = {}
        self.predicted: dict[Hashable, float] = {}
        self.hits: dict[str, float] = {}
        self.answered: dict[str, float] = {}
        self.outcomes = self.right = 0.0

    def add(self, y: Hashable, guess: Hashable, answers: Answers, weight: float) -> None:
        """Count one outcome so often; negative takes it away."""
        self.outcomes += weight
        self.right += weight * (y == guess)
        self.cells[y, guess] = self.cells.get((y, guess), 0.0) + weight
        self.truth[y] = self.truth.get(y, 0.0) + weight
        self.predicted[guess] = self.predicted.get(guess, 0.0) + weight
        for name, answer in answers.items():
            self.answered[name] = self.answered.get(name, 0.0) + weight
            self.hits[name] = self.hits.get(name, 0.0) + weight * (y == answer)

    def scale(self, factor: float) -> None:
        """Multiply everything."""
        for each in (self.cells, self.truth, self.predicted, self.hits, self.answered):
            for key in each:
                each[key] *= factor
        self.outcomes *= factor
        self.right *= factor

    def kappa(self) -> float:
        """Cohen's kappa."""
        n = self.outcomes
        chance = sum(self.truth[k] * self.predicted.get(k, 0.0) for k in self.truth) / n**2
        return (self.right / n - chance) / (1 - chance) if chance < 1 else math.nan


class Faded(Totals):
    """Totals that fade; by weights that grow, as entry by entry would take as long as there are classes."""

    weight = 1.0

    def add(self, y: Hashable, guess: Hashable, answers: Answers, weight: float = 1.0) -> None:
        """Count one outcome, with all before worth less."""
        self.weight /= ALPHA
        super().add(y, guess, answers, weight * self.weight)
        if self.weight > 1e100:
            self.scale(1 / self.weight)
            self.weight = 1.0


class Verdict:
    """Whether the model is better than one opponent: an e-detector to either side, with blocks."""

    def __init__(self) -> None:
        self.evidence = {side: [0.0] * len(BETS) for side in (1, -1)}
        self.since = {side: [(0.0, 0)] * len(BETS) for side in (1, -1)}
        self.ties = self.verdict = self.steps = 0
        self.dispersion = 1.0
        self.sums = dict.fromkeys(BLOCKS, 0.0)
        self.moments = dict.fromkeys(BLOCKS, (0.0, 0.0, 0.0))
        self.weight = self.mean = self.square = 0.0

    def step(self, lead: int) -> None:
        """Take in one lead: 1, 0 or −1."""
        self.steps += 1
        if lead == 0:
            self.ties += 1
        else:
            self._bet(lead)
        self.weight = SLOW * self.weight + 1
        self.mean = SLOW * self.mean + lead
        self.square = SLOW * self.square + lead * lead
        found = False
        for length in BLOCKS:
            self.sums[length] += lead
            if self.steps % length == 0:
                fade, total = SLOW**length, self.sums[length]
                m, s, q = self.moments[length]
                self.moments[length] = fade * m + 1, fade * s + total, fade * q + total * total
                self.sums[length], found = 0.0, True
        if found:
            self._disperse()

    def _bet(self, lead: int) -> None:
        power, ties = 1 / self.dispersion, self.ties + 1
        for side, evidence in self.evidence.items():
            since = self.since[side]
            for at, bet in enumerate(BETS):
                factor = (1 + side * bet * lead) ** power
                evidence[at] = (evidence[at] + ties) * factor
                so_far, start = since[at]
                since[at] = (so_far * factor, start) if so_far > 1 else (factor, self.steps)
            if self.steps >= CLAIM_FROM and sum(evidence) / len(BETS) >= CLAIM_AT:
                self.verdict = side
                self.evidence[side] = [0.0] * len(BETS)
                self.since[side] = [(0.0, 0)] * len(BETS)
        self.ties = 0

    def _disperse(self) -> None:
        variance = max(self.square / self.weight - (self.mean / self.weight) ** 2, 1e-6)
        largest = 1.0
        for length, (m, s, q) in self.moments.items():
            if m >= 8:
                largest = max(largest, (q / m - (s / m) ** 2) * m / (m - 1) / (length * variance))
        if abs(largest / self.dispersion - 1) > 0.02:
            self.dispersion = largest


class RowEstimators:
    """One model's estimators."""

    def __init__(self) -> None:
        self.landmark, self.faded, self.sliding, self.adaptive = Totals(), Faded(), Totals(), Totals()
        self.recent: deque[tuple[Hashable, Hashable, Answers]] = deque()
        self.since_cut: deque[tuple[Hashable, Hashable, Answers]] = deque()
        self.window, self.detector = drift.ADWIN(), drift.ADWIN()
        self.page_hinkley = drift.PageHinkley(mode="up")
        self.classes: dict[Hashable, float] = {}
        self.steps_to: dict[Hashable, dict[Hashable, float]] = {}
        self.jointly: dict[Hashable, dict[Hashable, float]] = {}
        self.weight = 1.0
        self.verdicts: dict[str, Verdict] = {}
        self.weighted = self.weights = 0.0
        self.outcomes = self.declared = self.drifts = self.alarms = 0
        self.previous: Hashable = None

    def update(self, y: Hashable, guess: Hashable, known: Hashable = None) -> None:
        """Feed one outcome; `known` is the last label known at the prediction."""
        answers = self._answers(guess, known)
        hit = y == guess
        for name, answer in answers.items():
            self.verdicts.setdefault(name, Verdict()).step(hit - (y == answer))
        self.landmark.add(y, guess, answers, 1.0)
        self.faded.add(y, guess, answers)
        self._slide(y, guess, answers)
        self.window.update(not hit)
        self.adaptive.add(y, guess, answers, 1.0)
        self.since_cut.append((y, guess, answers))
        while len(self.since_cut) > self.window.width:
            self.adaptive.add(*self.since_cut.popleft(), -1.0)
        self.page_hinkley.update(not hit)
        self.alarms += self.page_hinkley.drift_detected
        self._weigh(hit=hit)
        self._learn(y, guess)

    def _slide(self, y: Hashable, guess: Hashable, answers: Answers) -> None:
        self.sliding.add(y, guess, answers, 1.0)
        self.recent.append((y, guess, answers))
        if len(self.recent) > WINDOW:
            self.sliding.add(*self.recent.popleft(), -1.0)

    def _answers(self, guess: Hashable, known: Hashable) -> Answers:
        """What every opponent says before the label is seen."""
        answers: Answers = {}
        if known is not None:
            answers["persistent at prediction"] = known
        if self.classes:
            answers["majority"] = max(self.classes, key=self.classes.__getitem__)
        if self.previous is not None:
            answers["persistent"] = self.previous
            after = self.steps_to.get(self.previous)
            if after:
                answers["transition"] = max(after, key=after.__getitem__)
                said = self.jointly.get(guess, {})
                answers["temporal correction"] = max(
                    self.classes,
                    key=lambda k: (said.get(k, 0.0) + 1) * (after.get(k, 0.0) + 1) / (self.classes[k] + 1),
                )
        return answers

    def _learn(self, y: Hashable, guess: Hashable) -> None:
        self.weight /= ALPHA
        self.classes[y] = self.classes.get(y, 0.0) + self.weight
        for table, key in ((self.steps_to, self.previous), (self.jointly, guess)):
            row = table.setdefault(key, {})
            row[y] = row.get(y, 0.0) + self.weight
        self.previous = y
        if self.weight > 1e100:
            for row in (self.classes, *self.steps_to.values(), *self.jointly.values()):
                for key in row:
                    row[key] /= self.weight
            self.weight = 1.0

    def _weigh(self, *, hit: bool) -> None:
        weight = 1.0
        if self.drifts:
            gap = self.declared / self.drifts
            weight = max(1.0, 1.0 + 2.0 * math.log(gap / (self.outcomes - self.declared + 1)))
        self.weighted, self.weights = self.weighted + weight * hit, self.weights + weight
        self.outcomes += 1
        error = self.detector.estimation
        self.detector.update(not hit)
        if self.detector.drift_detected and self.detector.estimation > error:
            self.drifts += 1
            self.declared = self.outcomes
