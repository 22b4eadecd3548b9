"""`streamwatch lab optimal`: optimal errors of the testbed."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from streamwatch.cli.lab.experiment import Figures, Markdown, Reduced, Seed, show


def optimal(
    *,
    seed: Seed = 1,
    reduced: Reduced = False,
    figures: Figures = None,
    as_markdown: Markdown = False,
) -> None:
    """Measure the errors of the testbed's optimal classifiers and compare them with the paper's.

        streamwatch lab optimal --figures pictures

    Source: Cervantes, Gagné, Isasi, Parizeau, Table 3.
    """
    from streamwatch.lab.experiments.optimal import KIND

    show(KIND, seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown)
