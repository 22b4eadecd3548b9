"""Comparisons whose verdicts are by cohorts, because labels take half a second or some take half an hour."""

from __future__ import annotations

from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.records.events import Outcome, PairedAnswer
from streamwatch.core.specs import ComparisonSpec, FadingSpec, MonitorsSpec

CHAMPION = "old/1"


def judged(
    challenger: str, wins: int, losses: int, pairs: int = 6_000, *, late: bool = False
) -> ComparisonSet:
    """Of every hundred ids, the challenger alone is right on some, the champion alone on others.

    Predictions come ten a second. With `late`, labels take from half a second to half an hour.
    """
    spec = MonitorsSpec(
        forgetting=(FadingSpec(0.999),),
        comparisons=(ComparisonSpec(CHAMPION, ("*",)),),
        registers=(CohortsSpec(3_600_000, outcomes=1_000),),
    )
    comparisons = ComparisonSet(spec)
    found = []
    for n in range(pairs):
        index = 37 * n % 100
        own = index >= losses
        other = index < losses or index >= losses + wins
        waited = 500 if not late else 500 + 1_800_000 * (n % 7) // 7
        answers = {True: "yes", False: "no"}
        partner = PairedAnswer(CHAMPION, answers[other], n)
        at = 100 * n + waited
        found.append(
            Outcome(
                challenger,
                "yes",
                answers[own],
                at,
                waited,
                pairs=(partner,),
                made=n,
                resolved_ms=at,
                waited_ms=waited,
            )
        )
    found.sort(key=lambda outcome: outcome.resolved_ms)
    comparisons.fold(found)
    return comparisons
