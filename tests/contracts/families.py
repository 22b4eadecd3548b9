"""All that a scrape can hold."""

from __future__ import annotations

from docs.reference.generate import sections
from streamwatch.core.metrics.series import Family


def every_family() -> list[Family]:
    """All that a scrape can hold, without samples."""
    return [
        Family(m.name, m.kind, m.help, m.labels, (), m.bounds) for _, metrics in sections() for m in metrics
    ]
