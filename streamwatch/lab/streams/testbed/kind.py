"""What a stream of the testbed brings: its mixture, what drifts in it, and the optimal error printed."""

from __future__ import annotations

from dataclasses import dataclass

from streamwatch.lab.streams.gaussians import Mixture


@dataclass(frozen=True, slots=True)
class StreamKind:
    """One stream of the testbed; `testbed.KINDS` lists them all, and everything else follows from that list.

    Source: Cervantes, Gagné, Isasi, Parizeau, "Evaluating and characterizing incremental learning from
    non-stationary data", Tables 3 and 4.
    """

    name: str
    """The paper's."""
    section: str
    """The paper's, without the sign."""
    asks: str
    """What a learner needs to do well on it."""
    drifts: str
    """What changes, and how fast."""
    mixture: Mixture
    """A lap of 10,000 instances is the paper's stream; then it begins again."""
    printed_optimal: float
    """Error of the optimal classifier in Table 3, percent: mean of ten streams."""
    changes: tuple[int, ...] = ()
    """Instances of a lap (0-based) at which something changes at once."""
    returns: bool = False
    """Whether a lap ends where it began, so that the next one begins without a change at once."""

    def known_changes(self, outcomes: int) -> tuple[int, ...]:
        """Instances at which something changes at once among the first so many, laps included."""
        lap = self.mixture.lap
        starts = range(0, outcomes, lap)
        found = {start + change for start in starts for change in self.changes}
        if not self.returns:
            found.update(start for start in starts if start)
        return tuple(sorted(at for at in found if at < outcomes))
