"""The life of an alarm: announced, kept open while the model stays worse, resolved.

Times are of two kinds. `cooldown` is in event time: it is about alarms that follow each other in the stream.
Age and `alarm_ttl` are in host time (`now_ms`): they are about people. By record time nothing in a backlog
would ever be old, and an alarm of a stream that stopped would never end.

Everything decided here is in `state`, which is committed together with the notices: a restart repeats none
and loses none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from streamwatch.core.alarm_rules import AlarmsSpec
from streamwatch.core.backlog_digest import BacklogDigest, Gathered
from streamwatch.core.events import Alarm
from streamwatch.core.level import Level
from streamwatch.core.notices import Notice, Reason, Severity, identify
from streamwatch.core.recovery import is_back
from streamwatch.core.series import Family

VERSION = 1
SUPPRESSED: tuple[str, ...] = ("already_open", "cooldown", "min_outcomes")
"""Why an alarm is counted and not announced."""


class OpenAlarm(msgspec.Struct, frozen=True):
    """An announced alarm that has not ended."""

    notice: Notice
    """The firing notice as of the newest alarm."""
    touched_ms: int
    """Host time of the newest alarm."""


class _State(msgspec.Struct, frozen=True):
    open: list[OpenAlarm]
    announced_at_ms: list[tuple[str, str, int]]
    suppressed: dict[str, int]
    gathered: Gathered
    version: int = VERSION


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(_State)


class AlarmBook:
    """Decides which alarms become notices, and when they end.

    Parameters
    ----------
    spec
        Rules and durations.
    identity
        The state's own name (`Store.identity`): ids of two states never meet.
    """

    def __init__(self, spec: AlarmsSpec, identity: str) -> None:
        self._spec = spec
        self._identity = identity
        self._open: dict[tuple[str, str], OpenAlarm] = {}
        self._announced_at_ms: dict[tuple[str, str], int] = {}
        """Event time of the last alarm announced."""
        self._suppressed: dict[str, int] = dict.fromkeys(SUPPRESSED, 0)
        self._digest = BacklogDigest(spec.digest_size)

    def announce(
        self, alarms: Sequence[Alarm], now_ms: int, first_ms: Callable[[str], int], *, behind: bool
    ) -> list[Notice]:
        """Take in new alarms, in order; the firing notices they give.

        Parameters
        ----------
        alarms
            As the detectors raised them.
        now_ms
            Host time.
        first_ms
            Event time of a model's first outcome: tells a model from an earlier one of its name.
        behind
            Whether they were found in a backlog; only then an old one is left to the digest.
        """
        notices: list[Notice] = []
        for alarm in alarms:
            key = alarm.model, alarm.detector
            rule = self._spec.rule(*key)
            last_ms = self._announced_at_ms.get(key)
            if alarm.outcome < rule.min_outcomes:
                self._suppressed["min_outcomes"] += 1
            elif (opened := self._open.get(key)) is not None:
                self._suppressed["already_open"] += 1
                self._open[key] = _renewed(opened, alarm, now_ms)
            elif behind and now_ms - alarm.at_ms > self._spec.max_alarm_age_ms:
                self._digest.add(alarm, rule.severity, now_ms)
            elif last_ms is not None and abs(alarm.at_ms - last_ms) < rule.cooldown_ms:
                self._suppressed["cooldown"] += 1
            else:
                notice = self._firing(alarm, rule.severity, first_ms(alarm.model), now_ms)
                self._open[key] = OpenAlarm(notice, now_ms)
                self._announced_at_ms[key] = alarm.at_ms
                notices.append(notice)
        return notices

    def review(
        self, levels: Callable[[Sequence[str]], Mapping[str, Level]], now_ms: int, *, behind: bool
    ) -> list[Notice]:
        """Resolve what has ended, and let the digest go when it is time; once before each commit.

        Parameters
        ----------
        levels
            Present levels of models by name; those without one are left out.
        now_ms
            Host time.
        behind
            Whether a backlog is still being read: a digest waits for its end, though not for ever.
        """
        notices: list[Notice] = []
        found = levels(sorted({model for model, _ in self._open})) if self._open else {}
        for key, opened in sorted(self._open.items(), key=_by_name):
            if is_back(opened.notice, found.get(key[0])):
                notices.append(self._resolved(key, "back_to_level", now_ms))
            elif now_ms - opened.touched_ms >= self._spec.alarm_ttl_ms:
                notices.append(self._resolved(key, "accepted_as_new_level", now_ms))
        if self._digest.due(now_ms, self._spec.digest_interval_ms, behind=behind):
            notices.append(self._digest.leave(self._identity, now_ms))
        return notices

    def due(self, now_ms: int, *, behind: bool) -> bool:
        """Whether time alone gives `review` something to say: then it is time to commit, too."""
        ttl = self._spec.alarm_ttl_ms
        return self._digest.due(now_ms, self._spec.digest_interval_ms, behind=behind) or any(
            now_ms - opened.touched_ms >= ttl for opened in self._open.values()
        )

    def retire(self, model: str, now_ms: int) -> list[Notice]:
        """Forget a model; its open alarms end with it."""
        keys = sorted(key for key in self._open if key[0] == model)
        notices = [self._resolved(key, "model_retired", now_ms) for key in keys]
        for key in [key for key in self._announced_at_ms if key[0] == model]:
            del self._announced_at_ms[key]
        return notices

    def standing(self) -> list[Notice]:
        """The firing notices of all open alarms, as of their newest alarm; for outlets that repeat them."""
        return [opened.notice for _, opened in sorted(self._open.items(), key=_by_name)]

    def state(self) -> bytes:
        """Everything remembered; equal states give equal bytes."""
        return _ENCODER.encode(
            _State(
                open=[self._open[key] for key in sorted(self._open)],
                announced_at_ms=[(*key, at_ms) for key, at_ms in sorted(self._announced_at_ms.items())],
                suppressed=self._suppressed,
                gathered=self._digest.gathered(),
            )
        )

    def restore(self, state: bytes) -> None:
        """Be as it was when `state` was taken; raises ValueError for another version."""
        read = _DECODER.decode(state)
        if read.version != VERSION:
            raise ValueError(f"alarm book must be of version {VERSION}, got {read.version}")
        self._open = {}
        for opened in read.open:
            if opened.notice.alarm is not None:
                self._open[opened.notice.alarm.model, opened.notice.alarm.detector] = opened
        self._announced_at_ms = {(model, detector): ms for model, detector, ms in read.announced_at_ms}
        self._suppressed = {**dict.fromkeys(SUPPRESSED, 0), **read.suppressed}
        self._digest.restore(read.gathered)

    def families(self) -> list[Family]:
        """Open alarms by model, and what was not announced."""
        counts: dict[tuple[str, str], int] = {}
        for (model, _), opened in self._open.items():
            key = model, opened.notice.severity
            counts[key] = counts.get(key, 0) + 1
        return [
            Family(
                "alarms_open",
                "gauge",
                "Announced alarms of a model that have not been resolved.",
                ("model", "severity"),
                [(key, float(n)) for key, n in sorted(counts.items())],
            ),
            Family(
                "alarms_suppressed_total",
                "counter",
                "Alarms counted and not announced: too few outcomes, in the cooldown, or one already open.",
                ("reason",),
                [((reason,), float(n)) for reason, n in sorted(self._suppressed.items())],
            ),
            Family(
                "alarms_digested_total",
                "counter",
                "Alarms found while catching up that were too old to be told one by one.",
                (),
                [((), float(self._digest.taken))],
            ),
        ]

    def _firing(self, alarm: Alarm, severity: Severity, first_ms: int, now_ms: int) -> Notice:
        # A detector whose parameters changed counts ordinals anew; outcome and time tell its alarms apart.
        marks = (alarm.model, first_ms, alarm.detector, alarm.ordinal, alarm.outcome, alarm.at_ms)
        name = identify("firing", self._identity, *marks)
        return Notice(
            id=name,
            kind="firing",
            severity=severity,
            issued_ms=now_ms,
            firing_id=name,
            alarm=alarm,
            started_at_ms=alarm.at_ms,
            before=alarm.before,
        )

    def _resolved(self, key: tuple[str, str], reason: Reason, now_ms: int) -> Notice:
        firing = self._open.pop(key).notice
        return msgspec.structs.replace(
            firing,
            id=identify("resolved", firing.id),
            kind="resolved",
            issued_ms=now_ms,
            ended_at_ms=max(now_ms, firing.started_at_ms),
            reason=reason,
        )


def _by_name(item: tuple[tuple[str, str], OpenAlarm]) -> tuple[str, str]:
    """Order that does not depend on what was opened first: a restart would not know."""
    return item[0]


def _renewed(opened: OpenAlarm, alarm: Alarm, now_ms: int) -> OpenAlarm:
    """An open alarm after one more: what began it stays, its time to live starts again."""
    notice = msgspec.structs.replace(opened.notice, alarm=alarm, alarms=opened.notice.alarms + 1)
    return OpenAlarm(notice, now_ms)
