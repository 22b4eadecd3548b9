"""Tables of docs/evidence/late-labels.md: bias and coverage with late labels, and where changes are located.

python -m tests.calibration.late_figures [runs]
"""

from __future__ import annotations

import sys

from tests.calibration.late_runs import (
    SCENES,
    changes_in_runs_of,
    changes_of,
    delayed_changes_of,
    figures_of,
    window_figures_of,
)


def main(runs: int) -> None:
    """Print all tables."""
    print("| | corrected: bias | its interval holds | last 1,000 labels: bias | holds | settled: bias |")
    print("|---|---|---|---|---|---|")
    for scene in SCENES:
        f = figures_of(scene, runs)
        print(
            f"| {scene.name} | {f.bias:+.4f} | {f.coverage:.2f} | {f.last_bias:+.4f} | {f.last_coverage:.2f} "
            f"| {f.settled_bias:+.4f} |",
            flush=True,
        )
    print("| outcomes a bucket, correlation, error before → after | found | holds | off by, median | width |")
    print("|---|---|---|---|---|")
    for outcomes in (5, 20, 100, 1_000):
        for before, after in ((0.2, 0.2), (0.2, 0.3), (0.2, 0.4), (0.2, 0.1)):
            for correlation in (0.0, 0.5, 0.8):
                if correlation:
                    c = changes_in_runs_of(outcomes, before, after, correlation, 2 * runs)
                else:
                    c = changes_of(outcomes, before, after, 5 * runs)
                said = f"{c.found:.3f} | {c.coverage:.3f} | {c.median_error:.2f} | {c.median_width:.0f}"
                print(f"| {outcomes}, {correlation}, {before} → {after} | {said} |", flush=True)
    print_windows(runs)
    print_delayed(runs)


def print_windows(runs: int) -> None:
    """Print the table of hits that are labelled when a dispute window of 30 days closes."""
    print("| horizon, volume of the last days | undefined | settled: bias | holds | last 1,000: bias |")
    print("|---|---|---|---|---|")
    for horizon_days in (31, 45, 60, 70):
        for growth in (1.0, 5.0):
            f = window_figures_of(30.0, horizon_days, runs, growth=growth)
            said = (
                f"{f.undefined:.2f} | {f.settled_bias:+.4f} | {f.settled_coverage:.2f} | {f.last_bias:+.3f}"
            )
            print(f"| {horizon_days} days, × {growth:g} | {said} |", flush=True)


def print_delayed(runs: int) -> None:
    """Print the table of changes whose labels come late."""
    print("| predictions a day, error before → after, seen after | found | interval holds | off by, median |")
    print("|---|---|---|---|")
    for per_day, before, after in ((100, 0.1, 0.1), (100, 0.1, 0.2), (20, 0.1, 0.3), (500, 0.2, 0.1)):
        for days in (10, 30, 60):
            c = delayed_changes_of(per_day, before, after, days, runs)
            said = f"{c.found:.3f} | {c.coverage:.3f} | {c.median_error:.2f}"
            print(f"| {per_day}, {before} → {after}, {days} days | {said} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
