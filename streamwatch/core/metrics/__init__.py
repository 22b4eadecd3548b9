"""Table of all metrics: name, type, labels and help of every series.

To add a metric:

- to a part of the program: a line in its section (`JOIN`, `MERGE`, … in `of_the_daemon.py`, `COMPARISONS` and
  `ALARMS` in `of_models.py`). The part builds its series with `family(name, samples)` or
  `single(name, value)`, which take the rest from that line;
- to every model: a measure in the catalogue of estimators, which `of_models.metrics_of` turns into a metric;
- to a register of models: in the `metrics` of its `RegisterKind`;
- to a new part: a new section, listed in `SECTIONS` of `table.py`.

Metrics of models that a rule or a dashboard of `deploy/` reads are listed in `NEEDED` of `table.py`, too.
`tests/contracts/test_metrics_table.py` compares the table with the series that are exported, in both
directions; `make generated` writes the reference page.
"""

from __future__ import annotations

from streamwatch.core.metrics.metric import Metric
from streamwatch.core.metrics.of_models import (
    ALARMS,
    COMPARISONS,
    DEPTH_BOUNDS,
    LABEL_DELAY_BOUNDS,
    LENGTH_BOUNDS,
    metrics_of,
)
from streamwatch.core.metrics.of_the_daemon import DAEMON, JOIN, MERGE, PROCESS, RESULTS, STATE
from streamwatch.core.metrics.table import NEEDED, SECTIONS, family, single, with_labels

__all__ = [
    "ALARMS",
    "COMPARISONS",
    "DAEMON",
    "DEPTH_BOUNDS",
    "JOIN",
    "LABEL_DELAY_BOUNDS",
    "LENGTH_BOUNDS",
    "MERGE",
    "NEEDED",
    "PROCESS",
    "RESULTS",
    "SECTIONS",
    "STATE",
    "Metric",
    "family",
    "metrics_of",
    "single",
    "with_labels",
]
