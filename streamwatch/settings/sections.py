"""The sections of the configuration file, except those that have files of their own.

A field's description is what `streamwatch config example` writes above it.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    model_validator,
)

from streamwatch.core.specs import Conflicts
from streamwatch.settings.durations import Duration, Lasting
from streamwatch.settings.numbers import Bounded

Count = Annotated[int, Bounded(least=1)]


class Section(BaseModel):
    """A mapping of the file: frozen, and a key it does not know is an error."""

    # `defer_build`: a section is compiled when it is first read, most of them within that which holds them.
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, defer_build=True)


def readable(file: Path) -> Path:
    """Check that a file can be read; what does not look like a path may be the secret itself."""
    try:
        with file.open("rb") as opened:
            opened.read(1)
            return file
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no name of a file"
        shown = str(file) if _looks_like_a_path(file) else "what is named there (not shown)"
        raise ValueError(f"cannot read {shown}: {reason}") from None


def _looks_like_a_path(file: Path) -> bool:
    try:
        return file.parent.is_dir() and (len(file.parts) > 1 or bool(file.suffix)) and len(str(file)) < 255
    except (OSError, ValueError):
        return False


def encrypted(key_file: Path) -> bool:
    """Tell whether a PEM file holds a private key with a password, which OpenSSL would ask a terminal for."""
    text = key_file.read_bytes()
    return b"-----BEGIN ENCRYPTED PRIVATE KEY" in text or b"Proc-Type: 4,ENCRYPTED" in text


ReadableFile = Annotated[Path, AfterValidator(readable)]


def split(value: object) -> object:
    """`a:9092,b:9092` and `[a:9092, b:9092]` say the same."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


class SecuritySection(Section):
    """Authentication to Kafka and encryption of the way there."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    """SASL mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."""
    username: str | None = None
    """SASL user."""
    password_file: ReadableFile | None = None
    """File with the SASL password (a trailing newline is ignored)."""
    password: SecretStr | None = None
    """The SASL password itself: better in STREAMWATCH__KAFKA__SECURITY__PASSWORD, best in `password_file`."""
    ca_file: ReadableFile | None = None
    """Certificates to trust, PEM; the system's if absent."""
    certificate_file: ReadableFile | None = None
    """Client certificate, PEM."""
    key_file: ReadableFile | None = None
    """Private key of the client certificate, PEM."""
    key_password_file: ReadableFile | None = None
    """File with the password of the private key."""
    check_hostname: bool = True
    """Whether the brokers' certificates must carry their host names."""

    @model_validator(mode="after")
    def _complete(self) -> SecuritySection:
        if self.password is not None and self.password_file is not None:
            raise ValueError("give password or password_file, not both")
        if self.protocol.startswith("SASL") and self.username is None:
            raise ValueError(f"protocol {self.protocol} needs a username")
        if self.key_file is not None and self.key_password_file is None and encrypted(self.key_file):
            raise ValueError(f"the private key in {self.key_file} is encrypted: give key_password_file")
        return self

    def read_password(self) -> str | None:
        """The SASL password, wherever it was given."""
        return self.password.get_secret_value() if self.password else _content(self.password_file)

    def read_key_password(self) -> str | None:
        """The password of the private key."""
        return _content(self.key_password_file)


def _content(file: Path | None) -> str | None:
    return file.read_text(encoding="utf-8").rstrip("\r\n") if file else None


def started(text: object) -> object:
    """Check the notation of a starting point; YAML may have read a timestamp or a number already."""
    written = text.isoformat() if isinstance(text, date) else str(text).strip()
    if re.fullmatch(r"earliest|latest|-\d+(\.\d+)?(ms|[smhdw])|\d{9,16}", written):
        return written
    try:
        datetime.fromisoformat(written)
    except ValueError:
        raise ValueError(
            "expected earliest, latest, ago such as -2h, a point in time such as 2025-01-31T00:00:00Z or "
            f"milliseconds since 1970, got {written!r}"
        ) from None
    return written


class KafkaSection(Section):
    """Source of events. All partitions of the topics are read; no consumer group shares them out."""

    bootstrap_servers: Annotated[
        tuple[str, ...],
        Field(min_length=1),
        BeforeValidator(split, json_schema_input_type=str | list[str]),
    ]
    """Brokers to start from: `host:port`, several with commas or as a list."""
    start_from: Annotated[str, BeforeValidator(started)] = "earliest"
    """Where a first start begins: earliest, latest, a point in time (2025-01-31T00:00:00Z) or ago (-2h)."""
    on_data_loss: Literal["continue", "fail"] = "continue"
    """When the log no longer holds the next record: continue at the nearest one (counted), or fail."""
    max_batch_bytes: Annotated[int, Bounded(least=1_048_576, most=2_147_483_647)] = 67_108_864
    """A batch of records that decompresses to more bytes is passed over and counted (`on_data_loss`)."""
    max_record_bytes: Annotated[int, Bounded(least=1_024, most=67_108_864)] = 1_048_576
    """A record with more bytes in key, value and headers is invalid (`record_too_large`)."""
    group_id: str | None = None
    """Consumer group under which positions are committed, for lag tools only; none if absent."""
    dead_letter_topic: str | None = None
    """Topic for invalid records as they were, with their place and reason as headers; none if absent."""
    client_id: str = "streamwatch"
    """How the brokers' logs and quotas call this client."""
    security: SecuritySection = SecuritySection()
    """Authentication and encryption."""


class OnExpiry(Section):
    """An unlabelled prediction is evaluated as if this had been its label."""

    assume: str
    """The class."""


def assumed(value: object) -> object:
    """Check the only two forms there are; a class written as number or boolean is its text."""
    match value:
        case "discard" | OnExpiry():
            return value
        case {"assume": str() | int() as label, **rest} if not rest:
            return {"assume": str(label).lower() if isinstance(label, bool) else str(label)}
        case _:
            raise ValueError(f"expected discard or {{assume: <class>}}, got {value!r}")


Expiry = Annotated[Literal["discard"] | OnExpiry, BeforeValidator(assumed)]


class JoinSection(Section):
    """Rules by which predictions meet their labels. Durations are in record time."""

    horizon: Annotated[Duration, Lasting("1ms", "520w")] = 14 * 86_400_000
    """How long a prediction waits for its label."""
    early_horizon: Duration = 3_600_000
    """How long a label that came first waits for its prediction."""
    dedup_horizon: Duration | None = None
    """How long a resolved prediction is remembered, to tell duplicates; `horizon` if absent."""
    max_pending: Count = 5_000_000
    """Waiting predictions kept at most; then the oldest is evicted and counted."""
    max_labels: Count = 5_000_000
    """Waiting and retained labels kept at most."""
    max_dedup_entries: Count = 5_000_000
    """Resolved predictions remembered at most."""
    on_expiry: Expiry = "discard"
    """Without a label in `horizon`: discard, or {assume: <class>} where negatives are never labelled."""
    order: Literal["resolution", "prediction_time"] = "resolution"
    """Outcomes are evaluated in the order they become known, or in the order of their predictions."""
    reorder_window: Duration = 60_000
    """With `order: prediction_time`: how long a resolved outcome is held back for earlier predictions."""
    max_reordered: Count = 1_000_000
    """Outcomes held back at most."""
    retain_unmatched: bool = True
    """Keep labels nobody predicted yet; false where the label topic also serves other systems."""
    conflicts: Conflicts = "first"
    """Which prediction counts where a model predicts an id again before its label, with another class: first,
    last, or both (estimates are of the first, and the last is compared with it)."""


class TimeSection(Section):
    """One clock and one order: how long a record waits for records of other partitions that precede it."""

    settle: Duration = 1_000
    """Wait before a partition found at its end is not waited for; above producers' clock skew and latency."""
    max_hold_back: Duration = 600_000
    """Wait at most so long for a partition that was at its end and then failed; above any transaction."""
    max_future: Duration = 300_000
    """A producer's timestamp further ahead of its partition than this has to be confirmed by what follows."""
    max_held_megabytes: Count = 64
    """Memory for records that wait; beyond it partitions that are ahead are not asked for more."""


class LogSection(Section):
    """The daemon's own log, on stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe internal events that are written: debug, info, warning or error."""
    format: Literal["auto", "json", "pretty"] = "auto"
    """json, pretty, or auto: pretty on a terminal, json elsewhere."""
