"""Series of comparisons, labelled by challenger and champion."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.comparisons.measures import MEASURES
from streamwatch.core.estimators.comparisons.table import ComparisonTable
from streamwatch.core.metrics import family
from streamwatch.core.series import Family

Pair = tuple[str, str]


def report(pairs: Sequence[Pair], rows: NDArray[np.int64], table: ComparisonTable) -> list[Family]:
    """Collect the series of comparisons; undefined values give no sample.

    Parameters
    ----------
    pairs
        (challenger, champion), in the order of the series' labels.
    rows
        Rows of the comparisons in the table.
    table
        State of the comparisons.
    """
    said = table.verdicts(rows)
    per_forgetting = [(f.name, table.sums(rows, index)) for index, f in enumerate(table.forgetting)]
    families = [
        family("comparison_pairs_total", _defined(pairs, table.pairs(rows))),
        family("comparison_last_pair_timestamp_seconds", _defined(pairs, table.last_seconds(rows))),
    ]
    for measure in MEASURES:
        of_all = ((name, measure.of(sums)) for name, sums in per_forgetting)
        samples = [sample for name, values in of_all for sample in _defined(pairs, values, name)]
        families.append(family(measure.name, samples))
    worth = [sample for name, sums in per_forgetting for sample in _defined(pairs, sums.n_eff, name)]
    families.append(family("comparison_effective_sample_size", worth))
    for name, values in (
        ("comparison_verdict", said.verdict),
        ("comparison_verdict_since_timestamp_seconds", said.since_seconds),
        ("comparison_verdict_since_pair", said.since),
        ("comparison_lead", said.lead),
        ("comparison_lead_lower", said.lower),
        ("comparison_lead_upper", said.upper),
        ("comparison_lead_dispersion", said.dispersion),
    ):
        families.append(family(name, _defined(pairs, values[0])))
    evidence = [*_defined(pairs, said.better[0], "better"), *_defined(pairs, said.worse[0], "worse")]
    families.append(family("comparison_verdict_evidence", evidence))
    return families


TRACED = ["champion", "challenger", "pair", "y_true", "champion_pred", "challenger_pred"]
"""Columns that identify the pair in a trace of pairs."""
_SAID = (
    "comparison_verdict",
    "comparison_verdict_since_timestamp_seconds",
    "comparison_verdict_since_pair",
    "comparison_lead",
    "comparison_lead_lower",
    "comparison_lead_upper",
    "comparison_verdict_evidence:better",
    "comparison_verdict_evidence:worse",
    "comparison_lead_dispersion",
)
"""Columns of the verdict, in the order of the fields of `Verdicts`."""


def trace_columns(table: ComparisonTable) -> list[str]:
    """Names of the columns of `traced`: those of the series, without the names of the models."""
    names = [*(measure.name for measure in MEASURES), "comparison_effective_sample_size"]
    return [*(f"{name}:{f.name}" for f in table.forgetting for name in names), *_SAID]


def traced(row: NDArray[np.int64], table: ComparisonTable) -> list[float | None]:
    """Current values of the comparison in `row`, an array of shape (1,); None where undefined."""
    values: list[float] = []
    for index in range(len(table.forgetting)):
        sums = table.sums(row, index)
        values += [float(measure.of(sums)[0]) for measure in MEASURES]
        values.append(float(sums.n_eff[0]))
    values += [float(said[0, 0]) for said in table.verdicts(row)]
    return [None if math.isnan(value) else value for value in values]


def _defined(
    pairs: Sequence[Pair], values: NDArray[np.generic], *more: str
) -> list[tuple[tuple[str, ...], float]]:
    """Build a sample for each pair whose value is not NaN.

    `more` are the values of labels sorted after theirs.
    """
    numbers = values.tolist()
    return [((*pair, *more), v) for pair, v in zip(pairs, numbers, strict=True) if v == v]  # noqa: PLR0124
