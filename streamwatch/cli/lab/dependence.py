"""`streamwatch lab dependence`: labels that come in runs."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from streamwatch.cli.lab.experiment import Figures, Markdown, Recording, Reduced, Seed, show


def dependence(
    *,
    recording: Recording = None,
    seed: Seed = 1,
    reduced: Reduced = False,
    figures: Figures = None,
    as_markdown: Markdown = False,
) -> None:
    """Evaluate recorded classifiers on temporally dependent labels, as recorded and shuffled.

    A recording is a CSV with the labels in y_true and a column of predictions
    per classifier:

        streamwatch lab dependence --recording answers.csv --figures pictures

    The gains by temporal correction and augmentation are also measured on
    synthetic labels of known dependence. Source: Žliobaitė et al. 2015, §6.
    """
    from streamwatch.lab.experiments.dependence import KIND

    show(KIND, seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown, recording=recording)
