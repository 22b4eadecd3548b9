"""What was tuned, as tables for a person."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from streamwatch.lab.tuning.advice import TunedModel
from streamwatch.lab.tuning.promise import RISES, Advice
from streamwatch.lab.tuning.rates import CONFIDENCE


def print_tuned(tuned: Sequence[TunedModel], console: Console) -> None:
    """Write a table for every model, and why there is none of a detector."""
    for model in tuned:
        console.print(f"{model.model}: {model.outcomes:,} outcomes, error {model.error:.4f}", highlight=False)
        if model.advices:
            console.print(_table(model))
        for why in model.refusals:
            console.print(f"  no promise: {why}", soft_wrap=True, highlight=False)


def _table(model: TunedModel) -> Table:
    table = Table(title=f"promised: at most one false alarm in {model.outcomes_per_alarm:,.0f} outcomes")
    table.add_column("detector")
    table.add_column("set")
    table.add_column(f"outcomes a false alarm\nexpected ({CONFIDENCE:.0%} interval)", justify="right")
    for drop in RISES:
        table.add_column(f"seen after a drop\nof {drop * 100:.0f} points", justify="right")
    for advice in model.advices:
        table.add_row(
            advice.kind,
            f"{advice.parameter}: {advice.value:.4g}",
            f"{_outcomes(advice.rate)} ({_outcomes(advice.high)}-{_outcomes(advice.low)})",
            *(_seen(advice, drop) for drop in RISES),
        )
    return table


def _outcomes(rate: float) -> str:
    """Outcomes per alarm, to three digits."""
    if rate <= 0.0:
        return "∞"
    outcomes = 1.0 / rate
    return f"{round(outcomes, 2 - math.floor(math.log10(outcomes))):,.0f}"


def _seen(advice: Advice, drop: float) -> str:
    """Median delay in outcomes, with the share seen where that is not all."""
    for delay in advice.delays:
        if delay.drop == drop:
            if math.isinf(delay.median):
                return f"{delay.seen:.0%} seen"
            return f"{delay.median:,.0f}" + ("" if delay.seen == 1.0 else f" ({delay.seen:.0%} seen)")
    return "-"
