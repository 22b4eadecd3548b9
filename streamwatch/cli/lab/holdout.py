"""`streamwatch lab holdout`: Holdout beside prequential error."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from streamwatch.cli.lab.experiment import Figures, Markdown, Reduced, Seed, show


def holdout(
    *,
    seed: Seed = 1,
    reduced: Reduced = False,
    figures: Figures = None,
    as_markdown: Markdown = False,
) -> None:
    """Compare the error of a holdout set with prequential errors that do and do not forget.

    An estimate that remembers everything stays above the current error; faded
    and sliding estimates converge to it:

        streamwatch lab holdout

    Take seconds only, and draw the learning curves:

        streamwatch lab holdout --reduced --figures pictures

    Source: Gama, Sebastião, Rodrigues 2009, §3.2.1.
    """
    from streamwatch.lab.experiments.holdout import KIND

    show(KIND, seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown)
