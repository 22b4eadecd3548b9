"""The nine non-stationary streams of Cervantes et al.: one file each, listed here."""

from __future__ import annotations

from streamwatch.lab.streams.testbed import (
    nscx,
    nsgr,
    nsgt,
    nsgt_5d,
    nsgt_f,
    nsgt_i,
    nslc,
    nspc,
    nspc_a,
)
from streamwatch.lab.streams.testbed.kind import StreamKind

KINDS: tuple[StreamKind, ...] = (
    nsgt.KIND,
    nsgt_f.KIND,
    nsgr.KIND,
    nslc.KIND,
    nsgt_i.KIND,
    nspc.KIND,
    nspc_a.KIND,
    nsgt_5d.KIND,
    nscx.KIND,
)
"""In the order of the paper's Table 3."""


def named(name: str) -> StreamKind:
    """Find a stream by its name, in upper or lower case.

    Raises
    ------
    ValueError
        If there is none.
    """
    for kind in KINDS:
        if kind.name.lower() == name.lower():
            return kind
    raise ValueError(f"expected one of {', '.join(kind.name for kind in KINDS)}, got {name!r}")
