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
        (
            "state: {min_free_megabytes: false}",
            "state.min_free_megabytes in FILE: expected a number, got false",
        ),
        (
            "monitors: {forgetting: [sliding: {size: true}]}",
            "monitors.forgetting[0].size in FILE: expected a number, got true",
        ),
        ("join: {horizon: 0s}", "join.horizon in FILE: must be 1s to 520w, got 0s"),
        ("join: {horizon: 999ms}", "join.horizon in FILE: must be 1s to 520w, got 999ms"),
        ("join: {horizon: 600w}", "join.horizon in FILE: must be 1s to 520w, got 600w"),
        ("state: {commit_interval: 100d}", "state.commit_interval in FILE: must be 1ms to 10m, got 14w2d"),
        ("state: {commit_interval: 0s}", "state.commit_interval in FILE: must be 1ms to 10m, got 0s"),
        ("http: {header_timeout: 0s}", "http.header_timeout in FILE: must be 100ms to 1h, got 0s"),
        (
            "state: {directory: /a, backups: {directory: /a/b}}",
            "state in FILE: backups.directory: expected a directory outside of state.directory /a, got /a/b",
        ),
        ("http: {max_connections: 2}", "http.max_connections in FILE: must be in [8, 65536], got 2"),
        (
            f"join: {{max_pending: {10**19}}}",
            "join.max_pending in FILE: must be at most 9,007,199,254,740,992, got a larger number",
        ),
        (
            f"monitors: {{verdict_outcomes: {10**30}}}",
            (
                "monitors.verdict_outcomes in FILE: verdict_outcomes must be at most 9,007,199,254,740,992, "
                "got a larger number"
            ),
        ),
        (
            "monitors: {utility: {costs: {a: {b: 1.0e+308}, b: {a: -1.0e+308}}, other: 0}}",
            "monitors.utility in FILE: costs must differ by a finite number, got -1e+308 and 1e+308",
        ),
        ("http: {max_buffered_bytes: 1}", "http.max_buffered_bytes in FILE: must be at least 1048576, got 1"),
    ],
)
def test_a_value_without_sense_is_refused_with_its_range(tmp_path: Path, text: str, line: str) -> None:
    shown = complaint(tmp_path, text)
    assert shown in {line, line.replace("14w2d", "100d")}


@pytest.mark.parametrize(
    "name", ["own.example:9877", "https://own.example", "own.example.", "*.example", "[::1]", ""]
)
def test_a_host_name_that_no_request_can_have_is_refused(tmp_path: Path, name: str) -> None:
    shown = complaint(tmp_path, f"http: {{allowed_hosts: [own.example, '::1', '{name}']}}")
    assert shown == (
        "http.allowed_hosts in FILE: expected a host name without scheme, port and final dot, such as "
        f"streamwatch.example.com, got '{name}'"
    )


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


@pytest.mark.parametrize(
    "server", ["", ":9092", "b:", "b:abc", "b:65536", "b c:1", "[b]:1", "[::1", "a..b:1", f"{'b' * 64}:1"]
)
def test_an_address_that_no_client_can_use_is_refused(tmp_path: Path, server: str) -> None:
    file = tmp_path / "other.yaml"
    file.write_text(f"kafka: {{bootstrap_servers: ['b:1', '{server}']}}\n{MINIMAL.splitlines()[1]}\n")
    with pytest.raises(SettingsError) as caught:
        load(file, (), {})
    where = f"kafka.bootstrap_servers in {file}: "
    assert str(caught.value) == f"{where}expected brokers as host:port, ports up to 65535, got {server!r}"


def test_an_address_with_a_password_is_not_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        load(None, ["kafka.bootstrap_servers=me:hunter2@b:1", "topics.predictions=p", "topics.labels=l"], {})
    assert "hunter2" not in str(caught.value)
    assert "got an address (not shown)" in str(caught.value)


@pytest.mark.parametrize(
    "server", ["b", "b:9092", "my_broker.local:1", "10.0.0.1:0", "::1", "[fe80::1%eth0]:1"]
)
def test_addresses_that_clients_can_use_are_taken(tmp_path: Path, server: str) -> None:
    file = tmp_path / "other.yaml"
    file.write_text(f"kafka: {{bootstrap_servers: '{server}'}}\n{MINIMAL.splitlines()[1]}\n")
    assert load(file, (), {}).kafka.bootstrap_servers == (server,)


@pytest.mark.parametrize("duration", [f"{2**53 + 2}ms", f"{'9' * 400}d"])
def test_a_duration_that_no_sum_of_times_could_hold_is_refused(tmp_path: Path, duration: str) -> None:
    line = "time.settle in FILE: expected a duration of 285,000 years at most, got a longer one"
    assert complaint(tmp_path, f"time: {{settle: {duration}}}") == line


@pytest.mark.parametrize("start", ["-9999999999d", "٣٣٣٣٣٣٣٣٣"])
def test_a_start_beyond_any_time_is_refused(tmp_path: Path, start: str) -> None:
    file = tmp_path / "other.yaml"
    file.write_text(f"kafka: {{bootstrap_servers: b, start_from: '{start}'}}\n{MINIMAL.splitlines()[1]}\n")
    with pytest.raises(SettingsError, match="expected earliest, latest"):
        load(file, (), {})


def test_half_of_a_surrogate_pair_is_refused_wherever_it_comes_from(tmp_path: Path) -> None:
    shown = complaint(tmp_path, 'http: {listen: "\\ud800:1"}\n')
    assert shown == "FILE: half of a surrogate pair, write the character itself (line 3, column 16)"
    topics = ["topics.predictions=p", "topics.labels=l", "kafka.bootstrap_servers=b"]
    with pytest.raises(SettingsError, match=r"^kafka\.client_id in --set: not UTF-8$"):
        load(None, [*topics, "kafka.client_id=\udcff"], {})
