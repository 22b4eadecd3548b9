"""The sections of the configuration file, except those that have files of their own.

The docstring below a key is what `streamwatch config example` writes above it. It is read when it is asked
for: pydantic's `use_attribute_docstrings` reads all whenever a process starts, a tenth of all imports.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from datetime import datetime
from functools import cache
from ipaddress import IPv6Address
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema

from streamwatch.core.specs import Conflicts
from streamwatch.edge.decoders.fields import NAME, is_name
from streamwatch.settings.values import Bounded, Duration, Lasting


class Described(BaseModel):
    """Model whose JSON Schema has the docstrings below its keys as their descriptions."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        schema = handler(core_schema)
        keys = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in descriptions(cls).items():
            keys[name]["description"] = text
        return schema


def descriptions(section: type[BaseModel]) -> dict[str, str]:
    """Texts by key: what its field was given, else the docstring below it, here or in a base class."""
    found: dict[str, str] = {}
    for each in reversed(section.__mro__):
        if issubclass(each, Described):
            found |= _docstrings(each.__module__).get(each.__qualname__, {})
    given = {name: field.description or found.get(name) for name, field in section.model_fields.items()}
    return {name: text for name, text in given.items() if text}


@cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """Docstrings below the annotated names of a module's classes, by class and name."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {each.name: _below_names(each.body) for each in tree.body if isinstance(each, ast.ClassDef)}


def _below_names(body: list[ast.stmt]) -> dict[str, str]:
    found: dict[str, str] = {}
    for before, after in pairwise(body):
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name):
            text = after.value if isinstance(after, ast.Expr) else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                found[before.target.id] = inspect.cleandoc(text.value)
    return found


Count = Annotated[int, Bounded(least=1)]


class Section(Described):
    """A mapping of the file: frozen; unknown keys are errors."""

    # `defer_build`: a section's validator is built at its first use, usually as part of an outer section's.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def readable(file: Path) -> Path:
    """Check that a file can be read; the error hides a text that may be a secret instead of a path."""
    try:
        with file.open("rb") as opened:
            opened.read(1)
            return file
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no name of a file"
        shown = str(file) if _looks_like_a_path(file) else "what is named there (not shown)"
        raise ValueError(f"cannot read {shown}: {reason}") from None


def text_in(file: Path) -> Path:
    """Check that a file can be read as UTF-8; the error shows nothing of its contents."""
    try:
        readable(file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"expected text in UTF-8 in {file}, got other bytes") from None
    return file


def _looks_like_a_path(file: Path) -> bool:
    try:
        return file.parent.is_dir() and (len(file.parts) > 1 or bool(file.suffix)) and len(str(file)) < 255
    except (OSError, ValueError):
        return False


def encrypted(key_file: Path) -> bool:
    """Return whether a PEM file has a private key with a password, which OpenSSL would ask a terminal for."""
    text = key_file.read_bytes()
    return b"-----BEGIN ENCRYPTED PRIVATE KEY" in text or b"Proc-Type: 4,ENCRYPTED" in text


ReadableFile = Annotated[Path, AfterValidator(readable)]
TextFile = Annotated[Path, AfterValidator(text_in)]
"""File with a secret or a schema, which is read as UTF-8."""


def secret(given: SecretStr | None, file: Path | None) -> str | None:
    """Return a secret: what was given, else the text of its file without line ends around it; else None."""
    if given:
        return given.get_secret_value()
    return file.read_text(encoding="utf-8").strip("\r\n") if file else None


def require_one_form(section: Section, key: str) -> None:
    """Raise ValueError if a secret is given both as `<key>` and in the file `<key>_file`."""
    if getattr(section, key) is not None and getattr(section, f"{key}_file") is not None:
        raise ValueError(f"give {key} or {key}_file, not both")


def split(value: object) -> object:
    """Split a text at commas; return other values unchanged."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


class OAuthSection(Section):
    """Endpoint that grants tokens for the mechanism OAUTHBEARER to a client by its credentials."""

    token_url: str | None = None
    """URL that grants tokens, such as https://login/realms/main/protocol/openid-connect/token."""
    client_id: str | None = None
    """Client id, as registered there."""
    client_secret_file: TextFile | None = None
    """File that contains the client's secret. A trailing newline is ignored."""
    client_secret: SecretStr | None = None
    """Client's secret. Prefer `client_secret_file`, or the environment variable
    STREAMWATCH__KAFKA__SECURITY__OAUTH__CLIENT_SECRET."""
    scope: str | None = None
    """Scope to ask for; several are separated by spaces."""
    extensions: dict[str, str] = Field(default_factory=dict)
    """Names and values that brokers get beside the token, such as {logicalCluster: lkc-1, identityPoolId:
    pool-1} for Confluent Cloud."""
    ca_file: ReadableFile | None = None
    """Certificates to trust at the endpoint, in PEM format. If not set, the system's certificates."""

    @field_validator("token_url")
    @classmethod
    def _plain_url(cls, url: str | None) -> str | None:
        if url is not None and not re.fullmatch(r"https?://[^/\s@?#]+(/[^\s@#]*)?", url):
            raise ValueError(
                "expected a URL such as https://login/oauth2/token, client and secret in keys of their own "
                "(not shown)"
            )
        return url

    @field_validator("extensions")
    @classmethod
    def _sendable(cls, extensions: dict[str, str]) -> dict[str, str]:
        for name, value in extensions.items():
            if (
                name == "auth"
                or not re.fullmatch("[A-Za-z]+", name)
                or not re.fullmatch(r"[!-~ \t\r\n]*", value)
            ):
                raise ValueError(
                    "expected names of letters, other than auth, and values of ASCII characters, got "
                    f"{name!r}"
                )
        return extensions

    @model_validator(mode="after")
    def _one_secret(self) -> OAuthSection:
        require_one_form(self, "client_secret")
        return self

    @property
    def complete(self) -> bool:
        """Return whether URL, client id and secret are set."""
        secret = self.client_secret is not None or self.client_secret_file is not None
        return self.token_url is not None and self.client_id is not None and secret

    def read_secret(self) -> str | None:
        """Return the client's secret, from its file if it is in one; None without a secret."""
        return secret(self.client_secret, self.client_secret_file)


class SecuritySection(Section):
    """Authentication to Kafka, and encryption of the connection."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Security protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM"] = "PLAIN"
    """SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER (with `oauth`) or AWS_MSK_IAM (with
    `aws_region` and the extra `msk`)."""
    username: str | None = None
    """SASL user name, for PLAIN and SCRAM."""
    password_file: TextFile | None = None
    """File that contains the SASL password. A trailing newline is ignored."""
    password: SecretStr | None = None
    """SASL password. Prefer `password_file`, or the environment variable
    STREAMWATCH__KAFKA__SECURITY__PASSWORD."""
    oauth: OAuthSection = OAuthSection()
    """Where tokens for OAUTHBEARER come from."""
    aws_region: str | None = None
    """Region of the cluster, for AWS_MSK_IAM, such as eu-central-1. Credentials are found as AWS's own tools
    find them."""
    ca_file: ReadableFile | None = None
    """Certificates to trust, in PEM format. If not set, the system's certificates."""
    certificate_file: ReadableFile | None = None
    """Client certificate, in PEM format."""
    key_file: ReadableFile | None = None
    """Private key of the client certificate, in PEM format."""
    key_password_file: TextFile | None = None
    """File that contains the password of the private key."""
    check_hostname: bool = True
    """Require that the brokers' certificates match their host names."""

    @model_validator(mode="after")
    def _complete(self) -> SecuritySection:
        require_one_form(self, "password")
        if self.protocol.startswith("SASL"):
            self._require_credentials()
        elif self.mechanism in ("OAUTHBEARER", "AWS_MSK_IAM"):
            raise ValueError(f"mechanism {self.mechanism} needs protocol SASL_SSL, got {self.protocol}")
        if self.key_file is not None and self.key_password_file is None and encrypted(self.key_file):
            raise ValueError(f"the private key in {self.key_file} is encrypted: give key_password_file")
        return self

    def _require_credentials(self) -> None:
        """Check that the settings that the mechanism needs are set."""
        match self.mechanism:
            case "OAUTHBEARER":
                if not self.oauth.complete:
                    raise ValueError(
                        "mechanism OAUTHBEARER needs oauth.token_url, oauth.client_id and "
                        "oauth.client_secret_file"
                    )
            case "AWS_MSK_IAM":
                if self.protocol != "SASL_SSL":
                    raise ValueError(f"mechanism AWS_MSK_IAM needs protocol SASL_SSL, got {self.protocol}")
                if self.aws_region is None or not re.fullmatch(r"[a-z]{2}(-[a-z]+)+-\d+", self.aws_region):
                    raise ValueError("mechanism AWS_MSK_IAM needs aws_region, such as eu-central-1")
            case _:
                if self.username is None:
                    raise ValueError(f"protocol {self.protocol} needs a username")
                if self.password is None and self.password_file is None:
                    raise ValueError(f"protocol {self.protocol} needs password_file, or password")

    def read_password(self) -> str | None:
        """Return the SASL password, from its file if it is in one; None without a password."""
        return secret(self.password, self.password_file)

    def read_key_password(self) -> str | None:
        """Return the password of the private key; None without one."""
        return secret(None, self.key_password_file)


def started(text: object) -> object:
    """Check the notation of `start_from`, which is a number in milliseconds; return it as text."""
    written = str(text).strip()
    if re.fullmatch(r"earliest|latest|-[0-9]{1,9}(\.[0-9]{1,9})?(ms|[smhdw])|[0-9]{9,16}", written):
        return written
    try:
        datetime.fromisoformat(written)
    except ValueError:
        raise ValueError(
            "expected earliest, latest, ago such as -2h, a point in time such as 2025-01-31T00:00:00Z or "
            f"milliseconds since 1970, got {written!r}"
        ) from None
    return written


_BROKER: Final = re.compile(r"(?:\[(?P<ipv6>[^\[\]]+)\]|(?P<host>[^\s:/@\[\]]+))(?::(?P<port>[0-9]{1,5}))?")


def reachable(servers: tuple[str, ...]) -> tuple[str, ...]:
    """Check that each address is a host or `host:port`; the error hides one that may contain a password."""
    for server in servers:
        if not _is_broker(server):
            got = "an address (not shown)" if "@" in server or "://" in server else repr(server)
            raise ValueError(f"expected brokers as host:port, ports up to 65535, got {got}")
    return servers


def _is_broker(server: str) -> bool:
    found = _BROKER.fullmatch(server)
    if found is None or int(found["port"] or 0) > 65_535:
        return is_ipv6(server)
    if found["ipv6"] is not None:
        return is_ipv6(found["ipv6"])
    try:
        found["host"].encode("idna")
    except UnicodeError:  # a part of the name is empty or too long
        return False
    return True


def is_ipv6(text: str) -> bool:
    """Tell whether a text is an IPv6 address."""
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


class KafkaSection(Section):
    """Connection to Kafka. The daemon reads all partitions of the topics itself, without a consumer group."""

    bootstrap_servers: Annotated[
        tuple[str, ...],
        Field(min_length=1),
        BeforeValidator(split, json_schema_input_type=str | list[str]),
        AfterValidator(reachable),
    ]
    """Brokers for the first connection, as `host:port`; several as a list or separated by commas."""
    start_from: Annotated[str, BeforeValidator(started)] = "earliest"
    """Where the first start begins to read: earliest, latest, a point in time (2025-01-31T00:00:00Z), or a
    time before now (-2h)."""
    on_data_loss: Literal["continue", "fail"] = "continue"
    """What to do if the next record is no longer in the log: continue with the nearest one and count the
    loss, or fail."""
    max_batch_bytes: Annotated[int, Bounded(least=1_048_576, most=2_147_483_647)] = 67_108_864
    """Maximum decompressed size of a batch of records. A larger batch is skipped and counted as data loss
    (`on_data_loss`)."""
    max_record_bytes: Annotated[int, Bounded(least=1_024, most=67_108_864)] = 1_048_576
    """Maximum size of key, value and headers of a record. A larger record is invalid (`record_too_large`)."""
    group_id: Annotated[str, Field(min_length=1)] | None = None
    """Consumer group under which positions are committed, for tools that show lag. If not set, none are
    committed."""
    dead_letter_topic: str | None = None
    """Topic to which invalid records are copied unchanged, with their origin and the reason in headers. If
    not set, none are."""
    client_id: str = "streamwatch"
    """Client id, by which the brokers' logs and quotas identify the daemon."""
    security: SecuritySection = SecuritySection()
    """Authentication and encryption."""


class OnExpiry(Section):
    """Evaluate an unlabelled prediction as if this had been its label."""

    assume: str
    """Class to assume as the label."""


def assumed(value: object) -> object:
    """Check that a value is `discard` or `{assume: <class>}`; classes as numbers or booleans become texts."""
    match value:
        case "discard" | OnExpiry():
            return value
        case {"assume": str() | int() as label, **rest} if not rest:
            name = str(label).lower() if isinstance(label, bool) else str(label)
            if not is_name(name):
                raise ValueError(f"a class must be {NAME}, got {name!r}")
            return {"assume": name}
        case _:
            raise ValueError(f"expected discard or {{assume: <class>}}, got {value!r}")


Expiry = Annotated[Literal["discard"] | OnExpiry, BeforeValidator(assumed)]


class JoinSection(Section):
    """Rules of the join of predictions with labels. Durations are in record time."""

    horizon: Annotated[Duration, Lasting("1s", "520w")] = 14 * 86_400_000
    """How long a prediction waits for its label."""
    early_horizon: Duration = 3_600_000
    """How long a label that arrives first waits for its prediction."""
    dedup_horizon: Duration | None = None
    """How long a settled prediction is remembered, to recognise duplicates. If not set, as long as
    `horizon`."""
    max_pending: Count = 5_000_000
    """Maximum number of waiting predictions. Beyond it, the oldest is evicted and counted."""
    max_labels: Count = 5_000_000
    """Maximum number of waiting and retained labels. Beyond it, the oldest is evicted and counted."""
    max_dedup_entries: Count = 5_000_000
    """Maximum number of settled predictions that are remembered. Beyond it, the oldest is forgotten and
    counted."""
    on_expiry: Expiry = "discard"
    """What to do with a prediction that has no label after `horizon`: discard it, or evaluate it as {assume:
    <class>} if that class is never labelled."""
    order: Literal["resolution", "prediction_time"] = "resolution"
    """Order in which outcomes are evaluated: resolution (as they become known) or prediction_time (as they
    were predicted)."""
    reorder_window: Duration = 60_000
    """With `order: prediction_time`, how long a resolved outcome is held back for earlier predictions."""
    max_reordered: Count = 1_000_000
    """Maximum number of outcomes that are held back."""
    retain_unmatched: bool = True
    """Keep labels that have no prediction yet. Set to false if the label topic also serves other systems."""
    conflicts: Conflicts = "first"
    """Which prediction counts if a model predicts an id again, with another class, before its label arrives:
    first, last, or both (evaluate the first and compare the last with it)."""


class TimeSection(Section):
    """One clock and one order: how long a record waits for earlier records of other partitions."""

    settle: Duration = 1_000
    """How long to wait before a partition that was found at its end no longer holds back the others. Must
    exceed the clock skew and the latency of producers."""
    max_hold_back: Duration = 600_000
    """How long to wait for a partition that was at its end and then became unreadable, or needs a schema that
    cannot be fetched. Must exceed the longest transaction."""
    max_future: Duration = 300_000
    """How far a producer's timestamp may run ahead of its partition before later records must confirm it."""
    max_held_megabytes: Count = 64
    """Memory for waiting records. Beyond it, partitions that are ahead are not read further."""


class LogSection(Section):
    """The daemon's own log, written to stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Minimum severity of the internal events that are logged: debug, info, warning or error."""
    format: Literal["auto", "json", "pretty"] = "auto"
    """Format of the log: json, pretty, or auto (pretty on a terminal, json elsewhere)."""


class FoldsSection(Section):
    """k-fold distributed prequential validation: several copies of each model, distinguished by `fold`."""

    scheme: Literal["cross-validation", "split-validation", "bootstrap"] | None = None
    """Scheme that decides which fold tests and which trains on an id: cross-validation, split-validation or
    bootstrap (docs/folds). If not set, predictions that name a fold are refused."""
    k: Annotated[int, Bounded(least=1, most=1_000)] = 10
    """Number of folds of every model, numbered 0 to k - 1. Each fold is evaluated separately."""
    prequential: bool = True
    """Let every fold test every id before it trains. If false, a fold tests only where the scheme says so."""

    @model_validator(mode="after")
    def _enough(self) -> FoldsSection:
        if self.k < 2 and self.scheme in ("cross-validation", "split-validation"):
            raise ValueError(f"k must be at least 2 under {self.scheme}, got {self.k}")
        return self


class OutcomesSection(Section):
    """Topic of evaluated outcomes, for warehouses and other programs (docs/how-to/outcomes-topic)."""

    topic: str | None = None
    """Topic to which each evaluated outcome is written once, as JSON with the model as key. It must exist;
    with one partition, outcomes have one order, with several the order holds for each model. If not set, none
    are written."""


class EventsSection(Section):
    """Topic of alarms, changed verdicts and notifications."""

    topic: str | None = None
    """Topic to which each event is written once, as JSON with the model as key. It must exist. If not set,
    none are written."""


class LedgerSection(Section):
    """Record of what is in `outcomes.topic` and `events.topic`, written in the same transactions."""

    topic: str = "streamwatch-ledger"
    """Compacted topic with one partition. It is created if it does not exist, and may serve several
    deployments."""
    transactional_id: Annotated[str, Field(min_length=1)] = "streamwatch"
    """Kafka's `transactional.id`, and the key in the ledger. It must differ between deployments: of two
    processes with the same one, the older ends, unless they are replicas (`standby.enabled`)."""


class StandbySection(Section):
    """Several daemons with the same settings, of which one publishes and notifies (docs/how-to/standby)."""

    enabled: bool = False
    """Whether this daemon is one of several replicas. Each has a state of its own and evaluates everything;
    one publishes and notifies, and another takes over when it stops. They find each other by
    `ledger.transactional_id` and `ledger.topic`."""
    session_timeout: Annotated[Duration, Lasting("1s", "5m")] = 6_000
    """Time without a heartbeat of the holder after which another is elected. Brokers refuse less than their
    `group.min.session.timeout.ms` (6 s if unset)."""


class BackupsSection(Section):
    """Copies of the open state: by `streamwatch state backup`, on SIGUSR1, or at intervals."""

    directory: Path | None = None
    """Directory in which each backup becomes a directory of its own, from which a daemon can be started. On
    the file system of `state.directory` a backup takes little time and room. If not set, none are made."""
    interval: Annotated[Duration, Lasting("1m", "52w")] | None = None
    """Time between backups. If not set, they are made only on request."""
    keep: Count = 3
    """Number of backups that are kept."""
    command: tuple[str, ...] = ()
    """Program and arguments to run after each backup, as [/usr/bin/rclone, copy]; the path of the backup is
    its last argument. If it fails, or is killed after an hour, the backup counts as failed."""


class StateSection(Section):
    """Location of the state, and how often it is committed."""

    kind: Literal["rocksdb", "memory"] = "rocksdb"
    """Where the state is kept: rocksdb (on disk, where it survives any crash) or memory (a restart reads the
    topics again)."""
    directory: Path = Path("streamwatch-state")
    """Directory of the RocksDB files. It is created if it does not exist, and is never shared by two
    daemons."""
    commit_interval: Annotated[Duration, Lasting("1ms", "10m")] = 1_000
    """Maximum time between commits; up to twice as long if a commit takes a tenth of it or more. A commit
    makes what was read durable and visible."""
    commit_events: Count = 20_000
    """Number of uncommitted events that trigger an earlier commit."""
    journal_outcomes: Count = 1_000_000
    """Maximum number of outcomes to evaluate again at a start, before snapshots of the models replace
    them; of more than 5,000 models, in proportion more. Each takes 7 to 10 bytes on disk, and 2 to 8 more
    for each score, by its precision. With many models, about as many are kept besides that snapshots cover
    already."""
    min_free_megabytes: Count = 512
    """Free disk space below which reading pauses."""
    join_memory_megabytes: Count = 200
    """Memory for entries of the join, at 110 bytes each; beyond it, the oldest entries are kept on disk."""
    backups: BackupsSection = BackupsSection()
    """Copies of the state while the daemon runs."""

    @model_validator(mode="after")
    def _apart(self) -> StateSection:
        copies, state = self.backups.directory, self.directory
        if self.kind == "rocksdb" and copies and copies.absolute().is_relative_to(state.absolute()):
            raise ValueError(
                f"backups.directory: expected a directory outside of state.directory {state}, got {copies}"
            )
        return self


class SparkSection(Section):
    """The job of `streamwatch spark`: the same rules on Spark Structured Streaming."""

    checkpoint: str | None = None
    """Required for Spark: where it keeps offsets and state, as a path or URL that the driver and the
    executors can reach."""
    results_topic: str = "streamwatch-results"
    """Compacted topic with one partition for the results of the job. It is created if it does not exist."""
    id_buckets: Annotated[int, Bounded(least=1, most=10_000)] = 4
    """Number of parts into which ids are divided, each joined by a task of its own. Fixed at the first
    start."""
    model_buckets: Annotated[int, Bounded(least=1, most=10_000)] = 3
    """Number of parts into which models are divided, each evaluated by a task of its own. Fixed at the first
    start."""
    interval: Annotated[Duration, Lasting("100ms", "1h")] = 10_000
    """Time from the start of one batch to the start of the next, unless a batch takes longer."""
    batch_records: Count = 500_000
    """Maximum number of records in a batch. It is exceeded only by records that have the same time."""
    configuration: dict[str, str] = Field(default_factory=dict)
    """Further configuration of Spark, such as {spark.executor.memory: 4g}."""
