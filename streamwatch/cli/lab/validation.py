"""`streamwatch lab validation`: validation schemes and tests."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from streamwatch.cli.lab.experiment import Figures, Markdown, Reduced, Seed, show


def validation(
    *,
    seed: Seed = 1,
    reduced: Reduced = False,
    figures: Figures = None,
    as_markdown: Markdown = False,
) -> None:
    """Count how often statistical tests call two classifiers different, by validation scheme.

    The result is why the daemon tests over folds and treats McNemar's test as
    descriptive:

        streamwatch lab validation

    Source: Bifet et al. 2015, §3 and §4, Tables 1 and 2.
    """
    from streamwatch.lab.experiments.validation import KIND

    show(KIND, seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown)
