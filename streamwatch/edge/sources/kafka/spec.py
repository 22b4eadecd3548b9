"""What an operator can choose about reading from Kafka, as frozen values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeAlias

SecurityProtocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM"]
"""Ways of proving who one is; the last is OAUTHBEARER with a token that AWS's signer makes."""


@dataclass(frozen=True, slots=True)
class OAuthSpec:
    """Endpoint that grants tokens to a client by its credentials (RFC 6749, section 4.4)."""

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    extensions: tuple[tuple[str, str], ...] = ()
    """Names and values sent to brokers beside each token (KIP-342)."""
    cafile: str | None = None
    """PEM file of the authorities trusted to sign the endpoint's certificate; None trusts the system's."""
    timeout_seconds: float = 8.0
    """How long the endpoint is waited for; less than `KafkaSpec.request_timeout_ms`, so that it is named."""


@dataclass(frozen=True, slots=True)
class At:
    """The first record at or after this record time."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Ago:
    """The first record at or after this long before the moment of the first start."""

    duration_ms: int


Start: TypeAlias = Literal["earliest", "latest"] | At | Ago

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_AGO = re.compile(r"-(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_EPOCH_MS = re.compile(r"\d{9,16}")


def parse_start(text: str) -> Start:
    """Read `earliest`, `latest`, `-2h`, `2025-06-01T00:00:00Z` or milliseconds since the epoch.

    A timestamp without an offset is UTC.

    Raises
    ------
    ValueError
        Naming the forms that are understood.
    """
    word = text.strip()
    if word == "earliest":
        return "earliest"
    if word == "latest":
        return "latest"
    ago = _AGO.fullmatch(word)
    if ago:
        return Ago(round(float(ago[1]) * _UNITS_MS[ago[2]]))
    if _EPOCH_MS.fullmatch(word):
        return At(int(word))
    try:
        moment = datetime.fromisoformat(word)
    except ValueError:
        raise ValueError(
            "expected earliest, latest, a duration back such as -2h, a timestamp such as 2025-06-01T00:00:00Z"
            f" or milliseconds since the epoch, got {text!r}"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return At(round(moment.timestamp() * 1_000))


@dataclass(frozen=True, slots=True)
class KafkaSpec:
    """Addresses of the brokers, credentials, where to begin, and how long to wait for what.

    Durations that bound waiting are wall-clock; none of them influences what is counted.
    """

    bootstrap_servers: str = "localhost:9092"
    """`host:port`, several separated by commas."""
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism = "PLAIN"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    oauth: OAuthSpec | None = None
    """Where tokens come from, with OAUTHBEARER."""
    aws_region: str | None = None
    """Region of the cluster, with AWS_MSK_IAM."""
    cafile: str | None = None
    """PEM file of the authorities trusted to sign the brokers' certificates; None trusts the system's."""
    certfile: str | None = None
    """PEM file of the client's own certificate, where brokers ask for one."""
    keyfile: str | None = None
    keyfile_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True
    client_id: str = "streamwatch"
    group_id: str | None = None
    """Consumer group under which positions are committed for lag tools; None commits none."""
    start_from: Start = "earliest"
    """Where a partition without a stored position begins; resolved once per partition."""
    on_data_loss: Literal["continue", "fail"] = "continue"
    """When the log no longer holds the next offset: go on at the nearest one and count, or stop."""
    max_poll_records: int = 8_000
    """Records that one poll delivers; they are decoded and evaluated in turns between which health checks
    answer. What a poll costs beside its records is shared by so many of a backlog."""
    max_partition_fetch_bytes: int = 1_048_576
    max_batch_bytes: int = 64 * 1_048_576
    """A batch that decompresses to more is passed over and counted."""
    max_record_bytes: int = 1_048_576
    """A record with more in key, value and headers is passed over and counted."""
    poll_timeout_ms: int = 200
    """How long one poll waits for records when there are none."""
    request_timeout_ms: int = 10_000
    watermark_grace_ms: int = 10_000
    """A partition is caught up only by a fetch newer than this."""
    alive_ms: int = 5_000
    """Kafka counts as down when no broker answered anything for this long."""
    metadata_refresh_ms: int = 30_000
    """How often new partitions are looked for."""
    topic_grace_ms: int = 1_000
    """A topic absent at the start is looked for once more after this: brokers learn of a new one in turn."""
    denied_ms: int = 5_000
    """What is refused for this long ends reading: rights and passwords just given take a moment."""
    stall_ms: int = 30_000
    """A connection that brought nothing for this long is given up and made anew."""
    backoff_initial_ms: int = 250
    backoff_max_ms: int = 10_000
    commit_interval_ms: int = 5_000
    required_topics: tuple[tuple[str, str], ...] = ()
    """Topics that are not read and yet have to exist at the start, each with the key of its setting."""
    stop_timeout_ms: int = 3_000
