"""What raises alarms. A detector's line stands in its own file in the kernel, beside its recursion."""

from __future__ import annotations

from streamwatch.core.entries import Entry
from streamwatch.core.kernel.detectors import KINDS

DETECTORS: tuple[Entry, ...] = tuple(kind.entry for kind in KINDS)
