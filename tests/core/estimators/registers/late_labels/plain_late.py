"""Late labels worked out from all outcomes so far, one by one, straight from the rules (METRICS §11)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Known:
    """An outcome: times in milliseconds."""

    predicted_ms: int
    known_ms: int
    hit: bool

    @property
    def delay_ms(self) -> int:
        return self.known_ms - self.predicted_ms


@dataclass(frozen=True)
class PlainLate:
    """What the rules say; None where they say nothing."""

    settled: tuple[float, float, float, float] | None
    corrected: tuple[float, float, float, float] | None
    naive: float | None
    shares: dict[bool, list[float]]


def width_of(horizon_ms: int) -> int:
    return math.ceil(1.5 * horizon_ms / 64)


def edges_of(horizon_ms: int) -> list[int]:
    ratio = 240 ** (1 / 22)
    return [0, *(round(horizon_ms / 240 * ratio**k) for k in range(23))]


def interval(share: float, n: float) -> tuple[float, float]:
    """Roots of (share − p)² = z² p (1 − p) / n."""
    z = 1.96
    a, b, c = 1 + z * z / n, -(2 * share + z * z / n), share * share
    root = math.sqrt(b * b - 4 * a * c)
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def shares_by_hand(outcomes: list[Known], horizon_ms: int, now: int) -> dict[bool, list[float]]:
    """F_z at the edges; a bin is judged by predictions of buckets wholly as old as its upper edge."""
    width, edges = width_of(horizon_ms), edges_of(horizon_ms)
    found: dict[bool, list[float]] = {}
    for kind in (False, True):
        own = [o for o in outcomes if o.hit is kind]
        shares = [1.0]
        for low, high in reversed(list(pairwise(edges))):
            old = [o for o in own if now - (o.predicted_ms // width + 1) * width >= high]
            last = high == edges[-1]
            up_to = [o for o in old if o.delay_ms <= high or last]
            in_bin = [o for o in up_to if o.delay_ms > low or low == 0]
            shares.insert(0, shares[0] * (1 - len(in_bin) / len(up_to)) if up_to else shares[0])
        found[kind] = shares
    return found


def share_at(shares: list[float], edges: list[int], age: float) -> float:
    for k in range(23):
        if age <= edges[k + 1]:
            return shares[k] + (shares[k + 1] - shares[k]) * (age - edges[k]) / (edges[k + 1] - edges[k])
    return shares[-1]


def plain_late(outcomes: list[Known], horizon_ms: int) -> PlainLate:
    """Everything that the rules say after these outcomes."""
    width, edges = width_of(horizon_ms), edges_of(horizon_ms)
    now = max(o.known_ms for o in outcomes)
    last = now // width
    kept = [o for o in outcomes if last - 64 < o.predicted_ms // width]
    shares = shares_by_hand(kept, horizon_ms, now)
    settled = [o for o in kept if now - (o.predicted_ms // width + 1) * width >= horizon_ms]
    hits = sum(o.hit for o in settled)
    of_settled = None
    if len(settled) >= 30:
        of_settled = (hits / len(settled), *interval(hits / len(settled), len(settled)), float(len(settled)))
    weighted: list[tuple[float, bool]] = []
    for o in kept:
        bucket = o.predicted_ms // width
        ends = (bucket + 1) * width
        if now - ends >= horizon_ms / 2:
            continue
        middle = (now - bucket * width) / 2 if bucket == last else now - ends + width / 2
        both = {kind: share_at(shares[kind], edges, middle) for kind in (False, True)}
        if min(both.values()) >= 0.2:
            weighted.append((1 / both[o.hit], o.hit))
    if of_settled is None or len(weighted) < 30:
        return PlainLate(of_settled, None, None, shares)
    total = sum(w for w, _ in weighted)
    share = sum(w for w, hit in weighted if hit) / total
    n_eff = total**2 / sum(w * w for w, _ in weighted)
    naive = sum(hit for _, hit in weighted) / len(weighted)
    return PlainLate(of_settled, (share, *interval(share, n_eff), n_eff), naive, shares)
