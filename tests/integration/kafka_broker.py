"""Apache Kafka, one KRaft node in a child process, from jars that Maven resolves once.

`KafkaBroker` keeps its ports and its folder when it is stopped, killed and started again.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import IPv4Address
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from zlib import crc32

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509.oid import NameOID

from tests.ports import free_ports

HERE = Path(__file__).parent / "kafka"
CACHE = Path(__file__).parents[2] / ".cache" / "kafka"
START_SECONDS = 300
RESOLVE_SECONDS = 1_200
BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of Java for what ends soon: compiling well and collecting garbage in threads would not pay."""


class Unavailable(Exception):  # noqa: N818
    """Apache Kafka cannot be had on this machine, and why."""


def jars() -> Path:
    """The folder with the broker's jars; resolved through Maven once, then cached."""
    return _resolved("libs", "pom.xml", "kafka_2.13-*.jar")


def connect_jars() -> Path:
    """The folder with Kafka Connect's jars; resolved through Maven once, then cached."""
    return _resolved("connect", "connect.pom.xml", "connect-runtime-*.jar")


def _resolved(name: str, pom: str, expected: str) -> Path:
    folder = CACHE / name
    if not any(folder.glob(expected)):
        maven = shutil.which("mvn")
        if maven is None:
            raise Unavailable("no mvn on the PATH to resolve Apache Kafka with")
        fresh = CACHE / f"{name}-{os.getpid()}"
        command = [maven, "-q", "-B", "-f", str(HERE / pom), "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={fresh}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_SECONDS, check=False)
        if done.returncode != 0:
            shutil.rmtree(fresh, ignore_errors=True)
            raise Unavailable(f"Maven did not resolve Apache Kafka: {done.stdout.strip()[:300]}")
        if not folder.exists():
            fresh.rename(folder)
    return folder


@cache
def class_archive() -> Path:
    """The broker's classes as Java maps them into memory: a start takes half the processor time.

    One that starts and is stopped writes them, once for this Java and these jars.
    """
    java = Path(shutil.which("java") or "java").resolve()
    of = crc32(f"{java} {java.stat().st_mtime_ns} {jars()}".encode())
    archive = CACHE / f"classes-{of:08x}.jsa"
    with (CACHE / "classes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # workers that need it meanwhile wait for it
        if not archive.exists():
            with TemporaryDirectory(dir=CACHE) as folder:
                written = Path(folder) / archive.name
                writing = KafkaBroker(Path(folder) / "broker", classes_into=written)
                writing.start()
                writing.stop()
                written.rename(archive)
    return archive


def unavailable() -> str:
    """Why no Apache Kafka can be had here, or an empty string."""
    return "" if os.environ.get("STREAMWATCH_TEST_BOOTSTRAP") else unavailable_jars()


def unavailable_jars() -> str:
    """Why no Apache Kafka can be started here, or an empty string."""
    if shutil.which("java") is None:
        return "no Java runtime on the PATH"
    try:
        jars()
    except (Unavailable, subprocess.TimeoutExpired, OSError) as error:
        return str(error)
    return ""


def unavailable_connect() -> str:
    """Why no Kafka Connect can be started here, or an empty string."""
    if (reason := unavailable_jars()) != "":
        return reason
    try:
        connect_jars()
    except (Unavailable, subprocess.TimeoutExpired, OSError) as error:
        return str(error)
    return ""


class KafkaBroker:
    """One broker.

    Parameters
    ----------
    folder
        Where its log, keys and configuration live.
    settings
        Lines added to its configuration.
    beside
        A broker whose cluster it joins as a second node; None makes it a cluster of its own.
    options
        Options of its Java machine.
    classes_into
        Where it writes its classes when it is stopped; None: it reads those that another one wrote.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        beside: KafkaBroker | None = None,
        options: Sequence[str] = (),
        classes_into: Path | None = None,
    ) -> None:
        self._options = tuple(options)
        self._classes_into = classes_into
        self.folder = folder
        names = ("plain", "sasl", "ssl", "controller", "behind", "proxy")
        self.ports: dict[str, int] = dict(zip(names, free_ports(len(names)), strict=True))
        self._child: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        template = Template((HERE / "server.properties").read_text())
        ports = self.ports if beside is None else {**self.ports, "controller": beside.ports["controller"]}
        lines = [template.substitute(ports, folder=folder)]
        if beside is not None:
            lines += [self._without_controller(lines[0]), "process.roles=broker", "node.id=2"]
        lines += [f"{name}={value}" for name, value in (settings or {}).items()]
        self._properties = folder / "server.properties"
        self._properties.write_text("\n".join(lines))
        self.make_certificate()
        random = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # One that begins with a hyphen would be taken for an option.
        self.cluster = "k" + random[1:] if beside is None else beside.cluster
        self._format(first=beside is None)

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.ports['plain']}"

    @property
    def sasl_servers(self) -> str:
        """Lets in `reader` with the password `secret`, by PLAIN or SCRAM-SHA-256."""
        return f"127.0.0.1:{self.ports['sasl']}"

    @property
    def ssl_servers(self) -> str:
        return f"127.0.0.1:{self.ports['ssl']}"

    @property
    def cafile(self) -> Path:
        return self.folder / "broker.pem"

    def start(self) -> None:
        """Start the broker and wait until it serves."""
        assert self._child is None
        with (self.folder / "broker.log").open("ab") as out:
            options = ["-Xmx512m", f"-Dlog4j2.configurationFile={HERE}/log4j2.properties", *self._options]
            if self._classes_into is not None:
                options.append(f"-XX:ArchiveClassesAtExit={self._classes_into}")
            self._child = subprocess.Popen(
                self._java(*options, "kafka.Kafka", str(self._properties)), stdout=out, stderr=out
            )
        deadline = time.monotonic() + START_SECONDS
        while not _answers(self.ports["plain"]):
            assert time.monotonic() < deadline, f"the broker does not serve: {self.complaints()}"
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(0.05)
                pytest.fail(f"the broker ended: {self.complaints()}")

    def kill(self) -> None:
        """End it as a power cut would end the process."""
        self._end("kill")

    def stop(self) -> None:
        self._end("terminate")

    def complaints(self) -> str:
        return (self.folder / "broker.log").read_text()[-2_000:]

    def _end(self, how: str) -> None:
        child, self._child = self._child, None
        if child is not None:
            getattr(child, how)()
            child.wait(START_SECONDS)

    def _java(self, *arguments: str) -> list[str]:
        read = [] if self._classes_into is not None else [f"-XX:SharedArchiveFile={class_archive()}"]
        return ["java", "-cp", f"{jars()}/*", *BRIEF, *read, *arguments]

    def alter_user(self, *change: str) -> None:
        """Change the credentials of `reader`, as an administrator does."""
        server = ["--bootstrap-server", self.bootstrap_servers, "--alter"]
        named = ["--entity-type", "users", "--entity-name", "reader"]
        command = self._java("kafka.admin.ConfigCommand", *server, *named, *change)
        subprocess.run(command, check=True, capture_output=True, timeout=START_SECONDS)

    @staticmethod
    def _without_controller(properties: str) -> str:
        """The line of listeners, without that of the controller."""
        [line] = [line for line in properties.splitlines() if line.startswith("listeners=")]
        return line[: line.index(",CONTROLLER:")]

    def _format(self, *, first: bool) -> None:
        format_ = ["format", "-t", self.cluster, "-c", str(self._properties)]
        command = self._java("kafka.tools.StorageTool", *format_)
        if first:
            command += ["--add-scram", "SCRAM-SHA-256=[name=reader,password=secret]"]
        subprocess.run(command, check=True, capture_output=True, timeout=START_SECONDS)

    def make_certificate(self, expires: datetime | None = None) -> None:
        """Write a new key and a certificate that signs itself, valid for 30 days or until `expires`."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
        ends = datetime.now(UTC) + timedelta(days=30) if expires is None else expires
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(ends - timedelta(days=31))
            .not_valid_after(ends)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
            )
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, SHA256())
        )
        kept_with = BestAvailableEncryption(b"streamwatch")
        store = serialize_key_and_certificates(b"broker", key, certificate, None, kept_with)
        (self.folder / "broker.p12").write_bytes(store)
        self.cafile.write_bytes(certificate.public_bytes(Encoding.PEM))


def _answers(port: int) -> bool:
    """Whether the broker on this port answers an ApiVersions request (v0), not only accepts connections."""
    request = b"\x00\x00\x00\x0b\x00\x12\x00\x00\x00\x00\x00\x01\x00\x01t"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.settimeout(5)
            connection.sendall(request)
            return len(connection.recv(8)) > 0
    except OSError:
        return False
