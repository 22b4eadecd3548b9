"""`streamwatch lab windows`: windows, factors and ADWIN."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from streamwatch.cli.lab.experiment import Figures, Markdown, Recording, Reduced, Seed, show


def windows(
    *,
    recording: Recording = None,
    seed: Seed = 1,
    reduced: Reduced = False,
    figures: Figures = None,
    as_markdown: Markdown = False,
) -> None:
    """Measure how far windows, fading factors and ADWIN are from a known error.

    Find out which forgetting suits which pace of change:

        streamwatch lab windows --figures pictures

    Compare windows with ADWIN on recorded predictions, too (a CSV with the
    labels in y_true and a column of predictions per classifier):

        streamwatch lab windows --recording answers.csv

    Sources: Gama, Sebastião, Rodrigues 2009, §3.2.1; Bifet et al. 2015, §6.
    """
    from streamwatch.lab.experiments.windows import KIND

    show(KIND, seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown, recording=recording)
