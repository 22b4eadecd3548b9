"""`make attack`: every attack on the HTTP server, and what it did to health, memory and the log."""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.attack.http import ATTACKS
from tests.attack.siege import rounds, siege


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--factor", type=float, default=1.0, help="how much of each attack's usual size")
    parser.add_argument("--models", type=int, default=2_000)
    asked = parser.parse_args()
    sys.exit(asyncio.run(_all(asked.factor, asked.models)))


async def _all(factor: float, models: int) -> int:
    failed = 0
    print("attack       size   health beyond control: median, max ms  unanswered  peak MB  log lines")  # noqa: T201
    for name, (attack, usual) in ATTACKS.items():
        size = max(1, round(usual * factor))
        async with siege("--models", str(models)) as besieged:
            before = besieged.resident_bytes
            await attack(besieged, size)
            await rounds(besieged, 3)
            median, largest, missing = besieged.health()
            peak = (besieged.peak_bytes - before) / 1e6
            lines = besieged.lines
            failed += missing > 0 or any("Traceback" in line for line in lines)
            print(  # noqa: T201
                f"{name:12} {size:5}   {1_000 * median:28.1f}, {1_000 * largest:6.1f}  {missing:10}"
                f"  {peak:7.1f}  {len(lines):9}"
            )
    return min(failed, 1)


if __name__ == "__main__":
    main()
