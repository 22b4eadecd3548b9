"""The table in docs/speed.md, from docs/speed.json.

python -m tests.bench.peers.table [--write]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

MEASURED = Path("docs/speed.json")
PAGE = Path("docs/speed.md")
BEGIN, END = "<!-- made of speed.json: begin -->\n", "<!-- made of speed.json: end -->\n"
COLUMNS = {
    "bare": "bare aiokafka + msgspec",
    "confluent": "bare confluent-kafka + msgspec",
    "daemon": "state in memory",
    "durable": "state on disk",
    "by_id": "on disk, row by row",
    "quix": "Quix Streams 3 + river",
}


def markdown(document: dict[str, Any]) -> str:
    """A line for each scenario: CPU beside that of the bare aiokafka loop in the same run."""
    about = document["machine"]
    host = f"{about['processor']}, {about['cores']} cores, Python {about['python']}, {document['broker']}"
    lines = [
        f"Measured {document['date']} on {host}, load {about['load']} when it began.",
        "",
        "| | " + " | ".join(COLUMNS.values()) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
    ]
    for scenario in document["scenarios"]:
        lowest = {peer: min(runs) for peer, runs in scenario["cpu_us"].items()}
        cells = [f"{lowest['bare']:.2f} µs"]
        cells += [
            f"{lowest[p] / lowest['bare']:.2f}×" if p in lowest else "–" for p in COLUMNS if p != "bare"
        ]
        lines.append(f"| {scenario['title']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def page(text: str, document: dict[str, Any]) -> str:
    """The page with the table of this document."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + markdown(document) + END + rest.split(END)[1]


def main() -> None:
    document = json.loads(MEASURED.read_text())
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(PAGE.read_text(), document))
    else:
        print(markdown(document), end="")


if __name__ == "__main__":
    main()
