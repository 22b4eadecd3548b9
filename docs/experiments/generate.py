"""Write docs/evidence/papers, docs/papers.md and docs/testbed.md from what `streamwatch.papers` finds.

python -m docs.experiments.generate [--seed N]      write all pages and the pictures (minutes)
python -m docs.experiments.generate --only NAME     write one experiment's page anew, or docs/testbed.md
"""

# ruff: noqa: INP001  # a script, beside what it writes
from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from streamwatch.papers.catalogue import KINDS as EXPERIMENTS
from streamwatch.papers.result import Effort, Experiment, Figure, Line, Panel, draw_figure, markdown
from streamwatch.papers.streams.gaussians import draw
from streamwatch.papers.streams.testbed import KINDS, StreamKind

DOCS = Path(__file__).parents[1]
MOA = DOCS.parent / ".cache" / "moa" / "libs"
"""Where `make bench` and the golden tables of detectors put MOA; without it the page has river's alone."""
ELEC2 = DOCS.parent / "tests" / "golden" / "elec2_predictions.csv.gz"
HEAD = "<!-- Made by `make papers`. -->\n"
EVIDENCE = DOCS / "evidence" / "papers"
"""A page for each experiment, so that one can be made anew."""


def main() -> None:
    """Write what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["testbed", *(kind.name for kind in EXPERIMENTS)])
    asked = parser.parse_args()
    for kind in EXPERIMENTS:
        if asked.only in {None, kind.name}:
            write_page(kind, asked.seed)
    (DOCS / "papers.md").write_text(papers_page(), encoding="utf-8")
    if asked.only in {None, "testbed"}:
        (DOCS / "testbed.md").write_text(testbed_page(), encoding="utf-8")


def write_page(kind: Experiment, seed: int) -> None:
    """Run one experiment at full size; write its page and its pictures."""

    def progress(what: str) -> None:
        sys.stderr.write(f"\r\x1b[K{what}")

    result = kind.run(Effort(seed, recording=ELEC2, progress=progress, moa=MOA if MOA.is_dir() else None))
    progress("")
    source = f"{kind.source}. `python -m streamwatch.papers {kind.name}`, seed {seed}"
    lines = [HEAD, f"# {kind.title}", "", source, ""]
    for table in result.tables:
        lines += [markdown(table)]
    for figure in result.figures:
        draw_figure(figure, DOCS / "pictures" / "papers")
        lines += [f"![{figure.title}](../../pictures/papers/{figure.name}.png)", ""]
    text = "\n".join(lines).rstrip("\n")
    (EVIDENCE / f"{kind.name}.md").write_text(f"{text}\n", encoding="utf-8")


def papers_page() -> str:
    """What came out of every experiment, with a link to its page."""
    lines = [
        HEAD,
        "# The papers' experiments",
        "",
        (
            "The methods of streamwatch come from research papers. These pages repeat the experiments of "
            "those papers with the daemon's own estimators and compare the results with the published "
            "ones, so you can judge whether the methods are implemented correctly and what to expect of "
            "them."
        ),
        "",
        "| experiment | paper | what came out |",
        "|---|---|---|",
        *(
            f"| [{kind.title}](evidence/papers/{kind.name}.md) | {kind.source} | {kind.finding} |"
            for kind in EXPERIMENTS
        ),
        "",
        (
            "Each experiment is a command, named below its title; with `--reduced`, it takes seconds. "
            "Numbers are means over runs ± their standard error. In the tables, *paper* is the published "
            "value and *found* is ours. `make papers` writes these pages. The benchmark of drift detectors "
            "has [a page of its own](detector-benchmark.md)."
        ),
    ]
    return "\n".join(lines) + "\n"


def testbed_page() -> str:
    """A card for every stream of the testbed."""
    lines = [
        HEAD,
        "# The testbed",
        "",
        (
            "The testbed has nine streams that drift in known ways, by Cervantes, Gagné, Isasi and "
            "Parizeau. The optimal classifier of every instance is known, so you can use them to test "
            "classifiers and drift detectors. `python -m streamwatch.papers testbed NSGT -o nsgt.csv` writes "
            "one of them, from a seed and of any length."
        ),
        "",
        (
            "A *lap* of 10,000 instances is the paper's stream; after it, the stream starts again from the "
            "beginning. The pictures show two hundred instances each from the beginning, a quarter, the "
            "middle and the end of a lap, on one scale. The *optimal error* is that of the optimal "
            "classifier, and the *stale error* that of the classifier that was optimal at the first "
            "instance and never changed."
        ),
        "",
    ]
    for kind in KINDS:
        lines += card(kind)
    return "\n".join(lines)


def card(kind: StreamKind) -> list[str]:
    """What drifts in a stream, how fast, and a picture."""
    mixture, lap = kind.mixture, kind.mixture.lap
    drawn = [draw(mixture, lap, seed) for seed in range(10)]
    optimal = 100.0 * np.array([each.optimal_risk.mean() for each in drawn])
    begin = np.zeros(lap, np.int64)
    answers = [mixture.posterior(begin, each.x).argmax(axis=1) for each in drawn]
    wrong = np.array([predicted != each.true_class for predicted, each in zip(answers, drawn, strict=True)])
    stale, last = 100 * wrong.mean(), 100 * wrong[:, -1_000:].mean()
    centres = mixture.at(np.arange(lap)).centre
    speed = np.linalg.norm(np.diff(centres, axis=0), axis=2)
    slow = speed[speed.max(axis=1) < 1.0]
    panels = tuple(
        Panel(
            f"instances {at:,} to {at + 199:,}",
            "x1",
            "x2",
            tuple(
                Line(label, *_points(drawn[0].x, drawn[0].true_class, k, at), dots=True)
                for k, label in enumerate(mixture.labels)
            ),
        )
        for at in (0, lap // 4 - 100, lap // 2 - 100, lap - 200)
    )
    name = kind.name.lower().replace("-", "_")
    draw_figure(
        Figure(name, f"{kind.name}: {len(mixture.labels)} classes", panels, beside=True),
        DOCS / "pictures" / "testbed",
    )
    changes = ", ".join(f"{change:,}" for change in kind.changes) or "none"
    return [
        f"## {kind.name}",
        "",
        "| | |",
        "|---|---|",
        f"| drifts | {kind.drifts} |",
        f"| requires | {kind.asks} |",
        f"| attributes | {mixture.dimensions} |",
        f"| sudden changes within a lap | {changes} |",
        f"| distance the fastest centre moves in 1,000 instances | {1_000 * slow.max(initial=0.0):.2f} |",
        f"| optimal error, ten streams | {optimal.mean():.2f} % (paper: {kind.printed_optimal:.2f} %) |",
        f"| stale error, whole lap; last 1,000 | {stale:.1f} %; {last:.1f} % |",
        f"| paper | §{kind.section} |",
        "",
        f"![{kind.name} at four times of a lap](pictures/testbed/{name}.png)",
        "",
    ]


def _points(x: np.ndarray, true_class: np.ndarray, k: int, at: int) -> tuple[np.ndarray, np.ndarray]:
    here = np.flatnonzero(true_class[at : at + 200] == k) + at
    return x[here, 0], x[here, 1]


if __name__ == "__main__":
    main()
