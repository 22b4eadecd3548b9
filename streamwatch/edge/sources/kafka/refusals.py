"""What no retry and no restart will cure, in words that say what to change."""

from __future__ import annotations

import re
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
