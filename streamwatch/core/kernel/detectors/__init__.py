"""Kinds of detectors. A new kind is one file beside these and one line in `KINDS`."""

from __future__ import annotations

from streamwatch.core.kernel.detectors.adwin_drift import ADWIN_DRIFT
from streamwatch.core.kernel.detectors.kind import DetectorKind
from streamwatch.core.kernel.detectors.page_hinkley import PAGE_HINKLEY

KINDS: tuple[DetectorKind, ...] = (
    PAGE_HINKLEY,
    ADWIN_DRIFT,
)
