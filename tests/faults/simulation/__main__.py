"""The long form: `python -m tests.faults.simulation --seeds 100000`; stops at the first seed that fails."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter

from tests.faults.simulation.simulation import Simulation

SAID_SECONDS = 10.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--traces", action="store_true", help="print a digest of each seed's history")
    chosen = parser.parse_args(arguments)
    began = said = time.monotonic()
    runs = reports = 0
    told: Counter[str] = Counter()
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        try:
            simulation = Simulation(seed).run()
        except Exception:  # noqa: BLE001 - whatever it is, the seed is what matters
            say(traceback.format_exc())
            say(f"seed {seed} fails: python -m tests.faults.simulation --first {seed} --seeds 1")
            return 1
        told += simulation.telling.ledger.counts + simulation.telling.ledger.between
        runs, reports = runs + len(simulation.turns), reports + simulation.shown.reports
        if chosen.traces:
            say(f"{seed} {simulation.trace}")
        now = time.monotonic()
        if now - said >= SAID_SECONDS:
            said = now
            done = seed - chosen.first + 1
            sys.stderr.write(f"{done} of {chosen.seeds} seeds, {done / (now - began):.0f} a second\n")
    say(f"{chosen.seeds} seeds hold: {runs} runs, {reports} reports")
    say(", ".join(f"{what}: {count}" for what, count in sorted(told.items())))
    return 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
