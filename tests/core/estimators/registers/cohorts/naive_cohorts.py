"""Verdicts by cohorts of predictions, as the rule reads: whole lists, nothing of the kernel's in it.

Feed it the outcomes of one model in the order of evaluation; everything it says is an attribute. Times are
milliseconds. A cohort holds the predictions made between two moments and is judged once, when its newest
prediction has the age A; only labels that came within A of their prediction count in it, each divided by
G, the settled share of labels of its kind that do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import ceil, exp, log, sqrt
from typing import Any

LAMBDAS = (0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8)
AGES = 16
BUCKETS = 16
"""Buckets of prediction time in a horizon."""
OPPONENTS = ("no_change", "majority")
BETTER, WORSE, OPEN = 1, -1, 0
OWN_CLASSES = 7
LEAST_OWN = 30
"""Settled outcomes of a kind from which it has a share of its own."""
POOLED_HITS, POOLED_MISSES = ("all", True), ("all", False)
MOST_COHORTS = 40
MONTH_MS = 30 * 86_400_000
SCALES = (1, 4, 16)
"""Cohorts summed before neighbours are compared."""
FADE = 0.99
"""Of their squared differences, at each."""
LEAST_IN_COHORT = 32
"""Predictions of a cohort before it closes."""
LEAST_IN_WINDOW = 256
"""Predictions of a tracker's window before it ends."""
DEADLINE_MS = 1_000
MOST_UNPAID = 4
"""Labels that cohorts at an age by all predictions may lack beyond what they paid for."""
LEAST_EXPECTED = 16
"""Labels expected between two labels from which the gap between them counts."""
GAPS = 3
"""Ages by settled shares are at least so many times the second longest gap of the last horizon."""
MOST_STARTS = 64
"""Of stretches of predictions by which a claim is confirmed; the older half is merged in pairs."""

Kind = tuple[object, bool]
"""A class (or "others", or "all") and whether the prediction was a hit."""

Errors = tuple[float, float, float, float]
"""Weights of hits and of misses, and the squares of both."""


def ages_of(horizon_ms: int) -> list[int]:
    """16 ages up to the horizon: the last 8 in steps of √2, below them equal ratios from a minute or less."""
    longer = [horizon_ms * 2 ** (-i / 2) for i in range(7, -1, -1)]
    first = min(horizon_ms / 16, max(1_000, min(60_000, horizon_ms / 2 ** (AGES - 1))))
    shorter = [first * (longer[0] / first) ** (i / 8) for i in range(8)]
    return [round(age) for age in shorter + longer]


def kind_of(label: int, predicted: int, most: int = OWN_CLASSES) -> Kind:
    """The model's first 7 classes have kinds of their own, and of these no more than `most`."""
    return (label if label < min(OWN_CLASSES, most) else "others", label == predicted)


def errors_of(weights: list[tuple[bool, float]]) -> Errors:
    """Sum the weights of hits and of misses, and the squares of both."""
    sides = [[weight for hit, weight in weights if hit is side] for side in (True, False)]
    hits, misses = map(sum, sides)
    hit_squares, miss_squares = (sum(weight * weight for weight in side) for side in sides)
    return hits, misses, hit_squares, miss_squares


def pooled(kind: Kind) -> Kind:
    return POOLED_HITS if kind[1] else POOLED_MISSES


@dataclass
class Settled:
    """Faded sums over settled buckets of one kind: outcomes, and those labelled by each age."""

    total: float = 0.0
    total_total: float = 0.0
    by_age: list[float] = field(default_factory=lambda: [0.0] * AGES)
    by_age_squared: list[float] = field(default_factory=lambda: [0.0] * AGES)
    by_age_total: list[float] = field(default_factory=lambda: [0.0] * AGES)

    def add(self, delays: list[int], ages: list[int], fade: float) -> None:
        n = len(delays)
        self.total = self.total * fade + n
        self.total_total = self.total_total * fade + n * n
        for i, age in enumerate(ages):
            early = sum(delay <= age for delay in delays)
            self.by_age[i] = self.by_age[i] * fade + early
            self.by_age_squared[i] = self.by_age_squared[i] * fade + early * early
            self.by_age_total[i] = self.by_age_total[i] * fade + early * n

    def share(self, i: int) -> float:
        return self.by_age[i] / self.total

    def band(self, i: int) -> float:
        g, t = self.share(i), self.total
        by_bucket = self.by_age_squared[i] - 2 * g * self.by_age_total[i] + g * g * self.total_total
        return max(2.5 * sqrt(max(g * (1 - g) / t, by_bucket / t**2)), 0.05 * g)


@dataclass
class Parameters:
    """What a cohort takes when it opens."""

    age: int
    share: dict[Kind, float]
    lower: dict[Kind, float]
    upper: dict[Kind, float]
    missing: float
    """Share of predictions without a label by the age, where shares are not known from settled ones."""
    status: str
    """Of what is claimed: early, or complete: of all its predictions, or all but a few, the labels are in."""

    def largest(self) -> float:
        return max([1.0 / g for g in self.lower.values()], default=1.0)

    def of(self, shares: dict[Kind, float], kind: Kind) -> float:
        return shares.get(kind, shares.get(pooled(kind), 1.0))


@dataclass
class Cohort:
    opened: int
    made: int
    width: int
    parameters: Parameters
    leads: list[tuple[Kind, dict[str, float]]] = field(default_factory=list)
    """Of all its outcomes labelled by its age; empty where no opponent answered."""
    end: int | None = None
    n: int = 0


@dataclass
class Tracker:
    """Consecutive windows of predictions, of which the share labelled by one age is counted."""

    age: int
    opened: int | None = None
    opened_made: int = 0
    end: int | None = None
    end_made: int = 0
    labelled: int = 0
    share: float = 0.0
    total: float = 0.0

    @property
    def missing(self) -> float:
        """Upper bound of the share of predictions without a label by the age."""
        missing = self.total - self.share
        return (missing + 2.5 * sqrt(missing) + 3) / self.total

    def move(self, at: int, made: int) -> None:
        if self.opened is not None and self.end is None:
            enough = made >= self.opened_made + LEAST_IN_WINDOW
            if enough and at >= self.opened + max(self.age, 1_000):
                self.end, self.end_made = at, made
        if self.end is not None and at >= self.end + self.age:
            self.share += self.labelled
            self.total += self.end_made - self.opened_made
            self.share = min(self.share, self.total)
            if self.total >= 20_000:
                self.share, self.total = self.share / 2, self.total / 2
            self.opened = None
        if self.opened is None:
            self.opened, self.opened_made, self.end, self.labelled = at, made, None, 0

    def count(self, predicted_at: int, delay: int) -> None:
        if self.opened is None or delay > self.age or predicted_at < self.opened:
            return
        if self.end is None or predicted_at < self.end:
            self.labelled += 1


@dataclass
class Side:
    sign: int
    m: list[float] = field(default_factory=lambda: [0.0] * 8)
    c: list[float] = field(default_factory=lambda: [0.0] * 8)
    start: list[int] = field(default_factory=lambda: [0] * 8)
    wealth: list[float] = field(default_factory=lambda: [1.0] * 8)
    """Of bets that no claim resets."""

    @property
    def mean(self) -> float:
        return sum(self.m) / 8

    def forget(self) -> None:
        self.m, self.c = [0.0] * 8, [0.0] * 8


@dataclass
class Waiting:
    """An early claim on the predictions made from `first` until before `last`, which have not all settled."""

    first: int
    last: int


@dataclass
class Scale:
    """Neighbouring sums of so many cohorts' leads: their squared differences, beside what is expected."""

    size: int
    block: list[tuple[float, float]] = field(default_factory=list)
    previous: tuple[float, float] | None = None
    squares: float = 0.0
    expected: float = 0.0
    count: float = 0.0
    differences: int = 0

    def add(self, mean: float, variance: float, phi: float) -> None:
        self.block.append((mean, variance))
        if len(self.block) < self.size:
            return
        m, v = sum(m for m, _ in self.block), sum(v for _, v in self.block)
        if self.previous is not None and v + self.previous[1] > 0:
            x, e = (m - self.previous[0]) ** 2, v + self.previous[1]
            x = min(x, 8 * e * phi)
            self.squares = self.squares * FADE + x
            self.expected = self.expected * FADE + e
            self.count = self.count * FADE + 1
            self.differences += 1
        self.block, self.previous = [], (m, v)

    @property
    def ratio(self) -> float:
        if self.differences < 8:
            return 1.0
        return self.squares / self.expected * self.count / (self.count - 3)


@dataclass
class Opponent:
    better: Side = field(default_factory=lambda: Side(BETTER))
    worse: Side = field(default_factory=lambda: Side(WORSE))
    scales: list[Scale] = field(default_factory=lambda: [Scale(size) for size in SCALES])
    started: bool = False
    phi: float = 1.0
    verdict: int = OPEN
    since: int = 0
    between: tuple[int | None, int] | None = None
    """Limits of *since*; the first is None if it may lie before all that was judged."""
    status: str = ""
    """Of the verdict that is held: early, confirmed or complete."""
    since_claim: int = 0
    changes: int = 0
    retracted: int = 0
    confirmed: int = 0
    waiting: Waiting | None = None
    judged_before: int = 0
    """Cohorts judged up to the last change of the verdict."""


def accuracy(label: int, answer: int) -> float:
    return float(label == answer)


class NaiveCohorts:
    """Verdicts of one model, from its outcomes."""

    def __init__(
        self,
        horizon_ms: int,
        utility: Callable[[int, int], float] = accuracy,
        predictions: int = 100_000,
        delta: float = 0.05,
        age: int | None = None,
        start: tuple[float, float] = (1_152, 2_000),
        most_classes: int = 1_000,
    ) -> None:
        self.start, self.most_classes = start, most_classes
        self.horizon, self.utility, self.least_n, self.delta = horizon_ms, utility, predictions, delta
        self.fixed_age = age
        self.ages = ages_of(horizon_ms)
        self.bucket_width = ceil(horizon_ms / BUCKETS)
        self.starts: list[int] = []
        self.judged_outcomes: list[tuple[int, bool, float]] = []
        """Of all judged cohorts: opening, whether a hit, and 1/G of each outcome labelled by their age."""
        self.judged_errors: list[tuple[int, Errors]] = []
        """Of each judged cohort: opening, and those of its outcomes."""
        self.outcomes: list[tuple[int, int, Kind, dict[str, float]]] = []
        """Prediction time, delay, kind, leads: of all labels within the horizon."""
        self.by_bucket: defaultdict[int, list[tuple[int, Kind]]] = defaultdict(list)
        """Of the same, delay and kind by bucket of prediction time, until it settles."""
        self.judged_leads: list[tuple[int, int, dict[str, list[float]]]] = []
        """Of all judged cohorts: opening, predictions, and leads weighted by 1/G by opponent."""
        self.settled: dict[Kind, Settled] = {}
        self.lacks: bool | None = None
        """Whether kinds without a share of their own matter; None until asked since a bucket settled."""
        self.lead_sizes: dict[Kind, float] = {}
        """By costs: of the labels that came, the larger |lead| of each, summed and faded as they settle."""
        self.next_bucket: int | None = None
        self.settled_buckets = 0
        """Since the first that held an outcome."""
        self.settled_number = 0.0
        """Of those that held one, faded as their outcomes."""
        self.trackers = [Tracker(age) for age in self.ages[:-1]]
        self.label_counts: dict[int, float] = {}
        self.labels = 0
        """Labels counted so far; from 100 on, the leader is noted."""
        self.classes = 0
        self.apart = min(OWN_CLASSES + 1, most_classes)
        """Number of classes up to which none share a kind; further ones than `most_classes` come as one."""
        self.leader: int | None = None
        self.leaders: list[tuple[int, int]] = []
        self.current: Cohort | None = None
        self.closed: list[Cohort] = []
        self.judged = self.judged_predictions = 0
        self.unpaid = 0.0
        self.recent = 0.0
        self.last_opening: tuple[int, int] | None = None
        self.last_age: int | None = None
        self.age_changes = 0
        self.clock, self.made = 0, 0
        self.last_made: int | None = None
        self.taken = 0
        """Outcomes so far."""
        self.gaps: dict[int, int] = {}
        """By bucket of the clock: the longest gap between two labels that ended in it."""
        self.opponents = {name: Opponent() for name in OPPONENTS}

    def take(
        self, at: int, delay: int, made: int, label: int, predicted: int, last_known: int | None
    ) -> None:
        """One outcome: clock, delay, predictions made so far, classes, the last label known at prediction."""
        predicted_at = at - delay
        before, made_before = self.clock, self.made
        at = self.clock = max(self.clock, at)
        made = self._unwrapped(made)
        self._close(at, made)
        self._settle(at)
        for tracker in self.trackers:
            tracker.move(at, made)
        self._confirm(at)
        while self.closed and at >= self._due(self.closed[0]):
            self._judge(self.closed.pop(0))
        self._open(at, made)
        self._note_gap(at - before, made - made_before)
        self.taken += 1
        self._note_leader(at)
        if delay <= self.horizon:
            self._count(predicted_at, delay, label, predicted, last_known)
        self._count_label(label)

    def _due(self, cohort: Cohort) -> int:
        """Labels may be assumed at the horizon, or up to a second later: deadlines are whole seconds."""
        return cohort.end + self._wait(cohort.parameters)

    def _wait(self, parameters: Parameters) -> int:
        age = self.ages[parameters.age]
        return age + (DEADLINE_MS if age == self.horizon else 0)

    def _unwrapped(self, made: int) -> int:
        """`made` counts modulo 2³²; a step back by up to 2²⁴ counts as none."""
        if self.last_made is None:
            self.last_made = made
        moved = (made - self.last_made) % 2**32
        if moved < 2**32 - 2**24:
            self.made += moved
            self.last_made = made
        return self.made

    # 1
    def _close(self, at: int, made: int) -> None:
        cohort = self.current
        if cohort is None or len(self.closed) + 1 >= MOST_COHORTS or at < cohort.opened + cohort.width:
            return
        n = made - cohort.made
        if n < LEAST_IN_COHORT:
            return
        cohort.end, cohort.n, self.current = at, n, None
        self.closed.append(cohort)

    # 2
    def _settle(self, at: int) -> None:
        if self.next_bucket is None:
            self.next_bucket = self._bucket(at - self.horizon)
        while at >= (self.next_bucket + 1) * self.bucket_width + self.horizon:
            delays: dict[Kind, list[int]] = {kind: [] for kind in self.settled}
            inside = self.by_bucket.pop(self.next_bucket, [])
            for delay, kind in inside:
                delays.setdefault(kind, []).append(delay)
                delays.setdefault(pooled(kind), []).append(delay)
            fade = max(1 - 1 / BUCKETS, 1 - len(inside) / 200)
            if inside:
                self.settled_number = self.settled_number * fade + 1
                self.lead_sizes = {kind: size * fade for kind, size in self.lead_sizes.items()}
            self.settled_buckets += bool(inside) or self.settled_buckets > 0
            for kind, of_kind in delays.items():
                self.settled.setdefault(kind, Settled()).add(of_kind, self.ages, fade)
            self.next_bucket += 1
            self.lacks = None

    def _note_gap(self, gap: int, made: int) -> None:
        """Between this label and the one before; `made` predictions were made in it."""
        if made == 0 or made * min(self.taken / self.made, 1.0) < LEAST_EXPECTED - 1e-9:
            return
        bucket = self._bucket(self.clock)
        if gap > self.gaps.get(bucket, 0):
            self.gaps[bucket] = gap
            self.lacks = None

    def _least_age(self) -> int:
        """A week without labels is no rhythm of labels, two in a horizon are; batches need no such age."""
        last_horizon = sorted(gap for bucket, gap in self.gaps.items() if bucket >= self.next_bucket)
        are_batches = sum(last_horizon) >= 8 / 9 * self.horizon
        return GAPS * last_horizon[-2] if len(last_horizon) > 1 and not are_batches else 0

    def _bucket(self, time: float) -> int:
        return int(time // self.bucket_width)

    def verdicts(self) -> list[tuple[int, str, int]]:
        """Verdict, status, and number of changes, by opponent."""
        return [(each.verdict, each.status, each.changes) for each in self.opponents.values()]

    def claimed(self, name: str) -> tuple[int, float, float] | None:
        """Outcomes so far of the predictions that an early claim is about, their leads, and these squared."""
        waiting = self.opponents[name].waiting
        if waiting is None:
            return None
        leads = self._leads_between(name, waiting)
        return len(leads), sum(leads), sum(d * d for d in leads)

    def _leads_between(self, name: str, waiting: Waiting) -> list[float]:
        return [
            lead[name]
            for time, _, _, lead in self.outcomes
            if name in lead and waiting.first <= time < waiting.last
        ]

    def _confirm(self, at: int) -> None:
        for name, opponent in self.opponents.items():
            waiting = opponent.waiting
            if waiting is None or at < waiting.last + self.horizon:
                continue
            leads = self._leads_between(name, waiting)
            opponent.waiting = None
            if leads and self._holds(leads, opponent):
                opponent.status = "confirmed"
                opponent.confirmed += 1
            else:
                opponent.retracted += 1
                self._change(opponent, OPEN)

    @staticmethod
    def _holds(leads: list[float], opponent: Opponent) -> bool:
        n = len(leads)
        mean = sum(leads) / n
        variance = max(sum(d * d for d in leads) / n - mean**2, 0.0)
        return mean * opponent.verdict > 2.5 * sqrt(variance / n * opponent.phi)

    # 3
    def _judge(self, cohort: Cohort) -> None:
        if cohort.n == 0:
            return
        share = cohort.parameters.share
        weights = [(kind[1], 1.0 / cohort.parameters.of(share, kind)) for kind, _ in cohort.leads]
        self.judged_outcomes += [(cohort.opened, hit, weight) for hit, weight in weights]
        self.judged_errors.append((cohort.opened, errors_of(weights)))
        by_opponent = {
            name: [d[name] / cohort.parameters.of(share, kind) for kind, d in cohort.leads if name in d]
            for name in self.opponents
        }
        self.judged_leads.append((cohort.opened, cohort.n, by_opponent))
        self.judged += 1
        self.judged_predictions += cohort.n
        bets = True
        if cohort.parameters.missing > 0:
            lacking = cohort.n - len(cohort.leads)
            paid = cohort.n * cohort.parameters.missing
            self.unpaid = min(max(self.unpaid + (lacking - paid), 0.0), MOST_UNPAID + 1)
            bets = self.unpaid <= MOST_UNPAID
        for name, opponent in self.opponents.items():
            leads = [(kind, d[name]) for kind, d in cohort.leads if d.get(name, 0.0) != 0.0]
            opponent.since_claim += cohort.n
            if not opponent.started:
                least = max(self.start[0], self.start[1] * opponent.phi)
                opponent.started = self.judged > 40 and self.judged_predictions - cohort.n >= least
            if opponent.started and bets:
                for side in (opponent.better, opponent.worse):
                    self._bet(side, cohort, leads, opponent.phi, min(cohort.n / self._n(), 1.0))
                self._claim(name, opponent, cohort)
            if opponent.verdict != OPEN and opponent.since_claim >= self._n():
                self._change(opponent, OPEN)
            weighted = [d / cohort.parameters.of(share, kind) for kind, d in leads]
            variance = sum(x * x for x in weighted) / cohort.n**2
            for scale in opponent.scales:
                scale.add(sum(weighted) / cohort.n, variance, opponent.phi)
            opponent.phi = max([1.0] + [scale.ratio for scale in opponent.scales])

    @staticmethod
    def _bet(side: Side, cohort: Cohort, leads: list[tuple[Kind, float]], phi: float, part: float) -> None:
        """One bet on all of the cohort: Π (1 ± λ·d·a/c), at the power 1/φ."""
        p = cohort.parameters
        largest = p.largest()
        for j, rate in enumerate(LAMBDAS):
            product = -cohort.n * log(1 + rate * p.missing)
            for kind, d in leads:
                against = d * side.sign < 0  # what speaks against the claim is given the larger weight
                g = p.of(p.lower if against else p.upper, kind)
                product += log(1 + side.sign * rate * d / g / largest)
            factor = exp(min(product / phi, 600.0))
            side.m[j] = (side.m[j] + cohort.n) * factor
            side.wealth[j] = min(((1 - part) * side.wealth[j] + part) * factor, 1e30)
            if side.c[j] <= 1:
                side.start[j], side.c[j] = cohort.opened, 1.0
            side.c[j] *= factor

    def _claim(self, name: str, opponent: Opponent, cohort: Cohort) -> None:
        threshold = {BETTER: 2 * self._n() / self.delta, WORSE: 4 * self._n() / self.delta}
        reached = [side for side in (opponent.worse, opponent.better) if side.mean >= threshold[side.sign]]
        if not reached:
            return
        winner = max(reached, key=lambda side: side.mean)
        if winner.sign != opponent.verdict:
            opponent.since = winner.start[max(range(8), key=lambda j: (winner.c[j], -j))]
            self._change(opponent, winner.sign)
            opponent.between = self._limits(name, opponent, cohort)
            opponent.status = cohort.parameters.status
            if opponent.status == "early":
                opponent.waiting = self._waiting(opponent.since, cohort.end)
        opponent.since_claim = 0
        for side in reached:
            side.forget()

    def _limits(self, name: str, opponent: Opponent, cohort: Cohort) -> tuple[int | None, int]:
        """Beginnings of stretches whose likelihood is near the largest, widened by half a stretch."""
        n = sum(n for _, n, _ in self.judged_leads)
        squares = sum(d * d for *_, by in self.judged_leads for d in by[name]) / n
        starts = [start for start in self.starts if start <= cohort.opened]
        found: dict[int, float] = {}
        for start in starts:
            before = [each for each in self.judged_leads if each[0] < start]
            after = [each for each in self.judged_leads if each[0] >= start]
            found[start] = 0.0
            for side, wanted in ((before, -opponent.verdict), (after, opponent.verdict)):
                total = wanted * sum(sum(by[name]) for *_, by in side)
                if total > 0:
                    found[start] += total**2 / sum(n for _, n, _ in side) / (2 * opponent.phi * squares)
        near = [start for start in starts if found[start] >= max(found.values()) - 2.25]
        first, last = starts.index(near[0]), self.starts.index(near[-1])
        ends = [*self.starts[1:], cohort.end] if cohort.opened == self.starts[-1] else self.starts[1:]
        latest = max((self.starts[last] + ends[last]) // 2, opponent.since)
        if first == 0:
            return None, latest
        return min((starts[first - 1] + starts[first]) // 2, opponent.since), latest

    def _waiting(self, since: int, end: int) -> Waiting:
        """Stretches that hold the predictions from `since` until before `end`."""
        first = max(start for start in self.starts if start <= since)
        return Waiting(first, min([start for start in self.starts if start >= end], default=end))

    def _note_start(self, opened: int) -> None:
        if len(self.starts) == MOST_STARTS:
            self.starts = self.starts[:32:2] + self.starts[32:]
        self.starts.append(opened)

    def _by_stretch(self, dated: Iterable[tuple[int, Any]]) -> list[list[Any]]:
        """What is of a time, by the stretch of that time; nothing of times before the first."""
        found: list[list[Any]] = [[] for _ in self.starts]
        for time, value in dated:
            if self.starts and time >= self.starts[0]:
                found[bisect_right(self.starts, time) - 1].append(value)
        return found

    def errors_by_stretch(self) -> list[tuple[float, ...]]:
        """Weights of hits and misses in judged cohorts, and their squares, by stretch."""
        nothing = (0.0,) * 4
        inside = self._by_stretch(self.judged_errors)
        return [tuple(map(sum, zip(nothing, *errors, strict=True))) for errors in inside]

    def leads_by_stretch(self, name: str) -> list[tuple[float, float, float]]:
        """Predictions of the judged cohorts of a stretch, and sums of their leads and of these squared."""
        found = []
        for inside in self._by_stretch((opened, (n, by[name])) for opened, n, by in self.judged_leads):
            leads = [d for _, each in inside for d in each]
            found.append((sum(n for n, _ in inside), sum(leads), sum(d * d for d in leads)))
        return found

    def outcomes_by_stretch(self, name: str) -> list[tuple[int, float, float]]:
        """Outcomes that the opponent answered, and sums of their leads and of these squared, by stretch."""
        answered = ((time, lead[name]) for time, _, _, lead in self.outcomes if name in lead)
        return [(len(each), sum(each), sum(d * d for d in each)) for each in self._by_stretch(answered)]

    def since_change(self, name: str) -> tuple[int, int, float, float]:
        """Cohorts judged since the verdict last changed, their predictions, leads, and these squared."""
        judged = self.judged_leads[self.opponents[name].judged_before :]
        leads = [d for *_, by in judged for d in by[name]]
        return len(judged), sum(n for _, n, _ in judged), sum(leads), sum(d * d for d in leads)

    def _change(self, opponent: Opponent, verdict: int) -> None:
        opponent.judged_before = len(self.judged_leads)
        opponent.verdict, opponent.status, opponent.waiting = verdict, "", None
        opponent.between = None
        opponent.changes += 1

    def _n(self) -> float:
        return max(self.least_n, self.recent)

    # 4
    def _open(self, at: int, made: int) -> None:
        if self.current is not None or len(self.closed) >= MOST_COHORTS:
            return
        parameters, fast = self._from_settled(), self._fast()
        if fast is not None:
            longest = 0.0 if parameters is None else max(self.ages[parameters.age], self.horizon / 16)
            if parameters is None or self.ages[fast.age] <= longest:
                parameters = fast
        if parameters is None:
            return
        if self.last_opening is not None:
            then, made_then = self.last_opening
            self.recent = self.recent * exp(-(at - then) / MONTH_MS) + made - made_then
        self.last_opening = (at, made)
        width = max(ceil(max(map(self._wait, [parameters, *(c.parameters for c in self.closed)])) / 16), 1)
        self.age_changes += self.last_age not in {None, self.ages[parameters.age]}
        self.last_age = self.ages[parameters.age]
        self.current = Cohort(at, made, width, parameters)
        self._note_start(at)

    def _fast(self) -> Parameters | None:
        if self.fixed_age is not None:
            return None
        for i, tracker in enumerate(self.trackers):
            if tracker.total >= 1_000 and tracker.share >= 0.99 * tracker.total:
                return Parameters(i, {}, {}, {}, tracker.missing, "complete")
        return None

    def _from_settled(self) -> Parameters | None:
        if not self.settled:
            return None
        known = [
            kind in self.settled and self.settled[kind].total >= 100 for kind in (POOLED_HITS, POOLED_MISSES)
        ]
        everything = sum(s.total for kind, s in self.settled.items() if kind[0] == "all")
        if self.settled_buckets < BUCKETS and (
            not all(known) or self._lacks_shares(everything, has_others=False)
        ):
            return None
        ages = range(AGES - 1) if self.fixed_age is None else [self.fixed_age]
        for i in ages:
            is_long = self.fixed_age is not None or self.ages[i] >= self._least_age()
            if i < AGES - 1 and is_long and self._is_enough(i):
                used = {k: s for k, s in self.settled.items() if k[0] == "all" or s.total >= LEAST_OWN}
                share = {kind: s.share(i) for kind, s in used.items()}
                lower = {kind: max(s.share(i) - s.band(i), 0.05) for kind, s in used.items()}
                upper = {kind: min(s.share(i) + s.band(i), 1.0) for kind, s in used.items()}
                return Parameters(i, share, lower, upper, 0.0, "early")
        return Parameters(AGES - 1, {}, {}, {}, 0.0, "complete")

    def _is_enough(self, i: int) -> bool:
        both = [self.settled.get(kind) for kind in (POOLED_HITS, POOLED_MISSES)]
        if any(s is None or s.total < 100 or s.share(i) < 0.15 for s in both):
            return False
        everything = sum(s.total for s in both)
        if self.lacks is None:
            self.lacks = self._lacks_shares(everything, has_others=True)
        if self.lacks:
            return False  # kinds without a share of their own may have other delays
        within_age = everything / self.settled_number * self.ages[i] / self.bucket_width
        least = 1 / 3 if within_age >= 2_000 else 3 / 4
        for kind, s in self.settled.items():
            if kind[0] == "all":
                continue
            frequent = (s.total > 0.05 * everything or s.total < 100) and self.fixed_age is None
            if s.total >= LEAST_OWN and s.share(i) < (least if frequent else 0.15):
                return False
        return True

    def _lacks_shares(self, everything: float, *, has_others: bool) -> bool:
        common = has_others and self.classes > self.apart
        sizes = self.lead_sizes
        if self.utility is accuracy:
            sizes = {kind: s.total for kind, s in self.settled.items() if kind[0] != "all"}
        own = {kind for kind, s in self.settled.items() if s.total >= LEAST_OWN}
        own -= {kind for kind in own if common and kind[0] == "others"}
        fewer = min(
            sum(size for kind, size in sizes.items() if kind[1] == is_hit) for is_hit in (True, False)
        )
        if self.utility is accuracy:
            fewer = min(fewer, *(self._larger_side(name) * everything for name in OPPONENTS))
        return sum(size for kind, size in sizes.items() if kind not in own) > 0.05 * fewer

    def _larger_side(self, name: str) -> float:
        """Part of the outcomes, since the first cohort, with a lead on the side that has more of them."""
        of_stretches = self.outcomes_by_stretch(name)
        answered, lead, squares = (
            (sum(column) for column in zip(*of_stretches, strict=True)) if of_stretches else (0, 0, 0)
        )
        return (squares + abs(lead)) / 2 / answered if answered else 1.0

    # 5
    def _count(
        self, predicted_at: int, delay: int, label: int, predicted: int, last_known: int | None
    ) -> None:
        for tracker in self.trackers:
            tracker.count(predicted_at, delay)
        answers = {"no_change": last_known, "majority": self._majority(predicted_at)}
        right = self.utility(label, predicted)
        lead = {name: right - self.utility(label, a) for name, a in answers.items() if a is not None}
        kind = kind_of(label, predicted, self.most_classes)
        if self.utility is not accuracy:
            size = max(map(abs, lead.values()), default=0.0)
            self.lead_sizes[kind] = self.lead_sizes.get(kind, 0.0) + size
        self._note(predicted_at, delay, kind, lead)
        for cohort in [*self.closed, *([self.current] if self.current else [])]:
            inside = cohort.opened <= predicted_at and (cohort.end is None or predicted_at < cohort.end)
            if inside and delay <= self.ages[cohort.parameters.age]:
                cohort.leads.append((kind, lead))

    def _note(self, predicted_at: int, delay: int, kind: Kind, lead: dict[str, float]) -> None:
        """Keep an outcome, for what is confirmed later and for the settling of its bucket."""
        self.outcomes.append((predicted_at, delay, kind, lead))
        self.by_bucket[self._bucket(predicted_at)].append((delay, kind))

    def _note_leader(self, at: int) -> None:
        """Its changes, seldom enough for 33 notes to cover a horizon."""
        if self.labels < 100 or self.leader is None or (self.leaders and self.leaders[-1][1] == self.leader):
            return
        if not self.leaders or at >= self.leaders[-1][0] + self.horizon / 32:
            self.leaders.append((at, self.leader))

    def _majority(self, predicted_at: int) -> int | None:
        known = [leader for noted, leader in self.leaders if noted <= predicted_at]
        return known[-1] if known else None

    def _count_label(self, label: int) -> None:
        self.labels += 1
        self.classes = max(self.classes, label + 1)
        for known in self.label_counts:
            self.label_counts[known] *= 0.999
        self.label_counts[label] = self.label_counts.get(label, 0.0) + 1
        if self.leader is None or self.label_counts[label] > self.label_counts[self.leader]:
            self.leader = label
