"""Notifications beside incidents: early hints, verdicts on challengers, and the list of worse models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import TypeAlias

import msgspec

from streamwatch.core.alerting.notification import (
    ComparisonReason,
    HintReason,
    Notification,
    NotifiedComparison,
    NotifiedFleet,
    NotifiedHint,
    RivalPair,
    Severity,
    identify,
)
from streamwatch.core.alerting.rules import COMPARISON, EARLY_HINT, AlarmsSpec, FleetDigestSpec
from streamwatch.core.estimators.comparisons.set import ComparisonVerdict
from streamwatch.core.estimators.registers.fleet import SHARE, WorseList
from streamwatch.core.predictions.kind import ActiveHint
from streamwatch.core.records.events import Name

# `OpenHints`: which early hints lead to notifications, and when these are resolved.
#
# A hint is notified when a commit first finds it active, and again when it is no longer active or its model
# retires. A hint that begins and ends between two commits is not notified. Hints belong to no incident, as
# incidents are about outcomes, and a hint comes before any labels.
#
# The rule for the detector `early_hint` applies. A hint is suppressed within `cooldown` (record time) of the
# notified one before it, and while another of the model is open. In a backlog an old hint waits: it is
# notified once the backlog has been read, if it is still active.
#
# If hints are turned off, the open ones are resolved and all state is dropped; if they are turned on again,
# the hints active then are notified.


class KeptHint(msgspec.Struct, frozen=True):
    """Latest hint of a model, and whether it was notified."""

    model: Name
    ordinal: int
    given_ms: int
    notified_ms: int | None = None
    """Record time at which the latest hint that was notified began; None before any."""
    newest: Notification | None = None
    """Notification of the hint notified last, until the model has no active hint; None from then on."""


class OpenHints:
    """Notified hints that are open, and the latest hint of each model.

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
        self._kept: dict[str, KeptHint] = {}
        self.waiting = False
        """Whether hints were found in a backlog that are to be notified once it has been read."""
        self.silenced = 0
        """Number of times that hints were turned off; makes the ids of later notifications different."""

    def review(
        self,
        active: Mapping[str, ActiveHint] | None,
        now_ms: int,
        suppressed: MutableMapping[str, int],
        *,
        behind: bool,
    ) -> list[Notification]:
        """Return notifications of hints that ended or began; to be called once before each commit.

        Parameters
        ----------
        active
            Hints that are active now, by model; None if hints are turned off.
        now_ms
            Host time.
        suppressed
            Numbers of suppressed alarms and hints by reason, counted up in place.
        behind
            Whether a backlog is still being read.
        """
        if active is None:
            return self._silence(now_ms)
        over = [name for name in self.open() if name not in active]
        issued = [self._end(name, "no_longer_active", now_ms) for name in over]
        self.waiting = False
        for name, hint in sorted(active.items()):
            kept = self._kept.get(name)
            if kept is not None and (kept.ordinal, kept.given_ms) == (hint.ordinal, hint.given_ms):
                continue
            rule = self._spec.rule(name, EARLY_HINT)
            notified_ms = kept.notified_ms if kept is not None else None
            if kept is not None and kept.newest is not None:
                suppressed["already_open"] += 1
                self._keep(name, hint, notified_ms, kept.newest)
            elif behind and now_ms - hint.given_ms > self._spec.stale_after_ms:
                self.waiting = True
            elif notified_ms is not None and abs(hint.given_ms - notified_ms) < rule.cooldown_ms:
                suppressed["cooldown"] += 1
                self._keep(name, hint, notified_ms, None)
            else:
                marks = (name, EARLY_HINT, hint.ordinal, hint.given_ms)
                anew = (self.silenced,) if self.silenced else ()
                incident = identify("incident", self._identity, *marks, *anew)
                begun = Notification(
                    id=identify("firing", incident, 0),
                    kind="firing",
                    severity=rule.severity,
                    issued_ms=now_ms,
                    incident=incident,
                    hint=NotifiedHint(name, hint),
                )
                self._keep(name, hint, hint.given_ms, begun)
                issued.append(begun)
        return issued

    def retire(self, model: str, now_ms: int) -> list[Notification]:
        """Drop all state of a model, and resolve its open hint."""
        issued = [self._end(model, "model_retired", now_ms)] if model in self.open() else []
        self._kept.pop(model, None)
        return issued

    def open(self) -> dict[str, Notification]:
        """Return the notification of each open hint, by model."""
        return {name: kept.newest for name, kept in sorted(self._kept.items()) if kept.newest is not None}

    def state(self) -> list[KeptHint]:
        """State that `restore` continues from, in canonical order."""
        return [self._kept[name] for name in sorted(self._kept)]

    def restore(self, kept: Sequence[KeptHint], *, waiting: bool, silenced: int) -> None:
        """Continue from a `state`."""
        self.waiting = waiting
        self.silenced = silenced
        self._kept = {each.model: each for each in kept}

    def _silence(self, now_ms: int) -> list[Notification]:
        """Resolve the notified hints, and drop all state, as hints are turned off."""
        issued = [self._end(name, "no_longer_active", now_ms) for name in self.open()]
        self.silenced += bool(self._kept)
        self._kept.clear()
        self.waiting = False
        return issued

    def _keep(
        self, model: str, hint: ActiveHint, notified_ms: int | None, newest: Notification | None
    ) -> None:
        self._kept[model] = KeptHint(model, hint.ordinal, hint.given_ms, notified_ms, newest)

    def _end(self, model: str, reason: HintReason, now_ms: int) -> Notification:
        kept = self._kept[model]
        begun = kept.newest
        assert begun is not None and begun.hint is not None, "of an open hint"  # noqa: S101, PT018
        self._kept[model] = msgspec.structs.replace(kept, newest=None)
        ended_ms = max(now_ms, begun.hint.as_notified.given_ms)
        return msgspec.structs.replace(
            begun,
            id=identify("resolved", begun.incident, 1),
            kind="resolved",
            issued_ms=now_ms,
            hint=msgspec.structs.replace(begun.hint, ended_at_ms=ended_ms, reason=reason),
        )


# `OpenComparisons`: which verdicts on challengers lead to notifications, and when these are resolved.
#
# A verdict is notified when a commit first finds it, better or worse, again when it is confirmed, and when it
# no longer holds. One that begins and ends between two commits is not notified. Comparisons belong to no
# incident, as a challenger that is better is no alarm.
#
# The rule for the detector `comparison` applies, and its `model` is the challenger. Within `cooldown` (event
# time of pairs) of a notified verdict, no other verdict on the same pair of models is notified; if it still
# holds when the cooldown is over, it is notified then. In a backlog an old verdict waits until the backlog
# has been read.
#
# If no receiver wants comparisons, the open ones are resolved and all state is dropped.


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
    """Whether the verdict that holds was counted as suppressed, and waits for the end of the cooldown."""


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
        gone = [pair for pair in self.open() if pair not in now]
        notified = [self._end(pair, "no_longer_compared", now_ms) for pair in gone]
        for pair in [pair for pair in self._kept if pair not in now]:
            del self._kept[pair]
        self.waiting = False
        for pair, verdict in sorted(now.items()):
            notified += self._changes(pair, verdict, now_ms)
            kept = self._kept.get(pair)
            if verdict.verdict and (kept is None or kept.newest is None):
                notified += self._begin(pair, verdict, now_ms, suppressed, behind=behind)
            elif kept is not None and kept.waits:  # what waited no longer holds
                self._kept[pair] = msgspec.structs.replace(kept, waits=False)
        return notified

    def open(self) -> dict[Pair, Notification]:
        """Return the latest notification of each notified verdict that still holds, by pair."""
        return {pair: kept.newest for pair, kept in sorted(self._kept.items()) if kept.newest is not None}

    def state(self) -> list[KeptComparison]:
        """State that `restore` continues from, in canonical order."""
        return [self._kept[pair] for pair in sorted(self._kept)]

    def restore(self, kept: Sequence[KeptComparison], *, waiting: bool, silenced: int) -> None:
        """Continue from a `state`."""
        self._kept = {(each.champion, each.challenger): each for each in kept}
        self.waiting, self.silenced = waiting, silenced

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
        ended = [self._end(pair, "no_longer_compared", now_ms) for pair in self.open()]
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


# `FleetDigest`: when receivers are sent the list of models that are worse by the fleet's rule.
#
# The rule (`core.estimators.registers.fleet`) limits the false entries of a list made at a time fixed in
# advance. So lists are made on a grid of times, the multiples of `every` since 1970 by the host's clock, and
# not when something happens. A process that was stopped or reading a backlog at such times makes one list for
# all of them as soon as it can: that moment depends on outages and volumes, not on evidence.
#
# Each digest states which pairs were added since the previous list, and which were removed. If the list is
# empty and nothing was removed, nothing is sent unless settings ask for it. The first list is made at the
# first grid time after digests were turned on. When they are turned off, all state is dropped.


ListWorse: TypeAlias = Callable[[float], WorseList]
"""Lists the models that are worse, given the share that may be listed falsely."""


class KeptFleet(msgspec.Struct, frozen=True):
    """Time and contents of the last list."""

    made_ms: int | None = None
    """Time of the grid that the last list was made for; before any list, that at which the grid began.

    None before digests are turned on.
    """
    sent: bool = False
    """Whether a list was made since digests were turned on."""
    listed: tuple[RivalPair, ...] = ()
    """Pairs of the last list, in order of names."""


class FleetDigest:
    """Digests of the models that are worse, on a grid of times.

    Parameters
    ----------
    spec
        Interval of the grid and size of a digest; None if no receiver wants digests.
    identity
        Unique name of the state, so that notification ids of two states differ.
    """

    def __init__(self, spec: FleetDigestSpec | None, identity: str) -> None:
        self._spec = spec
        self._identity = identity
        self._kept = KeptFleet()

    def due(self, now_ms: int, *, behind: bool) -> bool:
        """Tell whether `review` must make a list or start the grid; false while a backlog is read."""
        if self._spec is None or behind:
            return False
        made_ms = self._kept.made_ms
        return made_ms is None or now_ms // self._spec.every_ms * self._spec.every_ms > made_ms

    def review(self, list_worse: ListWorse | None, now_ms: int, *, behind: bool) -> list[Notification]:
        """Make the list if it is due, and return the digest that is to be sent; once before each commit."""
        spec = self._spec
        if spec is None:
            self._kept = KeptFleet()
            return []
        time_ms, made_ms = now_ms // spec.every_ms * spec.every_ms, self._kept.made_ms
        if made_ms is None or made_ms > time_ms + spec.every_ms:
            # Digests begin, or the clock was set back by far, and would be silent until that time.
            self._kept = msgspec.structs.replace(self._kept, made_ms=time_ms)
        if not self.due(now_ms, behind=behind):
            return []
        assert list_worse is not None, "given where digests are wanted"  # noqa: S101
        before, found = self._kept, list_worse(SHARE)
        now = {RivalPair(pair.model, pair.opponent): pair for pair in found.pairs}
        old = set(before.listed)
        self._kept = KeptFleet(time_ms, sent=True, listed=tuple(sorted(now)))
        added = [pair for pair in now if pair not in old]
        left = [pair for pair in before.listed if pair not in now]
        if not (now or left or spec.send_empty):
            return []
        name = identify("digest", self._identity, "fleet", time_ms)
        notified = NotifiedFleet(
            at_ms=time_ms,
            before_ms=before.made_ms if before.sent else None,
            share=SHARE,
            pairs=found.number,
            models=len({pair.model for pair in now}),
            number=len(now),
            listed=found.pairs[: spec.size],
            number_added=len(added),
            added=tuple(added[: spec.size]),
            number_left=len(left),
            left=tuple(left[: spec.size]),
        )
        return [
            Notification(
                id=name, kind="digest", severity="info", issued_ms=now_ms, incident=name, fleet=notified
            )
        ]

    def state(self) -> KeptFleet:
        """State that `restore` continues from."""
        return self._kept

    def restore(self, kept: KeptFleet) -> None:
        """Continue from a `state`."""
        self._kept = kept
