"""Lists of worse models in a fleet, once a day for a month: how many of the listed ones never were worse.

    python -m tests.calibration.fleet_figures [--runs 5] [--looks 1440] [--shared 0.8] [--loss=-0.15]

A thousand models make 200 predictions a day for 60 days. They are as good as always answering the majority,
but for ten, which become worse on day 20. Labels of errors come sooner (a day on average) than those of hits
(two days), and the horizon is ten days. Each prediction of a model uses a draw that all models share with the
given probability, so models err together. Lists are made at the end of days 31 to 60, with δ = .05, or every
minute from then on with `--looks 1440`, so many a day.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np

from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.fleet import Listed, worse_pairs
from streamwatch.core.specs import DAY_MS
from tests.core.estimators.registers.cohorts.observed import batch_of, merged, part, register_of
from tests.core.estimators.registers.cohorts.streams import in_order_of_labels

MODELS, WORSE, DAYS, RATE, HORIZON_DAYS, DELTA = 1_000, 10, 60, 200, 10, 0.05
FROM_DAY, LISTS_FROM = 20, 31
MAJORITY = 0.85
BEGAN_MS = 1_700_000_000_000


@dataclass
class Lists:
    """Lists of all days of all runs."""

    false_share: list[float] = field(default_factory=list[float])
    """Of each list; 0 for an empty one."""
    worst: list[float] = field(default_factory=list[float])
    """The largest false share of a run's lists."""
    ever: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Pairs never worse, and all pairs, that were in any list of a run."""
    listed: list[int] = field(default_factory=list[int])
    found: list[float] = field(default_factory=list[float])
    """Share of the worse models, in the last list of a run."""
    held: list[int] = field(default_factory=list[int])
    """Number of models never worse that had a verdict "worse" on the last day, for comparison."""


def run(lists: Lists, seed: int, shared: float, loss: float, looks: int = 1) -> None:
    """One fleet, looked at so often a day; `loss` is the lead of the worse models, below 0."""
    rng = np.random.default_rng(seed)
    n = DAYS * RATE
    common = rng.random(n)
    batches = []
    for model in range(MODELS):
        made_at = np.sort(rng.random(n)) * DAYS
        label = (rng.random(n) >= MAJORITY).astype(np.int64)
        draw = np.where(rng.random(n) < shared, common, rng.random(n))
        lead = np.where((model < WORSE) & (made_at >= FROM_DAY), loss, 0.0)
        hit = draw < MAJORITY + lead
        delay = rng.exponential(np.where(hit, 2.0, 1.0))
        known = made_at + delay
        comes = (delay <= HORIZON_DAYS) & (known <= DAYS)
        outcomes = in_order_of_labels(
            BEGAN_MS + (made_at * DAY_MS).astype(np.int64),
            (delay * DAY_MS).astype(np.int64),
            comes,
            label,
            np.where(hit, label, 1 - label),
        )
        batches.append(batch_of(outcomes, model))
    at = np.concatenate([batch.event_ms for batch in batches])
    whole = merged(batches, np.argsort(at, kind="stable"))
    register = register_of(CohortsSpec(HORIZON_DAYS * DAY_MS), MODELS)
    sorted_at = np.sort(at, kind="stable")
    first = LISTS_FROM * looks
    grid = BEGAN_MS + np.arange(first, DAYS * looks + 1) * (DAY_MS // looks)
    ends = np.searchsorted(sorted_at, grid)
    opponents = ("persistent_at_prediction", "majority")
    ever: set[tuple[str, str]] = set()
    shares: list[float] = []
    start, listed = 0, list[Listed]()
    for end in ends.tolist():
        register.observe(part(whole, slice(start, end)))
        start = end
        values = register.read(range(MODELS)).e_value
        with np.errstate(invalid="ignore"):
            high = np.argwhere(values >= 1.0 / DELTA)  # no pair is listed below that
        pairs = [Listed(str(model), opponents[j], float(values[model, j])) for model, j in high.tolist()]
        listed = worse_pairs(pairs, 2 * MODELS, DELTA)
        never = [pair for pair in listed if never_worse(int(pair.model), pair.opponent, loss)]
        shares.append(len(never) / max(len(listed), 1))
        ever |= {(pair.model, pair.opponent) for pair in listed}
    lists.false_share += shares
    lists.worst.append(max(shares))
    never_ever = [pair for pair in ever if never_worse(int(pair[0]), pair[1], loss)]
    lists.ever.append((len(never_ever), len(ever)))
    lists.listed.append(len({pair.model for pair in listed}))
    lists.found.append(len({pair.model for pair in listed if int(pair.model) < WORSE}) / WORSE)
    lists.held.append(int((register.read(range(WORSE, MODELS)).verdict[:, 1] < 0).sum()))


def never_worse(model: int, opponent: str, loss: float) -> bool:
    """Tell whether the model's expected lead over the opponent was never below 0.

    A worse model is right with .85 + `loss`; repeating a label known before is right with .745.
    """
    rival = MAJORITY if opponent == "majority" else MAJORITY**2 + (1 - MAJORITY) ** 2
    return model >= WORSE or MAJORITY + loss >= rival


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.fleet_figures")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--looks", type=int, default=1, help="lists a day")
    parser.add_argument("--shared", type=float, nargs="*", default=[0.0, 0.8])
    parser.add_argument("--loss", type=float, nargs="*", default=[-0.05, -0.15])
    told = parser.parse_args()
    print(
        "| shared draws | lead of the worse | false share: mean, at the worst look | false ones ever listed "
        "| worse ones found | models |"
    )
    print("|---|---|---|---|---|---|")
    for shared in told.shared:
        for loss in told.loss:
            lists = Lists()
            for seed in range(told.runs):
                run(lists, seed, shared, loss, told.looks)
            print(
                f"| {shared} | {loss} | {fmean(lists.false_share):.4f}, {fmean(lists.worst):.2f} "
                f"| {sum(n for n, _ in lists.ever)} of {sum(n for _, n in lists.ever)} "
                f"| {fmean(lists.found):.2f} "
                f"| {lists.listed[-1]} listed, {fmean(lists.held):.1f} held falsely |",
                flush=True,
            )


if __name__ == "__main__":
    main()
