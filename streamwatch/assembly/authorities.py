"""Checks of the files of certificates and keys that settings name for connections by TLS."""

from __future__ import annotations

import ssl
from pathlib import Path

from streamwatch.settings import SettingsError
from streamwatch.settings.sections import SecuritySection


def checked_authorities(file: Path | None, key: str) -> str | None:
    """Return the path of a file of certificates to trust; None where the setting `key` names none.

    Raises
    ------
    SettingsError
        If the file has no certificates in PEM format.
    """
    if file is None:
        return None
    try:
        ssl.create_default_context(cafile=file)
    except ssl.SSLError:
        raise SettingsError(f"{key}: expected PEM certificates in {file}") from None
    return str(file)


def require_certificates(section: SecuritySection) -> None:
    """Check the files for TLS to the brokers, if the protocol uses it.

    Raises
    ------
    SettingsError
        If a file has no certificates in PEM format, or certificate, key and password do not fit each other.
    """
    if section.protocol not in ("SSL", "SASL_SSL"):
        return
    checked_authorities(section.ca_file, "kafka.security.ca_file")
    if section.certificate_file is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        # Without a password, OpenSSL would ask a terminal for that of an encrypted key.
        context.load_cert_chain(section.certificate_file, section.key_file, section.read_key_password() or "")
    except (OSError, ValueError):  # SSLError is an OSError; ValueError: the password is too long
        in_file = section.key_file or "the same file (kafka.security.key_file is not set)"
        raise SettingsError(
            f"kafka.security.certificate_file: expected a PEM certificate in {section.certificate_file}, its "
            f"key in {in_file} and the key's password, if it has one, in kafka.security.key_password_file"
        ) from None
