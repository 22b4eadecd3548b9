"""Settings of the source for Kafka, as frozen values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeAlias

SecurityProtocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM"]
"""SASL mechanisms; AWS_MSK_IAM is OAUTHBEARER with a token that AWS's signer makes."""


@dataclass(frozen=True, slots=True)
class OAuthSpec:
    """Endpoint that grants tokens to a client by its credentials (RFC 6749, section 4.4)."""

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    extensions: tuple[tuple[str, str], ...] = ()
    """SASL extensions (name, value) sent to brokers with each token (KIP-342)."""
    cafile: str | None = None
    """PEM file of the authorities trusted to sign the endpoint's certificate; None trusts the system's."""
    timeout_seconds: float = 8.0
    """Time limit of a request; less than `KafkaSpec.request_timeout_ms`, so that errors name the endpoint."""


@dataclass(frozen=True, slots=True)
class At:
    """Start at the first record with this record time or a later one."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Ago:
    """Start at the first record from this long before the moment of the first start."""

    duration_ms: int


Start: TypeAlias = Literal["earliest", "latest"] | At | Ago

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_AGO = re.compile(r"-(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_EPOCH_MS = re.compile(r"\d{9,16}")


def parse_start(text: str) -> Start:
    """Parse `earliest`, `latest`, `-2h`, `2025-06-01T00:00:00Z` or milliseconds since the epoch.

    A timestamp without an offset is UTC.

    Raises
    ------
    ValueError
        The text is in none of the forms, which the message lists.
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
    """Addresses of the brokers, credentials, where to begin, and limits.

    Time limits are in wall-clock time; none of them influences results.
    """

    bootstrap_servers: str = "localhost:9092"
    """`host:port`, several separated by commas."""
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism = "PLAIN"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    oauth: OAuthSpec | None = None
    """Endpoint that grants tokens, with OAUTHBEARER."""
    aws_region: str | None = None
    """Region of the cluster, with AWS_MSK_IAM."""
    cafile: str | None = None
    """PEM file of the authorities trusted to sign the brokers' certificates; None trusts the system's."""
    certfile: str | None = None
    """PEM file of the client's certificate, where brokers require one."""
    keyfile: str | None = None
    keyfile_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True
    client_id: str = "streamwatch"
    group_id: str | None = None
    """Consumer group to which positions are committed for lag tools; None: not committed."""
    start_from: Start = "earliest"
    """Position at which a topic without stored positions begins, resolved once per partition. Partitions that
    are added to a topic later begin at offset 0."""
    on_data_loss: Literal["continue", "fail"] = "continue"
    """Reaction to data loss: count it and continue, or stop."""
    max_poll_records: int = 16_000
    """Records of one poll at most. They are decoded and evaluated in parts, between which health checks
    answer; in a backlog, more records share the fixed cost of a poll."""
    max_partition_fetch_bytes: int = 1_048_576
    max_batch_bytes: int = 64 * 1_048_576
    """Limit on the decompressed bytes of a batch; a larger one is skipped and counted."""
    max_record_bytes: int = 1_048_576
    """Limit on the bytes of key, value and headers of a record; a larger one is skipped and counted."""
    poll_timeout_ms: int = 200
    """Time that one poll waits for records when there are none."""
    request_timeout_ms: int = 10_000
    watermark_grace_ms: int = 10_000
    """A partition is caught up only if a fetch of it was answered within this time."""
    alive_ms: int = 5_000
    """Silence of all brokers after which Kafka counts as down."""
    metadata_refresh_ms: int = 30_000
    """Interval of listing topics, to find new partitions."""
    topic_grace_ms: int = 1_000
    """Time after which a topic missing at the start is looked up once more, as it may be new."""
    denied_ms: int = 5_000
    """Time of refused access after which reading ends: new rights take a moment to reach brokers."""
    stall_ms: int = 30_000
    """Silence after which a connection is replaced."""
    backoff_initial_ms: int = 250
    backoff_max_ms: int = 10_000
    commit_interval_ms: int = 5_000
    required_topics: tuple[tuple[str, str], ...] = ()
    """(topic, key of its setting) of topics that must exist at the start although they are not read."""
    stop_timeout_ms: int = 3_000
