"""`streamwatch lab comparison`: Q and McNemar of two learners."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from streamwatch.cli.lab.experiment import Figures, Markdown, Reduced, Seed, show


def comparison(
    *,
    seed: Seed = 1,
    reduced: Reduced = False,
    figures: Figures = None,
    as_markdown: Markdown = False,
) -> None:
    """Follow the Q statistic and McNemar's test of two learners over time, under several forgettings.

    One learner never forgets, the other one restarts at every alarm, while the
    SEA concepts change three times:

        streamwatch lab comparison --figures pictures

    Source: Gama, Sebastião, Rodrigues 2009, §3.3, Figures 4 to 7.
    """
    from streamwatch.lab.experiments.comparison import KIND

    show(KIND, seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown)
