"""What TLS to brokers checks."""

from __future__ import annotations

import ssl

from streamwatch.edge.sources.kafka import KafkaSpec
from streamwatch.edge.sources.kafka.client import ssl_context


def test_tls_checks_certificates_and_names_unless_configured_otherwise():
    assert ssl_context(KafkaSpec()) is None
    strict = ssl_context(KafkaSpec(security_protocol="SASL_SSL"))
    assert strict is not None
    assert (strict.verify_mode, strict.check_hostname) == (ssl.CERT_REQUIRED, True)
    lenient = ssl_context(KafkaSpec(security_protocol="SSL", check_hostname=False))
    assert lenient is not None
    assert (lenient.verify_mode, lenient.check_hostname) == (ssl.CERT_REQUIRED, False)
