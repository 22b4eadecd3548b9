"""`Candidacy`: whether this replica is the one that publishes and notifies, as far as it can prove it.

A consumer group elects the holder, and forgets a member from which it has heard nothing for the session
timeout. Who is cut off, or was stopped, learns of that last of all, or never. So a holder speaks only for as
long as nobody else can have been elected: a request that the group acknowledged was received after it was
sent, and from then on the group waits for the session timeout at least. By a clock that never goes back, it
speaks until

    start of the last acknowledged request + session timeout - margin

The margin is for what was begun before, and for clocks of two hosts that do not run equally fast.

What is written to Kafka needs no clock: there the newer producer fences the older one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Role: TypeAlias = Literal["catching_up", "standby", "taking_over", "holder", "diverged"]
ROLES: Final[tuple[Role, ...]] = ("catching_up", "standby", "taking_over", "holder", "diverged")


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """Durations of the election, in seconds."""

    timeout: float = 6.0
    """After so long without a word of a member the group elects another."""
    margin: float = 1.0
    """Part of it for which a holder that cannot renew is silent already."""
    renewal: float = 1.0
    """Time between renewals."""

    def __post_init__(self) -> None:
        if not 0 < self.margin < self.timeout:
            raise ValueError(f"margin must be in (0, {self.timeout:g}), got {self.margin:g}")


class Candidacy:
    """State of one replica in the election.

    Parameters
    ----------
    spec
        Durations.
    """

    def __init__(self, spec: SessionSpec) -> None:
        self._spec = spec
        self._is_member = False
        self._proved: float | None = None
        """Start of the last request that the group acknowledged in this term; None while not elected."""
        self._is_open = False
        self.divergence: str | None = None
        """What this replica found unlike the holder's; None where nothing is."""
        self.terms = 0
        """Number of times that the group elected it."""

    def join(self) -> None:
        """Become a member of the group; another one may be elected."""
        self._is_member = self.divergence is None

    def leave(self) -> None:
        """Be a member no longer."""
        self._is_member = False
        self.lose()

    def win(self, asked: float) -> None:
        """Be elected, by a request that was sent at `asked`; who has diverged stands down."""
        if self.divergence is not None:
            return
        self._proved, self._is_open = asked, False
        self.terms += 1

    def renew(self, term: int, asked: float) -> None:
        """Take note that the group acknowledged a request of a term that was sent at `asked`."""
        if self._proved is not None and term == self.terms:
            self._proved = max(self._proved, asked)

    def lose(self) -> None:
        """Be elected no longer, or know no longer that one is."""
        self._proved, self._is_open = None, False

    def open(self, term: int) -> None:
        """Take note that older producers are fenced and the ledger is read, in this term."""
        self._is_open = self._proved is not None and term == self.terms

    def close(self) -> None:
        """Take note that the producer is fenced, or has failed: the ledger has to be read again."""
        self._is_open = False

    def diverge(self, what: str) -> None:
        """Be eligible no longer, until the state is replaced and the process begins again."""
        self.divergence = what
        self.leave()

    @property
    def is_elected(self) -> bool:
        """Tell whether the group elected it last, as far as it has heard."""
        return self._proved is not None

    @property
    def is_open(self) -> bool:
        """Tell whether it has fenced others and read the ledger in this term."""
        return self._is_open

    def seconds_left(self, now: float) -> float:
        """Seconds for which nobody else can have been elected; 0 or less: somebody may."""
        if self._proved is None:
            return 0.0
        return self._proved + self._spec.timeout - self._spec.margin - now

    def holds(self, now: float) -> bool:
        """Tell whether it can prove that it is the one elected."""
        return self.seconds_left(now) > 0

    def speaks(self, now: float) -> bool:
        """Tell whether it may notify: it holds, and knows what was notified before."""
        return self._is_open and self.holds(now)

    def role(self, now: float) -> Role:
        """Name its part."""
        if self.divergence is not None:
            return "diverged"
        if not self._is_member:
            return "catching_up"
        if not self.holds(now):
            return "standby"
        return "holder" if self._is_open else "taking_over"
