"""The one table of metrics: all that are not derived from the catalogue of estimators, by section."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamwatch.core.metrics.alarms import ALARMS
from streamwatch.core.metrics.comparisons import COMPARISONS
from streamwatch.core.metrics.daemon import DAEMON
from streamwatch.core.metrics.join import JOIN
from streamwatch.core.metrics.merge import MERGE
from streamwatch.core.metrics.process import PROCESS
from streamwatch.core.metrics.results import RESULTS
from streamwatch.core.metrics.state import STATE
from streamwatch.core.series import Family, Histogram

SECTIONS: Final = (ALARMS, JOIN, COMPARISONS, MERGE, STATE, DAEMON, PROCESS, RESULTS)
_BY_NAME: Final = {metric.name: metric for section in SECTIONS for metric in section}


def family(name: str, samples: Sequence[tuple[tuple[str, ...], float | Histogram]]) -> Family:
    """Make samples the series of a metric of the table; raises KeyError for any other."""
    metric = _BY_NAME[name]
    return Family(metric.name, metric.kind, metric.help, metric.labels, samples)


def single(name: str, value: float | None) -> Family:
    """Make a value the one series of a metric without labels; None is undefined and gives no sample."""
    return family(name, [] if value is None else [((), value)])
