"""Values that can be read and make no sense are refused with their range, and keys that nobody can open."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from streamwatch.settings import SettingsError, load

MINIMAL = "kafka: {bootstrap_servers: 'localhost:9092'}\ntopics: {predictions: predictions, labels: labels}\n"


def complaint(folder: Path, text: str) -> str:
    file = folder / "streamwatch.yaml"
    file.write_text(MINIMAL + text)
    with pytest.raises(SettingsError) as caught:
        load(file, (), {})
    return str(caught.value).replace(str(file), "FILE")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("join: {max_pending: true}", "join.max_pending in FILE: expected a number, got true"),
        ("join: {max_labels: yes}", "join.max_labels in FILE: expected a number, got true"),
        ("state: {min_free_megabytes: on}", "state.min_free_megabytes in FILE: expected a number, got true"),
        (
            "monitors: {forgetting: [sliding: {size: true}]}",
            "monitors.forgetting[0].size in FILE: expected a number, got true",
        ),
        ("join: {horizon: 0s}", "join.horizon in FILE: must be 1ms to 520w, got 0s"),
        ("join: {horizon: 600w}", "join.horizon in FILE: must be 1ms to 520w, got 600w"),
        ("state: {commit_interval: 100d}", "state.commit_interval in FILE: must be 1ms to 10m, got 14w2d"),
        ("state: {commit_interval: 0s}", "state.commit_interval in FILE: must be 1ms to 10m, got 0s"),
        ("http: {header_timeout: 0s}", "http.header_timeout in FILE: must be 100ms to 1h, got 0s"),
        ("http: {max_connections: 2}", "http.max_connections in FILE: must be in [8, 65536], got 2"),
        ("http: {max_buffered_bytes: 1}", "http.max_buffered_bytes in FILE: must be at least 1048576, got 1"),
    ],
)
def test_a_value_without_sense_is_refused_with_its_range(tmp_path: Path, text: str, line: str) -> None:
    shown = complaint(tmp_path, text)
    assert shown in {line, line.replace("14w2d", "100d")}


@pytest.mark.parametrize("form", ["PKCS8", "TraditionalOpenSSL"])
def test_an_encrypted_key_without_its_password_is_explained(tmp_path: Path, form: str) -> None:
    issued = trustme.CA().issue_cert("localhost")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(certificate)
    private = load_pem_private_key(issued.private_key_pem.bytes(), None)
    encryption = serialization.BestAvailableEncryption(b"hunter2")
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, getattr(serialization.PrivateFormat, form), encryption
        )
    )
    files = f"certificate_file: {certificate}, key_file: {key}"
    shown = complaint(tmp_path, f"http: {{tls: {{{files}}}}}")
    assert shown.startswith(f"http.tls in FILE: the private key in {key} is encrypted")
    assert "openssl pkey" in shown
    (tmp_path / "other.yaml").write_text(
        f"kafka: {{bootstrap_servers: 'b:1', security: {{protocol: SSL, {files}}}}}\n"
        f"{MINIMAL.splitlines()[1]}\n"
    )
    with pytest.raises(SettingsError, match="is encrypted: give key_password_file"):
        load(tmp_path / "other.yaml", (), {})
