"""`alerts` and `models`: receivers, rules of alarms, and labels of models by pattern."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    create_model,
    field_validator,
    model_validator,
)

from streamwatch.core.alerting.notification import SEVERITIES, Severity
from streamwatch.edge.receivers import KINDS, OwnKey, ReceiverKind
from streamwatch.settings.sections import Count, ReadableFile, Section, TextFile, require_one_form, split
from streamwatch.settings.values import Bounded, Duration, Lasting, link, one_of

TYPES = tuple(KINDS)


def hidden(value: object) -> object:
    """Return a value if it is a text that is not empty; the error does not show it."""
    if not isinstance(value, str | SecretStr) or not value:
        raise ValueError("expected a text (not shown)")
    return value


Event: TypeAlias = Literal["alarms", "retraining", "comparisons", "digest"]
EVENTS: tuple[Event, ...] = get_args(Event)

Secret = Annotated[SecretStr, BeforeValidator(hidden, json_schema_input_type=str)]
SeverityName = Annotated[Severity, one_of(*SEVERITIES)]
Wait = Annotated[Duration, Bounded("", least=1)]


def own_fields(kind: ReceiverKind) -> dict[str, Any]:
    """Return the fields of a section that only one kind of receivers has, for `pydantic.create_model`."""
    fields: dict[str, Any] = {}
    secret: Any = Secret  # `Any` for pyright, as `|` is evaluated at run time
    file: Any = TextFile
    for key in kind.keys:
        about = f"{kind.name}: {key.about}"
        if key.holds == "secret":
            fields[key.name] = (secret | None, Field(None, description=about))
            in_file = f"{kind.name}: file that contains the {key.about}"
            fields[f"{key.name}_file"] = (file | None, Field(None, description=in_file))
        elif key.holds == "secrets":
            fields[key.name] = (tuple[Secret, ...], Field((), description=about))
            in_files = f"{kind.name}: files that contain the secrets."
            fields[f"{key.name}_files"] = (tuple[TextFile, ...], Field((), description=in_files))
        elif key.holds == "texts":
            texts = Annotated[dict[str, str], AfterValidator(key.parse)]
            fields[key.name] = (texts, Field(default_factory=dict[str, str], description=about))
        else:
            fields[key.name] = (Wait, Field(key.default, description=about))
    return fields


_FIELDS = {kind.name: own_fields(kind) for kind in KINDS.values()}
_OWN: type[Section] = create_model(
    "OwnKeys",
    __base__=Section,
    **{name: field for fields in _FIELDS.values() for name, field in fields.items()},
)
"""Keys of all kinds of receivers."""


class ReceiverSection(_OWN):
    """A receiver of notifications."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
    """Name in logs and metrics: letters, digits, dots, hyphens and underscores."""
    type: Annotated[
        str,
        one_of(*TYPES),
        Field(description=f"Type: one of {', '.join(TYPES)}.", json_schema_extra={"enum": list(TYPES)}),
    ]
    url: Secret | None = None
    """URL of the receiver. It is never shown or logged, except for its host."""
    url_file: TextFile | None = None
    """File that contains the URL, if it is a secret. A trailing newline is ignored."""
    severities: Annotated[
        Annotated[tuple[SeverityName, ...], Field(min_length=1)] | None,
        BeforeValidator(split, json_schema_input_type=str | list[str]),
    ] = None
    """Severities to send: info, warning, error, critical. If not set, all."""
    matchers: dict[str, str] = Field(default_factory=dict[str, str])
    """Labels that a model must have for its notifications to be sent here: {team: payments}."""
    events: Annotated[
        tuple[Annotated[Event, one_of(*EVENTS)], ...],
        BeforeValidator(split, json_schema_input_type=str | list[str]),
        Field(min_length=1),
    ] = ("alarms",)
    """What to send, one or several of: alarms; retraining (a model has been worse for `retraining_after`);
    comparisons (a challenger is better or worse than its champion, see `monitors.comparisons`); digest (the
    list of models that are worse by the fleet's rule, see `digest`)."""
    timeout: Wait = 10_000
    """Maximum duration of an attempt to deliver."""
    ca_file: ReadableFile | None = None
    """Certificates to trust, in PEM format. If not set, the system's certificates."""

    @model_validator(mode="after")
    def _complete(self) -> ReceiverSection:
        for kind, fields in _FIELDS.items():
            for key in fields:
                if kind != self.type and key in self.model_fields_set:
                    raise ValueError(f"{key} is for receivers of type {kind}, this one is {self.type}")
        kind = KINDS[self.type]
        if kind.groups and "retraining" in self.events:
            raise ValueError(
                f"type {self.type} is sent alarms only, retraining goes to a webhook or a person"
            )
        for key in ("url", *(own.name for own in kind.keys if own.holds == "secret")):
            require_one_form(self, key)
        if not kind.default_url and self.url is None and self.url_file is None:
            raise ValueError(f"type {self.type} needs url or url_file")
        for key in kind.keys:
            in_files = {"secret": f"{key.name}_file", "secrets": f"{key.name}_files"}.get(key.holds)
            if in_files is not None and not getattr(self, key.name) and not getattr(self, in_files):
                advice = f"; {key.advice}" if key.advice else ""
                raise ValueError(f"type {self.type} needs {key.name} or {in_files}{advice}")
        return self

    @model_validator(mode="after")
    def _reads_digests(self) -> ReceiverSection:
        if "digest" in self.events:
            if not KINDS[self.type].reads_digests:
                raise ValueError(
                    f"type {self.type} is sent what begins and ends, digest goes to webhook or slack"
                )
            if self.severities is not None and "info" not in self.severities:
                raise ValueError("events: [digest] needs the severity info, which severities leaves out")
        return self

    def read_url(self) -> str | None:
        """Return the URL, from its file if it is in one; None without a URL."""
        return _content(self.url, self.url_file)

    def read_own(self, key: OwnKey) -> Any:
        """Return the value of a key of this type of receiver; secrets are read from their files and parsed.

        Raises
        ------
        UnusableSecretError
            If a secret cannot be used.
        """
        given = getattr(self, key.name)
        if key.holds == "secret":
            return key.parse(_content(given, getattr(self, f"{key.name}_file")) or "")
        if key.holds != "secrets":
            return given
        inline = [(f"{key.name}[{i}]", secret.get_secret_value()) for i, secret in enumerate(given)]
        files = enumerate(getattr(self, f"{key.name}_files"))
        return [
            _parsed(key, where, secret)
            for where, secret in [*inline, *((f"{key.name}_files[{i}]", _text(file)) for i, file in files)]
        ]


class UnusableSecretError(ValueError):
    """A secret cannot be used by its type of receiver; the text does not show it."""


def _parsed(key: OwnKey, where: str, secret: str) -> Any:
    try:
        return key.parse(secret)
    except ValueError as error:
        raise UnusableSecretError(f"{where}: {error}") from None


def _content(given: SecretStr | None, file: Path | None) -> str | None:
    return given.get_secret_value() if given else _text(file) if file else None


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip()


class RuleSection(Section):
    """Rule for the alarms of some models and detectors. Unset keys default to those of `alerts`."""

    detector: str = "*"
    """Name of a detector, or a pattern with *, ? and [abc]."""
    model: str = "*"
    """Name of a model, or a pattern likewise."""
    severity: SeverityName | None = None
    """Severity: info, warning, error or critical. A severity set here also applies to verdicts on models with
    imbalanced classes."""
    cooldown: Duration | None = None
    """An alarm whose event time differs by less than this from that of the last announced one is not
    announced, not even when this time is over and its verdict still holds. A verdict that alternates is."""
    min_outcomes: Annotated[int, Bounded(least=0)] | None = None
    """Number of outcomes that a model needs before its alarms are announced. A verdict that still holds by
    then is announced then."""


class DigestSection(Section):
    """Digests of the models that are worse by the fleet's rule, for receivers with `events: [digest]`."""

    every: Annotated[Duration, Lasting("1h", "31d")] = 86_400_000
    """Time between two digests. They are at its multiples since 1970 in UTC: 1d is at midnight."""
    send_empty: bool = False
    """Send a digest, too, if no model is listed and none has left since the digest before."""


class AlertsSection(Section):
    """Receivers and rules of alarms. `streamwatch alerts test` sends a test notification to the receivers."""

    receivers: tuple[ReceiverSection, ...] = ()
    """Receivers of notifications: {name: oncall, type: webhook, url: …, secrets_files: […]}, or type
    alertmanager (url), slack (url_file) or pagerduty (routing_key_file). Further keys: severities, timeout,
    ca_file, matchers, events and, for alertmanager, repeat_interval and labels. Without receivers, alarms
    appear in metrics, API and log only."""
    rules: tuple[RuleSection, ...] = ()
    """Exceptions for some models or detectors; the first match applies: {model: fraud-*, severity: critical,
    cooldown: 1h}. Keys: detector, model, severity, cooldown, min_outcomes."""
    severity: SeverityName = "warning"
    """Severity of alarms to which no rule applies: info, warning, error or critical. A verdict by accuracy on
    a model that recognises its rare classes well above chance is info (if the largest class has 90 % of the
    labels or more)."""
    cooldown: Duration = 600_000
    """An alarm whose event time differs by less than this from that of the last announced one of its model
    and detector is not announced, not even when this time is over and its verdict still holds. A verdict that
    alternates is announced; one on a challenger is announced when this time is over."""
    min_outcomes: Annotated[int, Bounded(least=0)] = 100
    """Number of outcomes that a model needs before its alarms are announced. A verdict that still holds by
    then is announced then."""
    incident_outcomes: Annotated[int, Bounded(least=0)] = 2_500
    """Maximum distance, in outcomes of the model, between alarms that form one incident and one
    notification."""
    resolve_timeout: Wait = 86_400_000
    """Time after its newest alarm at which an open alarm of a detector is resolved although the error has not
    come back down: the new level is accepted."""
    stale_after: Duration = 3_600_000
    """Age beyond which alarms found while catching up are sent as one digest."""
    digest_interval: Wait = 600_000
    """Time from the first alarm in a digest until it is sent, if the daemon has not caught up by then."""
    digest_size: Count = 20
    """Maximum number of alarms, of notifications, or of pairs of a worse model and an opponent, listed in a
    digest."""
    digest: DigestSection = DigestSection()
    """Digests of the models that are worse, for receivers with `events: [digest]`. They have
    nothing to do with `digest_interval`."""
    group_wait: Duration = 10_000
    """Time for which a notification waits for those of other models. Does not apply to Alertmanager, which
    groups by itself."""
    max_per_minute: Count = 5
    """Maximum number of notifications that a receiver is sent within a minute. If there are more, one digest
    of all is sent instead. Does not apply to Alertmanager."""
    retraining_after: Wait | None = None
    """Time for which a model must have been worse before receivers with `events: [retraining]` are
    notified. If not set, they never are."""
    give_up_after: Wait = 86_400_000
    """Time after which a notification that could not be delivered is dropped, logged and counted."""
    max_pending: Count = 10_000
    """Maximum number of notifications that wait for a receiver. Beyond it, the oldest is dropped."""
    external_url: Annotated[str | None, link("https://streamwatch.example.com")] = None
    """URL under which people reach the daemon's page, for links: https://streamwatch.example.com."""

    @model_validator(mode="after")
    def _timed(self) -> AlertsSection:
        for receiver in self.receivers:
            if "retraining" in receiver.events and self.retraining_after is None:
                raise ValueError(
                    f"receiver {receiver.name!r} with events: [retraining] needs retraining_after"
                )
        return self

    @model_validator(mode="after")
    def _distinct(self) -> AlertsSection:
        names = [receiver.name for receiver in self.receivers]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two receivers are named {name!r}")
        return self


RESERVED: Final = frozenset(
    (
        "alertname",
        "challenger",
        "champion",
        "class",
        "detector",
        "fold",
        "forgetting",
        "instance",
        "job",
        "label_topic",
        "le",
        "model",
        "opponent",
        "receiver",
        "runbook_url",
        "segment",
        "service",
        "severity",
        "subject",
        "topic",
        "value",
    )
)
"""Names of labels that alerts have, and series that rules and dashboards join with `model_info`."""
_MOST_BYTES: Final = 128


class ModelRuleSection(Section):
    """Labels of the models whose names match a pattern."""

    model: Annotated[str, Field(min_length=1)] = "*"
    """Name of a model, or a pattern with *, ? and [abc]; `[` alone is written [[]."""
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    """Labels by name: {team: payments}."""
    severity: SeverityName | None = None
    """Severity of the models' alarms where no rule of `alerts.rules` sets one: info, warning, error or
    critical."""
    runbook_url: Annotated[str | None, link("https://wiki.example.com/models")] = None
    """URL of a page that says what to do if one of the models gets worse."""

    @field_validator("labels")
    @classmethod
    def _names(cls, labels: dict[str, str]) -> dict[str, str]:
        for name, value in labels.items():
            if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) or name.startswith("__"):
                raise ValueError(
                    f"expected label names of letters, digits and _ that do not begin with __, got {name!r}"
                )
            if name in RESERVED:
                raise ValueError(f"label {name!r} is reserved: series or alerts have one of this name")
            if not value or len(value.encode()) > _MOST_BYTES or not value.isprintable():
                raise ValueError(
                    f"expected 1 to {_MOST_BYTES} bytes of printable text for label {name!r}, got {value!r}"
                )
        return labels


class ModelsSection(Section):
    """Labels of models: who owns them, how bad their alarms are, and what to do."""

    rules: tuple[ModelRuleSection, ...] = ()
    """Rules by pattern: {model: fraud-*, labels: {team: payments}, severity: critical, runbook_url: …}. Of
    several that match, the first that sets a label, the severity or the runbook applies. Labels are shown in
    notifications, in the metric model_info, on the page and in the API."""
