"""Expected false alarms of a detector at a model's rate, error and dependence of losses.

The rates were measured on losses that do not change (`python -m tests.calibration.false_alarm_rates`): ten
million outcomes for each error and correlation, where a loss is the same as the one before with probability ρ
and else drawn anew. They are those of detectors at their default parameters; of others nothing is known
without a recording (`streamwatch tune`). A cycle in the error raises more alarms than the correlation of a
loss with the one before implies.
"""

from __future__ import annotations

from bisect import bisect_left
from math import exp, log
from typing import Final

from streamwatch.core.specs import DAY_MS, AdwinDriftSpec, DetectorSpec, PageHinkleySpec

MONTH_MS: Final = 30 * DAY_MS
ERRORS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
CORRELATIONS: Final = (0.0, 0.2, 0.5, 0.8)
LEAST: Final = 0.03
"""Alarms in 100,000 outcomes that a measurement without an alarm leaves possible, with 95 % confidence."""
RATES: Final[dict[DetectorSpec, tuple[tuple[float, ...], ...]]] = {
    PageHinkleySpec(): (
        (0.00, 0.00, 0.00, 0.16, 1.27, 2.89, 4.27),
        (0.00, 0.00, 0.00, 0.05, 0.65, 1.49, 2.54),
        (0.00, 0.00, 0.00, 0.00, 0.13, 0.37, 0.80),
        (0.00, 0.01, 0.00, 0.00, 0.00, 0.03, 0.06),
    ),
    AdwinDriftSpec(): (
        (0.06, 0.09, 0.08, 0.19, 0.27, 0.20, 0.31),
        (0.15, 0.15, 0.22, 0.21, 0.18, 0.20, 0.25),
        (0.43, 0.31, 0.23, 0.19, 0.22, 0.13, 0.14),
        (1.06, 0.88, 0.43, 0.29, 0.17, 0.22, 0.19),
    ),
}
"""False alarms in 100,000 outcomes by correlation, then by error."""
SHORTEST_MS: Final = 3_600_000
"""Time for which a model must have been watched before its rate of outcomes is taken for that of a month."""


def rate(spec: DetectorSpec, error: float, correlation: float) -> float | None:
    """Look up the false alarms in 100,000 outcomes of a detector.

    Between the errors and correlations that were measured, logarithms are interpolated; outside of the
    measured errors the nearest is taken, and a negative correlation is taken for none. Where no alarm was
    seen, it is `LEAST`.

    Parameters
    ----------
    spec
        The detector; its name does not matter.
    error
        Mean loss of the model in [0, 1].
    correlation
        Of a loss with the one before.

    Returns
    -------
    None if the detector does not have its default parameters, if the correlation is above .8, or if either
    number is undefined (NaN).
    """
    table = next((rows for known, rows in RATES.items() if _is(spec, known)), None)
    if table is None or not error >= 0.0 or not correlation <= CORRELATIONS[-1]:
        return None
    i, part = _between(CORRELATIONS, correlation)
    j, share = _between(ERRORS, error)
    corners = (
        ((1.0 - part) * (1.0 - share), table[i][j]),
        ((1.0 - part) * share, table[i][j + 1]),
        (part * (1.0 - share), table[i + 1][j]),
        (part * share, table[i + 1][j + 1]),
    )
    return exp(sum(weight * log(max(value, LEAST)) for weight, value in corners))


def _is(spec: DetectorSpec, known: DetectorSpec) -> bool:
    """Whether a detector is one of those measured, whatever it is called."""
    fields = [name for name in known.__dataclass_fields__ if name != "name"]
    return type(spec) is type(known) and all(getattr(spec, name) == getattr(known, name) for name in fields)


def _between(grid: tuple[float, ...], value: float) -> tuple[int, float]:
    """Index of the grid's entry before a value, and the fraction of the way to the next one."""
    inside = min(max(value, grid[0]), grid[-1])
    i = min(max(bisect_left(grid, inside) - 1, 0), len(grid) - 2)
    return i, (inside - grid[i]) / (grid[i + 1] - grid[i])


def monthly(
    spec: DetectorSpec, error: float, correlation: float, outcomes: int, span_ms: int
) -> float | None:
    """Estimate the false alarms that a detector raises in 30 days.

    Parameters
    ----------
    spec, error, correlation
        As of `rate`.
    outcomes
        Number of the model's outcomes.
    span_ms
        Event time in which they came.

    Returns
    -------
    None where the rate is not known, or if the outcomes came within less than `SHORTEST_MS`.
    """
    found = rate(spec, error, correlation)
    if found is None or span_ms < SHORTEST_MS:
        return None
    return found / 1e5 * outcomes * MONTH_MS / span_ms


def in_words(expected: float) -> str:
    """Write a number of alarms in 30 days in words, as `about 3 a month`."""
    for number, unit in ((expected / 30.0, "day"), (expected, "month"), (expected * 365.0 / 30.0, "year")):
        if number >= 0.95:
            return f"about {number:,.0f} a {unit}"
    return "less than 1 a year"
