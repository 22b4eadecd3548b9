"""Calibrate estimates from sampled labels: run worlds, keep the figures, write the table of the docs.

python -m tests.calibration.sampled [--runs 200] [--only WORDS] [--tables]
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from time import process_time

from tests.calibration.sampled.figures import figures_of
from tests.calibration.sampled.worlds import ONES

KEPT = Path(__file__).parent / "figures.json"
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "sampled-labels.md"
START, END = "<!-- sampled labels: simulated -->\n", "<!-- end -->"
Rows = dict[str, dict[str, object]]


def main() -> None:
    """Run the worlds whose name contains the words, or all; write the table of all that are kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.sampled")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", default="", help="words of a world's name")
    parser.add_argument("--tables", action="store_true", help="write the table of what was kept")
    told = parser.parse_args()
    kept: Rows = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if not told.tables:
        for world in ONES:
            if told.only in world.name:
                began = process_time()
                figures = figures_of(world, told.runs)
                kept[world.name] = asdict(figures)
                print(f"{world.name}: {process_time() - began:.0f} s of CPU, {figures}", flush=True)
                KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    page = PAGE.read_text()
    before, rest = page.split(START, 1)
    PAGE.write_text(before + START + table(kept) + END + rest.split(END, 1)[1])


def short(value: float, digits: int) -> str:
    """A figure without the 0 before its point, with a sign that is no hyphen."""
    text = f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"
    return text.replace("-", "−")


def table(kept: Rows) -> str:
    """One row for each world."""
    lines = [
        (
            "| labels asked for | runs | accuracy held | lead over no change held | lead over the majority "
            "held | width | width without scores | bias | bias of unweighted labels | said to be missing |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for world in ONES:
        row = kept.get(world.name)
        if row is None:
            continue
        held = " | ".join(short(each, 3) for each in row["held"])  # type: ignore[attr-defined]
        figures = [
            (row["width"][0], 3),  # type: ignore[index]
            (row["width_without_scores"], 3),
            (row["bias"], 4),
            (row["unweighted_bias"], 3),
            (row["missing"], 2),
        ]
        shown = " | ".join(short(each, digits) for each, digits in figures)  # type: ignore[arg-type]
        lines.append(f"| {world.name} | {row['runs']} | {held} | {shown} |")
    return "\n".join(lines) + "\n"


main()
