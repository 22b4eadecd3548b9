"""The README's table of metrics, made from the one table in `streamwatch.core.metrics`.

python -m tests.contracts.readme_metrics            print it
python -m tests.contracts.readme_metrics --write    put it between the markers in README.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from streamwatch.core.estimators import catalogue
from streamwatch.core.metrics import ALARMS, COMPARISONS, DAEMON, JOIN, MERGE, PROCESS, STATE, Metric
from streamwatch.core.series import PREFIX, Family

README = Path(__file__).parents[2] / "README.md"
DECAY = "decay is per outcome, not per second"
BEGIN, END = "<!-- metrics:begin -->", "<!-- metrics:end -->"


def every_family() -> list[Family]:
    """All that a scrape can hold, without samples."""
    return [Family(m.name, m.kind, m.help, m.labels, ()) for _, metrics in sections() for m in metrics]


def sections() -> Sequence[tuple[str, Sequence[Metric]]]:
    """All metrics, by what they are about."""
    return (
        ("Per model", catalogue.metrics()),
        ("Comparisons of two models", COMPARISONS),
        ("Alarms and notifications", ALARMS),
        ("Join of predictions and labels", JOIN),
        ("One clock and one order", MERGE),
        ("State and its commits", STATE),
        ("The daemon itself", DAEMON),
        ("The process (without the prefix)", PROCESS),
    )


def table() -> str:
    """The tables, one per section."""
    names = f"Names start with `{PREFIX}`, but for those of the process."
    lines = [f"{names} Under a `forgetting`, decay is per outcome, not per second."]
    for title, metrics in sections():
        lines += ["", f"**{title}**", "", "| metric | type | labels | meaning |", "|---|---|---|---|"]
        lines += _rows(metrics)
    return "\n".join(lines) + "\n"


def _rows(metrics: Iterable[Metric]) -> list[str]:
    return [
        f"| `{metric.name}` | {metric.kind} | {', '.join(f'`{label}`' for label in metric.labels)} "
        f"| {_cell(metric.help)} |"
        for metric in metrics
    ]


def _cell(text: str) -> str:
    for stated_above in (f"; {DECAY})", f" ({DECAY})"):
        text = text.replace(stated_above, ")" if stated_above.startswith(";") else "")
    text = text.removesuffix(".")
    for special in ("\\", "|", "*", "_", "<"):
        text = text.replace(special, "\\" + special)
    return text


def with_table(readme: str, new: str) -> str:
    """The README with the table between its markers replaced."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"README.md needs the lines {BEGIN} and {END} where the table of metrics goes")
    return f"{before}{BEGIN}\n{new}{END}{after}"


def main(arguments: Sequence[str]) -> None:
    """Print the table, or write it."""
    if "--write" in arguments:
        README.write_text(with_table(README.read_text(encoding="utf-8"), table()), encoding="utf-8")
    else:
        sys.stdout.write(table())


if __name__ == "__main__":
    main(sys.argv[1:])
