"""The one table of metrics: name, type, labels and help of every series there is.

A file here is what one part of the program counts. To add a metric:

- to a part: a line in the section of that part (`join.py`, `merge.py`, …). The part makes its series by
  `family(name, samples)` or `single(name, value)`, which take everything but samples from that line;
- to every model: a measure in the catalogue of estimators, whose line becomes a metric in `of_models.py`.
  What a rule or a dashboard of `deploy/` reads is listed in `needed.py`, too;
- to a register of models: in the `metrics` of its `RegisterKind`;
- a new part: a file here with its section, and that section in `SECTIONS` of `table.py`.

`tests/contracts/test_metrics_table.py` finds a name that is exported and not here, or here and not exported;
`make generated` writes the reference page.
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
