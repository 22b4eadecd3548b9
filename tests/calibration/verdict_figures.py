"""Print how verdicts behave: false ones, those of leads that were real for a while, delays, intervals.

python -m tests.calibration.verdict_figures [runs]
"""

from __future__ import annotations

import sys

import numpy as np

from tests.calibration import leads
from tests.calibration.test_verdicts import OUTCOMES, excluded, in_parts
from tests.core.estimators.verdicts.runs import first_changes, last_dispersions

EQUAL = {
    "independent, both right with .5": leads.independent(0.5),
    "independent, .853": leads.independent(0.853),
    "independent, .99": leads.independent(0.99),
    "labels repeat with .85, the model errs at switches": leads.errs_at_switches,
    "near-periodic labels": leads.near_periodic,
    **{f"losses correlated by {rho}": leads.correlated_losses(rho) for rho in (0.3, 0.5, 0.8, 0.9, 0.95)},
    "losses correlated by 0.8, both right with .97": leads.correlated_losses(0.8, 0.97),
    "losses of model and opponent correlated by 0.8": leads.correlated_losses(0.8, both=True),
    "accuracy wanders, time constant 50": leads.wandering(50),
    "baseline .95 or .75 in turns of 100": leads.regimes(100),
    "baseline .95 or .75 in turns of 1,000": leads.regimes(1_000),
}


def main() -> None:
    """Print the tables."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    print_false(runs)
    print_delays(runs)
    print(f"Better by .05 (opponent .85): outcome of the first claim, median [10 %, 90 %] of {runs:,} runs")
    for rho in (0.0, 0.8):
        found = in_parts(leads.correlated_losses(rho, ahead=0.05), runs, OUTCOMES, 7, first_changes)[:, 0]
        said = found[found > 0]
        middle, low, high = np.quantile(said, (0.5, 0.1, 0.9))
        print(f"  losses correlated by {rho}: {middle:,.0f} [{low:,.0f}, {high:,.0f}], {len(said)} runs")


def print_false(runs: int) -> None:
    """Print the share of runs with a verdict, all false, and how losses are correlated."""
    print(f"Equal on average, {OUTCOMES:,} outcomes watched at every one, {runs:,} runs, nominal .05")
    for name, draw in EQUAL.items():
        found = in_parts(draw, runs, OUTCOMES, 3, first_changes)[:, :2] > 0
        either, better, worse = found.any(axis=1).mean(), found[:, 0].mean(), found[:, 1].mean()
        left_out = in_parts(draw, runs, OUTCOMES, 5, excluded).mean()
        phi = np.median(in_parts(draw, 25, OUTCOMES, 3, last_dispersions))
        said = f"a verdict {either:.3f} (better {better:.3f}, worse {worse:.3f}); φ {phi:.1f}"
        print(f"  {name:52s} {said}; interval without 0 {left_out:.3f}", flush=True)


def print_delays(runs: int) -> None:
    """Print how soon changes are said, and how far off *since* is."""
    at = 20_000
    print(f"From +.05 to worse at outcome {at:,}: median [10 %, 90 %] of delay and of since − {at:,}")
    for after in (-0.02, -0.05, -0.10, -0.20):
        found = in_parts(leads.changing(0.05, after, at), runs, 5 * at, 4, first_changes)
        said = found[found[:, 1] > at]
        off = np.median(np.abs(said[:, 3] - at))
        delay, error = (np.quantile(said[:, k] - at, (0.5, 0.1, 0.9)) for k in (1, 3))
        share = len(said) / len(found)
        print(
            f"  {after:+.2f}: said by {5 * at:,} in {share:.3f}; "
            f"delay {delay[0]:,.0f} [{delay[1]:,.0f}, {delay[2]:,.0f}]; "
            f"since {error[0]:+,.0f} [{error[1]:+,.0f}, {error[2]:+,.0f}], off by {off:,.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
