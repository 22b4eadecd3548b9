"""TLS to brokers."""

from __future__ import annotations

import ssl

from aiokafka.helpers import create_ssl_context

from streamwatch.edge.sources.kafka.spec import KafkaSpec


def ssl_context(spec: KafkaSpec) -> ssl.SSLContext | None:
    """Context by which brokers and the client are authenticated; None without TLS."""
    if spec.security_protocol not in ("SSL", "SASL_SSL"):
        return None
    context: ssl.SSLContext = create_ssl_context(
        cafile=spec.cafile, certfile=spec.certfile, keyfile=spec.keyfile, password=spec.keyfile_password
    )
    context.check_hostname = spec.check_hostname
    return context
