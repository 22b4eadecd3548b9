"""`streamwatch lab imbalance`: measures of unequal classes."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from streamwatch.cli.lab.experiment import Figures, Markdown, Recording, Reduced, Seed, show


def imbalance(
    *,
    recording: Recording = None,
    seed: Seed = 1,
    reduced: Reduced = False,
    figures: Figures = None,
    as_markdown: Markdown = False,
) -> None:
    """Compare κ, κ_m, mean recalls and normalised accuracy on imbalanced classes.

        streamwatch lab imbalance --recording answers.csv --figures pictures

    The recording has the labels in y_true and a column of predictions per
    classifier. Source: Bifet et al. 2015, §5.
    """
    from streamwatch.lab.experiments.imbalance import KIND

    show(KIND, seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown, recording=recording)
