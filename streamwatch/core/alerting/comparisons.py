"""`OpenComparisons`: which verdicts on challengers lead to notifications, and when these are resolved.

A verdict is notified when a commit first finds it, better or worse, again when it is confirmed, and when it
no longer holds. One that begins and ends between two commits is not notified. Comparisons belong to no
incident, as a challenger that is better is no alarm.

The rule for the detector `comparison` applies, and its `model` is the challenger. Within `cooldown` (event
time of pairs) of a notified verdict, no other verdict on the same pair of models is notified; if it still
holds when the cooldown is over, it is notified then. In a backlog an old verdict waits until the backlog has
been read.

If no receiver wants comparisons, the open ones are resolved and all state is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence

import msgspec

from streamwatch.core.alerting.notification import (
    ComparisonReason,
    Notification,
    NotifiedComparison,
    Severity,
    identify,
)
from streamwatch.core.alerting.rules import COMPARISON, AlarmsSpec
from streamwatch.core.estimators.comparisons.set import ComparisonVerdict
from streamwatch.core.records.events import Name

Pair = tuple[str, str]
"""Champion and challenger."""


class KeptComparison(msgspec.Struct, frozen=True):
    """Notifications of one pair of models, and when the last was sent."""

    champion: Name
    challenger: Name
    notified_ms: int | None = None
    """Event time of the latest pair when a verdict was notified last; None before any."""
    sent: int = 0
    """Number of notifications of this pair so far."""
    newest: Notification | None = None
    """Latest notification of the verdict that was notified and still holds; None without one."""
    waits: bool = False
    """Whether a verdict was counted as suppressed, and waits for the end of the cooldown."""


class OpenComparisons:
    """Notified verdicts on challengers that still hold, and when each pair was notified last.

    Parameters
    ----------
    spec
        Rules and durations.
    identity
        Unique name of the state, so that notification ids of two states differ.
    """

    def __init__(self, spec: AlarmsSpec, identity: str) -> None:
        self._spec = spec
        self._identity = identity
        self._kept: dict[Pair, KeptComparison] = {}
        self.waiting = False
        """Whether verdicts were found in a backlog that are to be notified once it has been read."""
        self.silenced = 0
        """Number of times that the state was dropped; makes the ids of later notifications different."""

    def review(
        self,
        verdicts: Iterable[ComparisonVerdict] | None,
        now_ms: int,
        suppressed: MutableMapping[str, int],
        *,
        behind: bool,
    ) -> list[Notification]:
        """Return notifications of verdicts that ended, began or were confirmed; once before each commit.

        Parameters
        ----------
        verdicts
            Verdicts on all challengers as they are now; None if no receiver wants comparisons.
        now_ms
            Host time.
        suppressed
            Numbers of suppressed alarms by reason, counted up in place.
        behind
            Whether a backlog is still being read.
        """
        if verdicts is None:
            return self._silence(now_ms)
        now = {(each.champion, each.challenger): each for each in verdicts}
        gone = [pair for pair in self._open() if pair not in now]
        notified = [self._end(pair, "no_longer_compared", now_ms) for pair in gone]
        for pair in [pair for pair in self._kept if pair not in now]:
            del self._kept[pair]
        self.waiting = False
        for pair, verdict in sorted(now.items()):
            notified += self._changes(pair, verdict, now_ms)
            kept = self._kept.get(pair)
            if verdict.verdict and (kept is None or kept.newest is None):
                notified += self._begin(pair, verdict, now_ms, suppressed, behind=behind)
        return notified

    def open_notifications(self) -> list[Notification]:
        """Return the latest notification of each notified verdict that still holds, by pair."""
        return [kept.newest for _, kept in sorted(self._kept.items()) if kept.newest is not None]

    def state(self) -> list[KeptComparison]:
        """State that `restore` continues from, in canonical order."""
        return [self._kept[pair] for pair in sorted(self._kept)]

    def restore(self, kept: Sequence[KeptComparison], *, waiting: bool, silenced: int) -> None:
        """Continue from a `state`."""
        self._kept = {(each.champion, each.challenger): each for each in kept}
        self.waiting, self.silenced = waiting, silenced

    def _open(self) -> list[Pair]:
        return [pair for pair, kept in sorted(self._kept.items()) if kept.newest is not None]

    def _changes(self, pair: Pair, verdict: ComparisonVerdict, now_ms: int) -> list[Notification]:
        """End a notified verdict that no longer holds, or announce that it is confirmed."""
        kept = self._kept.get(pair)
        if kept is None or kept.newest is None or kept.newest.comparison is None:
            return []
        notified = kept.newest.comparison
        if verdict.verdict != notified.verdict:
            was_early = notified.basis == "cohorts" and notified.status == "early" and verdict.verdict == 0
            return [self._end(pair, "retracted" if was_early else "verdict_changed", now_ms)]
        if verdict.status != "confirmed" or notified.status == "confirmed":
            return []
        newest = msgspec.structs.replace(
            kept.newest,
            id=identify("updated", kept.newest.incident, kept.sent),
            kind="updated",
            issued_ms=now_ms,
            comparison=notified_comparison(verdict),
        )
        self._kept[pair] = msgspec.structs.replace(kept, newest=newest, sent=kept.sent + 1)
        return [newest]

    def _begin(
        self,
        pair: Pair,
        verdict: ComparisonVerdict,
        now_ms: int,
        suppressed: MutableMapping[str, int],
        *,
        behind: bool,
    ) -> list[Notification]:
        rule = self._spec.rule(verdict.challenger, COMPARISON)
        kept = self._kept.get(pair, KeptComparison(*pair))
        if behind and now_ms - verdict.last_ms > self._spec.stale_after_ms:
            self.waiting = True
            return []
        if kept.notified_ms is not None and abs(verdict.last_ms - kept.notified_ms) < rule.cooldown_ms:
            suppressed["cooldown"] += not kept.waits
            self._kept[pair] = msgspec.structs.replace(kept, waits=True)
            return []
        severity: Severity = rule.severity if rule.severity_given else "info"
        # A pair that is compared again counts from 0: the time distinguishes its verdicts.
        marks = (*pair, kept.sent, verdict.last_ms, self.silenced)
        incident = identify("incident", self._identity, COMPARISON, *marks)
        begun = Notification(
            id=identify("firing", incident, kept.sent),
            kind="firing",
            severity=severity,
            issued_ms=now_ms,
            incident=incident,
            comparison=notified_comparison(verdict),
        )
        self._kept[pair] = KeptComparison(*pair, verdict.last_ms, kept.sent + 1, begun)
        return [begun]

    def _end(self, pair: Pair, reason: ComparisonReason, now_ms: int) -> Notification:
        kept = self._kept[pair]
        begun = kept.newest
        assert begun is not None and begun.comparison is not None, "of an open verdict"  # noqa: S101, PT018
        self._kept[pair] = msgspec.structs.replace(kept, newest=None, sent=kept.sent + 1)
        ended_ms = max(now_ms, begun.comparison.since_ms)
        return msgspec.structs.replace(
            begun,
            id=identify("resolved", begun.incident, kept.sent),
            kind="resolved",
            issued_ms=now_ms,
            comparison=msgspec.structs.replace(begun.comparison, ended_at_ms=ended_ms, reason=reason),
        )

    def _silence(self, now_ms: int) -> list[Notification]:
        """Resolve all notified verdicts, and drop all state, as no receiver wants comparisons any more."""
        ended = [self._end(pair, "no_longer_compared", now_ms) for pair in self._open()]
        self.silenced += bool(self._kept)
        self._kept.clear()
        self.waiting = False
        return ended


def notified_comparison(verdict: ComparisonVerdict) -> NotifiedComparison:
    """Convert a verdict, better or worse, to its form in notifications."""
    since_ms = verdict.last_ms if verdict.since_ms is None else verdict.since_ms
    return NotifiedComparison(
        verdict.champion,
        verdict.challenger,
        verdict.verdict,
        since_ms,
        verdict.last_ms,
        verdict.basis,
        verdict.status,
        utility=verdict.utility,
    )
