"""`Candidacy`: whether this replica can prove that it is the only one that may notify.

A consumer group elects the holder, and removes a member from which it received no request for the session
timeout. A replica that is cut off, or was suspended, learns of its removal late or never. So a holder
notifies only while no other replica can have been elected: the group received an acknowledged request after
it was sent, and waits at least for the session timeout from then on. By a monotonic clock, the holder may
notify until

    start of the last acknowledged request + session timeout - margin

The margin allows for notifications begun before, and for clocks of two hosts that do not run equally fast.

Writes to Kafka need no clock: there the newer producer fences the older one.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import msgspec
import xxhash

from streamwatch.core.records.events import Name

Role: TypeAlias = Literal["catching_up", "standby", "taking_over", "holder", "diverged"]
ROLES: Final[tuple[Role, ...]] = ("catching_up", "standby", "taking_over", "holder", "diverged")


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """Durations of the election, in seconds.

    Raises
    ------
    ValueError
        If `margin` is not above 0 and below `timeout`.
    """

    timeout: float = 6.0
    """Time without a request from a member after which the group elects another."""
    margin: float = 1.0
    """Time before the end of `timeout` from which a holder that cannot renew does not notify."""
    renewal: float = 1.0
    """Time between renewals."""

    def __post_init__(self) -> None:
        if not 0 < self.margin < self.timeout:
            raise ValueError(f"margin must be in (0, {self.timeout:g}), got {self.margin:g}")


class Candidacy:
    """State of this replica in the election.

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
        """Description of the difference from the holder's results; None if there is none."""
        self.terms = 0
        """Number of times that the group elected this replica."""

    def join(self) -> None:
        """Note that this replica is a member of the group; ignored if diverged."""
        self._is_member = self.divergence is None

    def leave(self) -> None:
        """Note that this replica is no longer a member, nor elected."""
        self._is_member = False
        self.lose()

    def win(self, asked: float) -> None:
        """Note that the group elected this replica, by a request sent at `asked`; ignored if diverged."""
        if self.divergence is not None:
            return
        self._proved, self._is_open = asked, False
        self.terms += 1

    def renew(self, term: int, asked: float) -> None:
        """Note that the group acknowledged a request of a term that was sent at `asked`."""
        if self._proved is not None and term == self.terms:
            self._proved = max(self._proved, asked)

    def lose(self) -> None:
        """Note that this replica is no longer elected, or cannot know whether it is."""
        self._proved, self._is_open = None, False

    def open(self, term: int) -> None:
        """Note that older producers are fenced and the ledger is read, in this term."""
        self._is_open = self._proved is not None and term == self.terms

    def close(self) -> None:
        """Note that the producer is fenced, or has failed: the ledger has to be read again."""
        self._is_open = False

    def diverge(self, what: str) -> None:
        """Note a difference from the holder's results: until a restart with another state, not eligible."""
        self.divergence = what
        self.leave()

    @property
    def is_elected(self) -> bool:
        """Tell whether the group elected this replica, as far as it knows."""
        return self._proved is not None

    @property
    def is_open(self) -> bool:
        """Tell whether this replica has fenced older producers and read the ledger in this term."""
        return self._is_open

    def seconds_left(self, now: float) -> float:
        """Return the seconds for which no other replica can have been elected; 0 or less if one may have."""
        if self._proved is None:
            return 0.0
        return self._proved + self._spec.timeout - self._spec.margin - now

    def holds(self, now: float) -> bool:
        """Tell whether this replica can prove that it is elected."""
        return self.seconds_left(now) > 0

    def speaks(self, now: float) -> bool:
        """Tell whether this replica may notify: it holds, and knows what was notified before."""
        return self._is_open and self.holds(now)

    def role(self, now: float) -> Role:
        """Name the role of this replica."""
        if self.divergence is not None:
            return "diverged"
        if not self._is_member:
            return "catching_up"
        if not self.holds(now):
            return "standby"
        return "holder" if self._is_open else "taking_over"


# Decisions about notifications, passed in the ledger from one holder (publishing replica) to the next.
#
# Notifications depend on the host's clock and on when commits are made, so replicas cannot decide them
# independently. The holder decides, and writes its decisions to the ledger with its outcomes; the next holder
# continues from them, as a restart continues from its state.


PART_BYTES: Final = 262_144
"""Most bytes of decisions in one record of the ledger: below `max.message.bytes` of any topic."""
VERSION: Final = 1
"""Version of the encoding of `Decisions`; the alarm book and pacing in them have versions of their own."""


class DecisionsError(ValueError):
    """Decisions in the ledger that cannot be decoded."""


class Decisions(msgspec.Struct, frozen=True, array_like=True):
    """State of all decisions up to a commit of the holder."""

    event: int
    """Number of the last alarm that was considered."""
    retired: int
    """Number of the last retirement of a model that was considered."""
    alarms: bytes
    """Book of alarms (`AlarmBook.state`)."""
    pacing: bytes
    """Notifications that wait to be issued (`Pacing.state`)."""
    outbox: dict[Name, bytes]
    """Entries of the outbox by id: notifications not known to be delivered yet."""
    comparisons: list[tuple[Name, Name, int]]
    """Verdicts, except open ones, of each comparison's latest event, as (champion, challenger, verdict)."""


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(Decisions)
_WITH_VERSION = msgspec.msgpack.Decoder(tuple[int, msgspec.Raw])


def to_parts(decisions: Decisions) -> list[bytes]:
    """Encode decisions as values of records of `PART_BYTES` or less; equal decisions give equal bytes."""
    text = zlib.compress(_ENCODER.encode((VERSION, decisions)), 1)
    return [text[at : at + PART_BYTES] for at in range(0, len(text), PART_BYTES)]


def parts_digest(parts: Sequence[bytes]) -> int:
    """Compute the 64-bit XXH3 of all parts together."""
    return xxhash.xxh3_64_intdigest(b"".join(parts))


def from_parts(parts: Sequence[bytes]) -> Decisions:
    """Decode what `to_parts` gave.

    Raises
    ------
    DecisionsError
        If the parts are not encoded decisions, are of another version, or one is missing.
    """
    try:
        version, encoded = _WITH_VERSION.decode(zlib.decompress(b"".join(parts)))
        if version != VERSION:
            raise DecisionsError(f"expected decisions of version {VERSION} in the ledger, got {version}")
        return _DECODER.decode(encoded)
    except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DecisionsError(f"decisions in the ledger cannot be read: {error}") from error
