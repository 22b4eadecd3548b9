"""`streamwatch lab page-hinkley`: delays of Page-Hinkley."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from streamwatch.cli.lab.experiment import Figures, Markdown, Reduced, Seed, show


def page_hinkley(
    *,
    seed: Seed = 1,
    reduced: Reduced = False,
    figures: Figures = None,
    as_markdown: Markdown = False,
) -> None:
    """Measure the detection delay of Page-Hinkley by its fading factor, and compare it with the paper's.

        streamwatch lab page-hinkley

    Source: Gama, Sebastião, Rodrigues 2009, Table 2.
    """
    from streamwatch.lab.experiments.page_hinkley import KIND

    show(KIND, seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown)
