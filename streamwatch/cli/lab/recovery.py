"""`streamwatch lab recovery`: recovery analysis."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from streamwatch.cli.lab.experiment import Figures, Markdown, Reduced, Seed, show


def recovery(
    *,
    seed: Seed = 1,
    reduced: Reduced = False,
    figures: Figures = None,
    as_markdown: Markdown = False,
) -> None:
    """Measure how far learners fall at a known change, and how long they take to recover.

        streamwatch lab recovery --figures pictures

    Sources: Brzezinski, Stefanowski, §1; Cervantes et al., §2.4.
    """
    from streamwatch.lab.experiments.recovery import KIND

    show(KIND, seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown)
