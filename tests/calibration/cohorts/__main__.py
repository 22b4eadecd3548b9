"""Calibrate verdicts by cohorts: run worlds, keep the figures, write docs/evidence/verdicts-by-cohorts.md.

python -m tests.calibration.cohorts [--runs 200] [--only WORDS] [--further] [--tables]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import process_time

from tests.calibration.cohorts.figures import Judge, as_row, figures_of
from tests.calibration.cohorts.rule import judge as judge_by_rule
from tests.calibration.cohorts.scenes import (
    AHEAD,
    CHANGES,
    EVERY,
    HELD,
    HELD_TOO,
    NOT_HELD,
    NOT_HELD_TOO,
    RHYTHMS,
    THOUSAND_A_SECOND,
)
from tests.calibration.cohorts.worlds import World

KEPT = Path(__file__).parent / "figures.json"
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "verdicts-by-cohorts.md"
JUDGES: dict[str, Judge] = {"rule": judge_by_rule}
LONG_RUNS = 100
"""Runs of the world of 1,000 a second at most: each takes 8 s."""
Rows = dict[str, dict[str, object]]


def main() -> None:
    """Run the worlds whose name contains the words, or all; write the tables of all that are kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.cohorts")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", default="", help="words of a world's name")
    parser.add_argument("--further", action="store_true", help="only the worlds that were looked for")
    parser.add_argument("--judge", choices=JUDGES, default="rule")
    parser.add_argument("--tables", action="store_true", help="write the tables of what was kept")
    told = parser.parse_args()
    kept: Rows = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if not told.tables:
        for world in (*HELD_TOO, *NOT_HELD_TOO) if told.further else EVERY:
            if told.only in world.name:
                began = process_time()
                runs = min(told.runs, LONG_RUNS) if world is THOUSAND_A_SECOND else told.runs
                kept[world.name] = as_row(figures_of(world, runs, JUDGES[told.judge]))
                print(f"{world.name}: {runs} runs, {process_time() - began:.0f} s of CPU", flush=True)
                KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    tables = {
        "held": false_claims(kept, (*HELD, THOUSAND_A_SECOND)),
        "held too": false_claims(kept, HELD_TOO),
        "not held": false_claims(kept, NOT_HELD),
        "not held too": false_claims(kept, NOT_HELD_TOO, times=True),
        "delays": delays(kept),
    }
    page = PAGE.read_text()
    for name, table in tables.items():
        start, end = f"<!-- cohorts: {name} -->\n", "<!-- end -->"
        before, rest = page.split(start, 1)
        page = before + start + table + end + rest.split(end, 1)[1]
    PAGE.write_text(page)


def said(value: object, form: str) -> str:
    """A figure, without the 0 before its point; nothing where it is undefined."""
    if value is None:
        return ""
    text = format(value, form)
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def table_of(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(row) + " |\n" for row in (columns, *rows)]
    return "".join([lines[0], "|---" * len(columns) + "|\n", *lines[1:]])


def false_claims(kept: Rows, worlds: tuple[World, ...], *, times: bool = False) -> str:
    """Shares of runs with a false claim; with `times`, when the first came and the first was retracted."""
    rows = []
    for world in worlds:
        row = kept.get(world.name)
        if row is None:
            continue
        form = ".3f" if isinstance(runs := row["runs"], int) and runs >= 1_000 else ".2f"
        better = "(true)" if world.name in AHEAD else said(row["false_better"], form)
        when = (f"{said(row['first_false'], '.0f')}, {said(row['first_retracted'], '.0f')}",) if times else ()
        rows.append(
            (
                world.name,
                str(runs),
                *when,
                said(row["started"], ".0f") or "never",
                f"{said(row['false_worse'], form)}, {better}",
                said(row["false_worse_by_label_order"], form),
                said(row["retracted"], form),
                *((said(row["confirmed"], form),) if times else ()),
                f"{said(row['age'], '.3g')}, {said(row['moves'], '.1f')}",
            )
        )
    columns = (
        "world",
        "runs",
        *(("first claim, retracted",) if times else ()),
        "evidence from",
        "“worse”, “better”",
        "in label order: “worse”",
        "retracted",
        *(("confirmed",) if times else ()),
        "age, its moves",
    )
    return table_of(columns, rows)


def delays(kept: Rows) -> str:
    """How soon a worse model is called worse."""
    rows = []
    for world in (*CHANGES, *RHYTHMS):
        row = kept.get(world.name)
        if row is None:
            continue
        rows.append(
            (
                world.name,
                str(row["runs"]),
                said(row["said"], ".2f"),
                said(row["delay"], ".1f"),
                said(row["since_off"], ".1f"),
                said(row["delay_by_label_order"], ".1f"),
                f"{said(row['confirmed'], '.2f')}, {said(row['retracted'], '.2f')}",
            )
        )
    columns = ("lead", "runs", "said", "days after", "*since* off by, days", "in label order: days after")
    return table_of((*columns, "confirmed, retracted"), rows)


if __name__ == "__main__":
    main()
