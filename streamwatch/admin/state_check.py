"""One check of a state, as `streamwatch state verify` tells of it; that of sections is among all of them."""

from __future__ import annotations

from dataclasses import dataclass

from streamwatch.admin.state_contents import SECTIONS
from streamwatch.edge.stores.rocksdb.reading.inspect import Inspection
from streamwatch.edge.stores.rocksdb.reading.verify import Faults


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, how much of it there is, and what is wrong with it."""

    what: str
    found: str
    faults: tuple[str, ...] = ()
    """The first of them."""
    count: int = 0
    """All of them."""

    @property
    def good(self) -> bool:
        """Nothing is wrong with it."""
        return self.count == 0


def check_of(what: str, found: str, faults: Faults) -> Check:
    """A check with the faults that it found."""
    return Check(what, found, tuple(faults.named), faults.count)


def sections_of(state: Inspection) -> Check:
    """Check that every section of a commit is there."""
    faults = Faults()
    for name in SECTIONS:
        if name not in state.sections:
            faults.add(f"the section {name!r} is missing")
    size = sum(map(len, state.sections.values()))
    return check_of("sections", f"{len(state.sections)} of {size:,} bytes", faults)
