"""What no retry and no restart will cure, in words that say what to change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import aiokafka.errors as kafka_errors

from streamwatch.edge.sources.kafka.spec import KafkaSpec

REMEDIES: Final = (
    (
        r"UnsupportedSaslMechanism|IllegalSaslState|AuthenticationMethodNotSupported",
        "kafka.security.mechanism",
    ),
    (r"(?i)authentication", "kafka.security.username, its password and kafka.security.mechanism"),
    (r"CERTIFICATE_VERIFY_FAILED", "kafka.security.ca_file and kafka.security.check_hostname"),
    (r"(?i)certificate", "kafka.security.certificate_file and kafka.security.key_file"),
    (r"GroupAuthorizationFailed", "the right to READ the group kafka.group_id"),
    (r"TopicAuthorizationFailed", "the right to READ the topics"),
)
"""What to look at, by what the client or the brokers said."""


def not_let_in(said: str, spec: KafkaSpec) -> str | None:
    """Say what to change where brokers do not let this client in; None if waiting may help.

    Parameters
    ----------
    said
        The error, and what the client complained of.
    spec
        Where the brokers are.
    """
    for pattern, remedy in REMEDIES:
        if re.search(pattern, said):
            return f"Kafka at {spec.bootstrap_servers} does not let this client in: check {remedy} ({said})"
    return None


def error_name(code: int) -> str:
    """Name of an error of the protocol, and its code, which tells those apart that have none here."""
    return f"{kafka_errors.for_code(code).__name__} ({code})"


# What an operator has to grant, said where brokers deny it.


class ReadDenied(Exception):  # noqa: N818 - it names what is the case
    """Topics that this user may see and not read; no restart cures it.

    Attributes
    ----------
    topics
        The topics that were denied.
    """

    def __init__(self, topics: Sequence[str], spec: KafkaSpec) -> None:
        self.topics = tuple(topics)
        super().__init__(
            f"{_listed(topics)} on {spec.bootstrap_servers} may not be read by {_who(spec)}: grant READ, "
            f"such as `kafka-acls.sh --bootstrap-server … --add --allow-principal {_principal(spec)} "
            f"--operation Read {' '.join(f'--topic {topic}' for topic in topics)}`"
        )


class WriteDenied(Exception):  # noqa: N818 - it names what is the case
    """The topic for dead letters, which this user may not write."""

    def __init__(self, topic: str, spec: KafkaSpec) -> None:
        super().__init__(
            f"kafka.dead_letter_topic {topic!r} on {spec.bootstrap_servers} may not be written by "
            f"{_who(spec)}: grant WRITE, such as `kafka-acls.sh --bootstrap-server … --add --allow-principal "
            f"{_principal(spec)} --operation Write --topic {topic}`"
        )


def _listed(topics: Sequence[str]) -> str:
    return f"topic{'s' if len(topics) > 1 else ''} {', '.join(repr(topic) for topic in topics)}"


def _who(spec: KafkaSpec) -> str:
    if spec.security_protocol.startswith("SASL") and spec.username:
        return f"user {spec.username!r}"
    return "the client certificate's name" if spec.certfile else "an anonymous client"


def _principal(spec: KafkaSpec) -> str:
    if spec.security_protocol.startswith("SASL") and spec.username:
        return f"User:{spec.username}"
    return "User:<name in the certificate>" if spec.certfile else "User:ANONYMOUS"
