"""`streamwatch lab dependent-losses`: detectors on losses that depend on those before."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from streamwatch.cli.lab.experiment import Figures, Markdown, Recording, Reduced, Seed, show


def dependent_losses(
    *,
    recording: Recording = None,
    seed: Seed = 1,
    reduced: Reduced = False,
    figures: Figures = None,
    as_markdown: Markdown = False,
) -> None:
    """Run detectors on temporally dependent losses: as they are, shuffled, and corrected for dependence.

    Measure false alarms and delays where changes are known, and the alarms on
    recorded classifiers (a CSV with the labels in y_true and a column of
    predictions per classifier):

        streamwatch lab dependent-losses --recording answers.csv --figures pictures

    Source: Žliobaitė et al. 2015, §5.1 and §6.9.
    """
    from streamwatch.lab.experiments.dependent_losses.experiment import KIND

    show(KIND, seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown, recording=recording)
