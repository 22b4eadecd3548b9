"""`streamwatch lab random-alarms`: false alarms that raise accuracy."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from streamwatch.cli.lab.experiment import Figures, Markdown, Recording, Reduced, Seed, show


def random_alarms(
    *,
    recording: Recording = None,
    seed: Seed = 1,
    reduced: Reduced = False,
    figures: Figures = None,
    as_markdown: Markdown = False,
) -> None:
    """Show that false alarms raise accuracy on labels that come in runs, so accuracy cannot rank detectors.

        streamwatch lab random-alarms --recording answers.csv

    Only the labels of the recording are used, in y_true. Source: Žliobaitė et
    al. 2015, §5.2 and §6.9.
    """
    from streamwatch.lab.experiments.random_alarms import KIND

    show(KIND, seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown, recording=recording)
