"""What an operator has to grant, said where brokers deny it."""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.edge.sources.kafka.spec import KafkaSpec


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
