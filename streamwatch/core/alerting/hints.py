"""`OpenHints`: which early hints lead to notifications, and when these are resolved.

A hint is notified when a commit first finds it active, and again when it is no longer active or its model
retires. A hint that begins and ends between two commits is not notified. Hints belong to no incident, as
incidents are about outcomes, and a hint comes before any labels.

The rule for the detector `early_hint` applies. A hint is suppressed within `cooldown` (record time) of the
notified one before it, and while another of the model is open. In a backlog an old hint waits: it is notified
once the backlog has been read, if it is still active.

If hints are turned off, the open ones are resolved and all state is dropped; if they are turned on again, the
hints active then are notified.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence

import msgspec

from streamwatch.core.alerting.notification import HintReason, Notification, NotifiedHint, identify
from streamwatch.core.alerting.rules import EARLY_HINT, AlarmsSpec
from streamwatch.core.predictions.kind import ActiveHint
from streamwatch.core.records.events import Name


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
