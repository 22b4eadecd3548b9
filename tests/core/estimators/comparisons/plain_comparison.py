"""METRICS §6 as it reads, over the whole list of pairs each time: slow, nothing of the product's in it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tests.core.estimators.verdicts.plain_verdict import PlainVerdict


@dataclass
class PlainComparison:
    """Feed it pairs as (true class, champion's class, challenger's class, event time)."""

    pairs: list[tuple[str, str, str, int]] = field(default_factory=list)
    verdict: PlainVerdict = field(default_factory=PlainVerdict)

    def take(self, y: str, champion: str, challenger: str, event_ms: int, lead: float | None = None) -> None:
        self.pairs.append((y, champion, challenger, event_ms))
        accuracy = (challenger == y) - (champion == y)
        self.verdict.take(accuracy if lead is None else lead, len(self.pairs), event_ms)

    def losses(self) -> list[tuple[int, int]]:
        return [(int(a != y), int(b != y)) for y, a, b, _ in self.pairs]

    def says(self, weights: list[float]) -> dict[str, float]:
        """Every measure, with these weights of the last pairs; undefined ones are absent."""
        losses = self.losses()[-len(weights) :] if weights else []
        total = math.fsum(weights)
        s_a = math.fsum(w * a for w, (a, _) in zip(weights, losses, strict=True))
        s_b = math.fsum(w * b for w, (_, b) in zip(weights, losses, strict=True))
        n01 = math.fsum(w for w, (a, b) in zip(weights, losses, strict=True) if a > b)
        n10 = math.fsum(w for w, (a, b) in zip(weights, losses, strict=True) if b > a)
        variance = math.fsum(w * w for w, (a, b) in zip(weights, losses, strict=True) if a != b)
        found = {"comparison_champion_right_alone": n10, "comparison_challenger_right_alone": n01}
        if weights:
            found["comparison_champion_error_ratio"] = s_a / total
            found["comparison_challenger_error_ratio"] = s_b / total
            found["comparison_effective_sample_size"] = total**2 / math.fsum(w * w for w in weights)
        if s_a > 0 and s_b > 0:
            found["comparison_q"] = math.log(s_a / s_b)
        sign = (n01 > n10) - (n01 < n10)
        if n01 + n10 >= 0.05:
            found["comparison_mcnemar"] = sign * (n01 - n10) ** 2 / (n01 + n10)
        if variance >= 5:
            found["comparison_mcnemar_calibrated"] = sign * (n01 - n10) ** 2 / variance
        return found

    def landmark(self) -> dict[str, float]:
        return self.says([1.0] * len(self.pairs))

    def faded(self, alpha: float) -> dict[str, float]:
        return self.says([alpha**age for age in range(len(self.pairs) - 1, -1, -1)])

    def sliding(self, size: int) -> dict[str, float]:
        return self.says([1.0] * min(size, len(self.pairs)))
