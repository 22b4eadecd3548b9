"""Expected false alarms of a detector at a model's rate, error and dependence of losses.

The rates were measured on losses that do not change (`python -m tests.calibration.false_alarm_rates`): ten
million outcomes for each error and correlation, where a loss equals the one before with probability ρ and is
drawn anew otherwise. They hold for detectors with default parameters only; `streamwatch tune` measures others
on a recording. A cycle in the error raises more alarms than the lag-1 correlation of losses implies.
"""

from __future__ import annotations

from bisect import bisect_left
from math import exp, log
from typing import Final

from streamwatch.core.specs import DAY_MS, HOUR_MS, AdwinDriftSpec, DetectorSpec, PageHinkleySpec

MONTH_MS: Final = 30 * DAY_MS
ERRORS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
CORRELATIONS: Final = (0.0, 0.2, 0.5, 0.8)
LEAST: Final = 0.03
"""Upper 95 % limit of the alarms in 100,000 outcomes if ten million outcomes raised none."""
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
SHORTEST_MS: Final = HOUR_MS
"""Shortest time span of a model's outcomes from which their monthly number is extrapolated."""


def rate(spec: DetectorSpec, error: float, correlation: float) -> float | None:
    """Look up the false alarms in 100,000 outcomes of a detector.

    Between the measured errors and correlations, the logarithm of the rate is interpolated; beyond the
    measured errors the nearest is used, and a negative correlation counts as 0. Measured rates of 0 count as
    `LEAST`.

    Parameters
    ----------
    spec
        The detector; its name does not matter.
    error
        Mean loss of the model in [0, 1].
    correlation
        Lag-1 correlation of the losses.

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
    """Tell whether two specifications are equal but for their names."""
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
        As for `rate`.
    outcomes
        Number of the model's outcomes.
    span_ms
        Event time between the first and the last of them.

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
