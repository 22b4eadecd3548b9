"""`streamwatch lab`: streams and experiments of the literature, a command each."""

from __future__ import annotations

import typer

from streamwatch.cli.lab import (
    classifiers,
    comparison,
    dependence,
    dependent_losses,
    detectors,
    holdout,
    imbalance,
    optimal,
    page_hinkley,
    random_alarms,
    recovery,
    testbed,
    validation,
    weighted,
    windows,
)

app = typer.Typer(
    help="Generate streams with known drifts, and repeat experiments of the literature with the daemon's own "
    "estimators.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.command("testbed")(testbed.write_stream)
app.command("holdout")(holdout.holdout)
app.command("comparison")(comparison.comparison)
app.command("page-hinkley")(page_hinkley.page_hinkley)
app.command("windows")(windows.windows)
app.command("dependence")(dependence.dependence)
app.command("random-alarms")(random_alarms.random_alarms)
app.command("dependent-losses")(dependent_losses.dependent_losses)
app.command("weighted")(weighted.weighted)
app.command("recovery")(recovery.recovery)
app.command("validation")(validation.validation)
app.command("imbalance")(imbalance.imbalance)
app.command("optimal")(optimal.optimal)
app.command("classifiers")(classifiers.classifiers)
app.command("detectors")(detectors.detectors)
