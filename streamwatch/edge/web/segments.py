"""Names of models as segments of a path.

Clients take `.` and `..` out of a path however they are written, `%2E` included, before they send it. A model
of that name is asked for as `%252E` or `%252E%252E`, which arrives as `%2E`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

_WRITTEN: Mapping[str, str] = {"%2E": ".", "%2E%2E": ".."}


def named(segment: str, models: Callable[[], Container[str]]) -> str:
    """The model a decoded segment names; one of `models` whose name is the segment itself comes first."""
    written = _WRITTEN.get(segment.upper())
    return segment if written is None or segment in models() else written
