"""Advice on the detector to set, from the histories of all models: the strictest threshold that one needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from streamwatch.core.specs import DAY_MS
from streamwatch.edge.yaml_text import block
from streamwatch.history.tuning.history import CannotPromise, History, Unfit
from streamwatch.history.tuning.promise import CONFIDENCE, RISES, TUNED, Advice, advise

COMPARED_DROP = 0.05
"""Drop of the accuracy by whose delay detectors are compared."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Promised rate of false alarms, and the kinds of detectors to tune."""

    kinds: Sequence[str]
    every_ms: int
    """Time in which a model has at most one false alarm, in milliseconds."""
    outcomes_per_day: float | None
    """Outcomes of a model per day; None: as in its history."""
    seed: int


@dataclass(frozen=True, slots=True)
class TunedModel:
    """Result of tuning on one model."""

    model: str
    outcomes: int
    error: float
    """Mean loss; NaN without outcomes."""
    outcomes_per_alarm: float | None
    """Promise in outcomes per false alarm; None if the traffic is unknown."""
    advices: tuple[Advice, ...]
    refusals: tuple[str, ...]
    """Reasons why there is no advice, or none on a kind of detector."""


def tuned_models(histories: Mapping[str, History | Unfit], wanted: Wanted) -> list[TunedModel]:
    """Tune every kind of detector on every history; equal seeds give equal results."""
    return [
        TunedModel(model, history.outcomes, history.error, None, (), (history.why,))
        if isinstance(history, Unfit)
        else _tuned(model, history, wanted)
        for model, history in histories.items()
    ]


def _tuned(model: str, history: History, wanted: Wanted) -> TunedModel:
    n = len(history.losses)
    error = float(history.losses.mean()) if n else float("nan")
    traffic = wanted.outcomes_per_day or history.outcomes_per_day
    if not n or traffic is None:
        why = "the recording has no times to count the traffic by; give it with --traffic"
        if not n:
            why = "no outcome lies between --since and --until"
        return TunedModel(model, n, error, None, (), (why,))
    promise = traffic * wanted.every_ms / DAY_MS
    advices: list[Advice] = []
    refusals: list[str] = []
    for kind in wanted.kinds:
        try:
            rng = np.random.default_rng(wanted.seed)
            advices.append(advise(kind, TUNED[kind], history.losses, promise, rng))
        except CannotPromise as why:
            refusals.append(str(why))
    return TunedModel(model, n, error, promise, tuple(advices), tuple(dict.fromkeys(refusals)))


@dataclass(frozen=True, slots=True)
class Best:
    """Detector to set for all models."""

    advice: Advice
    """Advice for the model that needs the strictest threshold."""
    models: tuple[str, ...]
    """Models for which the promise is kept."""


def best_of(tuned: Sequence[TunedModel]) -> Best | None:
    """Choose the detector that finds a drop of 5 points soonest; None if nothing could be promised.

    Settings apply to all models, so each detector has the strictest threshold that one of them needs. Only
    detectors that were tuned for the largest number of models are considered.
    """
    able = [model for model in tuned if model.advices]
    if not able:
        return None
    by_kind: dict[str, list[Advice]] = {}
    for model in able:
        for advice in model.advices:
            by_kind.setdefault(advice.kind, []).append(advice)
    most = max(map(len, by_kind.values()))
    strictest = [max(advices, key=_strictness) for advices in by_kind.values() if len(advices) == most]
    chosen = min(strictest, key=_delay)
    models = tuple(m.model for m in able if any(a.kind == chosen.kind for a in m.advices))
    return Best(chosen, models)


def _strictness(advice: Advice) -> float:
    rising = TUNED[advice.kind].value(2.0) > TUNED[advice.kind].value(1.0)
    return advice.value if rising else -advice.value


def _delay(advice: Advice) -> float:
    return next((d.median for d in advice.delays if d.drop == COMPARED_DROP), float("inf"))


def document(best: Best, every: str) -> str:
    """Write the settings of the detector as YAML, with the promise as comments."""
    advice = best.advice
    base = TUNED[advice.kind].base
    changed: dict[str, Any] = {
        f.name: getattr(advice.spec, f.name)
        for f in fields(advice.spec)
        if getattr(advice.spec, f.name) != getattr(base, f.name)
    }
    entry = {advice.kind: changed} if changed else advice.kind
    settings = block({"monitors": {"detectors": [entry]}})
    promised = f"one in {1 / advice.high:,.0f} or more outcomes; none was seen in {advice.simulated:,}"
    if advice.low > 0.0:
        promised = (
            f"one in {1 / advice.high:,.0f} to {1 / advice.low:,.0f} outcomes ({CONFIDENCE:.0%} interval)"
        )
    models = ", ".join(best.models)
    return f"# At most one false alarm of a model in {every} ({models}):\n# {promised}.\n{settings}"


# Output of the results, as tables for a person.


def print_tuned(tuned: Sequence[TunedModel], console: Console) -> None:
    """Print a table for every model, and the reasons for missing advice."""
    for model in tuned:
        counted = f"{model.model}: {model.outcomes:,} outcomes, error {model.error:.4f}"
        console.print(counted, soft_wrap=True, highlight=False, markup=False)
        if model.advices:
            console.print(_table(model))
        for why in model.refusals:
            console.print(f"  no promise: {why}", soft_wrap=True, highlight=False, markup=False)


def _table(model: TunedModel) -> Table:
    table = Table(title=f"promised: at most one false alarm in {model.outcomes_per_alarm:,.0f} outcomes")
    table.add_column("detector")
    table.add_column("set")
    table.add_column(f"outcomes a false alarm\n({CONFIDENCE:.0%} interval)", justify="right")
    for drop in RISES:
        table.add_column(f"seen after a drop\nof {drop * 100:.0f} points", justify="right")
    for advice in model.advices:
        table.add_row(
            advice.kind,
            f"{advice.parameter}: {advice.value:.4g}",
            f"{_outcomes(advice.high)}-{_outcomes(advice.low)}",
            *(_seen(advice, drop) for drop in RISES),
        )
    return table


def _outcomes(rate: float) -> str:
    """Format a rate as outcomes per alarm, to three digits."""
    if rate <= 0.0:
        return "∞"
    outcomes = 1.0 / rate
    return f"{round(outcomes, 2 - math.floor(math.log10(outcomes))):,.0f}"


def _seen(advice: Advice, drop: float) -> str:
    """Format the median delay in outcomes, with the share of drops found if not all were."""
    for delay in advice.delays:
        if delay.drop == drop:
            if math.isinf(delay.median):
                return f"{delay.seen:.0%} seen"
            return f"{delay.median:,.0f}" + ("" if delay.seen == 1.0 else f" ({delay.seen:.0%} seen)")
    return "-"
