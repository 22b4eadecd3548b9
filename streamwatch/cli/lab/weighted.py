"""`streamwatch lab weighted`: ranking by drift-weighted accuracy."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from streamwatch.cli.lab.experiment import Figures, Markdown, Reduced, Seed, show


def weighted(
    *,
    seed: Seed = 1,
    reduced: Reduced = False,
    figures: Figures = None,
    as_markdown: Markdown = False,
) -> None:
    """Rank a quick and a slow learner by accuracy and by drift-weighted accuracy with several drift signals.

        streamwatch lab weighted --figures pictures

    Source: Brzezinski, Stefanowski, Figure 1.
    """
    from streamwatch.lab.experiments.weighted import KIND

    show(KIND, seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown)
