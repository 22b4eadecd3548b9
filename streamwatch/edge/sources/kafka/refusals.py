"""Explains errors of connections, and names the setting to change where no retry helps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import aiokafka.errors as kafka_errors

from streamwatch.edge.sources.kafka.spec import KafkaSpec

AUTHENTICATION: Final = r"(?i)authentication"
REMEDIES: Final = (
    (
        r"UnsupportedSaslMechanism|IllegalSaslState|AuthenticationMethodNotSupported",
        "kafka.security.mechanism",
    ),
    (AUTHENTICATION, "kafka.security.username, its password and kafka.security.mechanism"),
    (r"CERTIFICATE_VERIFY_FAILED", "kafka.security.ca_file and kafka.security.check_hostname"),
    (r"(?i)certificate", "kafka.security.certificate_file and kafka.security.key_file"),
    (r"GroupAuthorizationFailed", "the right to READ the group kafka.group_id"),
    (r"TopicAuthorizationFailed", "the right to READ the topics"),
)
"""(pattern of an error, setting to check) for errors by which brokers refuse a client."""


class TokenSourceMissing(ValueError):  # noqa: N818 - it names what is the case
    """The package that signs tokens is not installed."""


TOKEN: Final = re.compile(r"Token(Denied|Unavailable): (.+)")
"""Pattern of an error of `tokens` in the client's log: its kind, and what to change."""
TOKEN_REFUSED: Final = {
    "OAUTHBEARER": "kafka.security.oauth.scope and kafka.security.oauth.extensions, and which issuer and "
    "audience the brokers expect",
    "AWS_MSK_IAM": "kafka.security.aws_region, the clock of this host, and that the role may do "
    "kafka-cluster:Connect",
}
"""Mechanism → what to check where brokers refuse its token."""


def of_token(message: str) -> str | None:
    """Return why no token was granted; None for any other error."""
    found = TOKEN.search(message)
    return None if found is None else found[2]


def not_let_in(message: str, spec: KafkaSpec) -> str | None:
    """Return what to change where brokers refuse this client; None where waiting may help.

    Parameters
    ----------
    message
        The error, and the client's last log line.
    spec
        Settings of the connection.
    """
    if (token := TOKEN.search(message)) is not None:
        denied = token[1] == "Denied"
        return f"no token for Kafka at {spec.bootstrap_servers}: {token[2]}" if denied else None
    by_token = TOKEN_REFUSED.get(spec.sasl_mechanism)
    for pattern, words in REMEDIES:
        if re.search(pattern, message):
            remedy = by_token if by_token and pattern == AUTHENTICATION else words
            return (
                f"Kafka at {spec.bootstrap_servers} does not let this client in: check {remedy} ({message})"
            )
    return None


# Probable causes of failed connections.


FAILED: Final = r"(?i)authentication ?failed"
MEANINGS: Final = (
    (r"Connect call failed|Connection refused", "nothing listens there: check kafka.bootstrap_servers"),
    (
        r"Name or service not known|nodename nor servname|Temporary failure in name",
        "the name cannot be resolved: check kafka.bootstrap_servers",
    ),
    (r"UnsupportedSaslMechanism", "the brokers do not offer {mechanism}: check kafka.security.mechanism"),
    (
        r"IllegalSaslState",
        "the port asks for no user, and kafka.security.protocol is {protocol}: set {without_user}",
    ),
    (
        FAILED,
        "user or password are wrong: check kafka.security.username and its password",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED",
        "its certificate is not trusted: check kafka.security.ca_file and kafka.security.check_hostname",
    ),
)
"""(pattern of the client's error, its probable cause)."""
CLOSED: Final = {
    "PLAINTEXT": "speaks TLS or asks for a user, and kafka.security.protocol is PLAINTEXT",
    "SASL_PLAINTEXT": "speaks TLS, and kafka.security.protocol is SASL_PLAINTEXT: set SASL_SSL",
    "SSL": "speaks no TLS, and kafka.security.protocol is SSL: set PLAINTEXT",
    "SASL_SSL": "speaks no TLS, and kafka.security.protocol is SASL_SSL: set SASL_PLAINTEXT",
}
"""Security protocol → probable cause, where a broker closes the connection without an answer."""


def explanation(client_error: str, spec: KafkaSpec) -> str | None:
    """Return the probable cause of a failed connection, with the setting to check; None if unknown.

    Parameters
    ----------
    client_error
        Error of the client.
    spec
        Settings of the connection.
    """
    protocol = spec.security_protocol
    if re.search(FAILED, client_error) and (look_at := TOKEN_REFUSED.get(spec.sasl_mechanism)):
        return f"the brokers refuse the token: check {look_at}"
    for pattern, meaning in MEANINGS:
        if re.search(pattern, client_error):
            without_user = "SSL" if protocol.endswith("SSL") else "PLAINTEXT"
            return meaning.format(mechanism=spec.sasl_mechanism, protocol=protocol, without_user=without_user)
    closed = r"^Unable connect to \S+: *$|WRONG_VERSION_NUMBER" if protocol.endswith("SSL") else r" closed$"
    return f"the port probably {CLOSED[protocol]}" if re.search(closed, client_error) else None


def error_name(code: int) -> str:
    """Return the name and code of an error of the protocol; aiokafka has no name for some."""
    return f"{kafka_errors.for_code(code).__name__} ({code})"


# Access that brokers deny, with the rights that an operator has to grant.


class ReadDenied(Exception):  # noqa: N818 - it names what is the case
    """Topics that this user may see but not read; a restart does not help.

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
    """A topic that is written by settings, and that this user may not write."""

    def __init__(self, setting: str, topic: str, spec: KafkaSpec) -> None:
        super().__init__(
            f"{setting} {topic!r} on {spec.bootstrap_servers} may not be written by "
            f"{_who(spec)}: grant WRITE, such as `kafka-acls.sh --bootstrap-server … --add --allow-principal "
            f"{_principal(spec)} --operation Write --topic {topic}`"
        )


def _listed(topics: Sequence[str]) -> str:
    return f"topic{'s' if len(topics) > 1 else ''} {', '.join(repr(topic) for topic in topics)}"


def _who(spec: KafkaSpec) -> str:
    if spec.security_protocol.startswith("SASL") and spec.sasl_mechanism == "AWS_MSK_IAM":
        return "the IAM role of this process"
    if spec.security_protocol.startswith("SASL") and spec.oauth is not None:
        return f"the principal of client {spec.oauth.client_id!r}"
    if spec.security_protocol.startswith("SASL") and spec.username:
        return f"user {spec.username!r}"
    return "the client certificate's name" if spec.certfile else "an anonymous client"


def _principal(spec: KafkaSpec) -> str:
    if spec.security_protocol.startswith("SASL") and spec.sasl_mechanism in TOKEN_REFUSED:
        return "User:<subject of the token>"
    if spec.security_protocol.startswith("SASL") and spec.username:
        return f"User:{spec.username}"
    return "User:<name in the certificate>" if spec.certfile else "User:ANONYMOUS"
