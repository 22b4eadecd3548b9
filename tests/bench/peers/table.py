"""The tables in docs/speed.md and README.md, from docs/speed.json.

python -m tests.bench.peers.table [--write]
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

MEASURED = Path("docs/speed.json")
PAGE = Path("docs/speed.md")
README = Path("README.md")
BEGIN, END = "<!-- made of speed.json: begin -->\n", "<!-- made of speed.json: end -->\n"
COLUMNS = {
    "bare": "bare aiokafka + msgspec",
    "confluent": "bare confluent-kafka + msgspec",
    "daemon": "state in memory",
    "durable": "state on disk",
    "quix": "Quix Streams 3 + river",
}
DAEMONS = ("daemon", "durable")


def markdown(document: dict[str, Any]) -> str:
    """A line for each scenario: CPU beside that of the bare aiokafka loop in the same run.

    A second table has those of a steady state; either is left out if nothing was measured.
    """
    tables = _table(document, COLUMNS) if "scenarios" in document else ""
    if steady := document.get("steady"):
        columns = {peer: COLUMNS[peer] for peer in ("bare", *DAEMONS)}
        tables += (
            "\nA further message of a long stream: what was taken for the fewer messages is taken off what"
        )
        tables += " was taken for the more, so what a process does once does not count.\n\n"
        tables += _table(steady, columns)
    return tables


def _table(document: dict[str, Any], columns: dict[str, str]) -> str:
    """A line for each scenario, a column for each peer."""
    about = document["machine"]
    host = f"{about['processor']}, {about['cores']} cores, Python {about['python']}, {document['broker']}"
    lines = [
        f"Measured {document['date']} on {host}, load {about['load']} when it began.",
        "",
        "| | " + " | ".join(columns.values()) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for scenario in document["scenarios"]:
        lowest = {peer: min(runs) for peer, runs in scenario["cpu_us"].items()}
        cells = [f"{lowest['bare']:.2f} µs"]
        cells += [
            f"{lowest[p] / lowest['bare']:.2f}×" if p in lowest else "–" for p in columns if p != "bare"
        ]
        later = scenario.get("measured")  # a row that was measured again, in a run of its own
        when = f" (again {later['date']}, load {later['load']})" if later else ""
        lines.append(f"| {scenario['title']}{when} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


SUMMARY = {
    "thin": "3 models, 85-byte messages",
    "many": "500 models, 20 classes",
    "everything": "everything on, 6 models",
}
"""Rows of the README by scenario."""
STEADY = "the third and later millions of {}"
SUMMARY_PEERS = ("daemon", "durable", "quix")


def summary(document: dict[str, Any]) -> str:
    """A few lines for the README: CPU as multiples of the bare aiokafka loop in the same run.

    The last line is that of the row, of all, in which the daemon takes the largest multiple.
    """
    scenarios = document["scenarios"]
    shown = [(SUMMARY[each["name"]], each) for each in scenarios if each["name"] in SUMMARY]
    steady = document.get("steady", {"scenarios": []})["scenarios"]
    shown += [(STEADY.format(SUMMARY[each["name"]]), each) for each in steady if each["name"] in SUMMARY]
    rows = [*scenarios, *steady]
    worst = max(rows, key=lambda scenario: max(map(partial(_multiple, scenario), DAEMONS)))
    shown.append((f"worst of {len(rows)} rows: {worst['title']}", worst))
    lines = ["| | " + " | ".join(COLUMNS[peer] for peer in SUMMARY_PEERS) + " |", "|---|---|---|---|"]
    for title, scenario in shown:
        cells = [
            f"{_multiple(scenario, peer):.2f}×" if peer in scenario["cpu_us"] else "–"
            for peer in SUMMARY_PEERS
        ]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _multiple(scenario: dict[str, Any], peer: str) -> float:
    """Multiple of the bare loop that a peer took; 0 where it was not run."""
    runs = scenario["cpu_us"]
    return min(runs[peer]) / min(runs["bare"]) if peer in runs else 0.0


def with_table(text: str, table: str) -> str:
    """The page with another table between its marks."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table + END + rest.split(END)[1]


def main() -> None:
    document = json.loads(MEASURED.read_text())
    if "--write" in sys.argv[1:]:
        PAGE.write_text(with_table(PAGE.read_text(), markdown(document)))
        README.write_text(with_table(README.read_text(), summary(document)))
    else:
        print(markdown(document), end="")


if __name__ == "__main__":
    main()
