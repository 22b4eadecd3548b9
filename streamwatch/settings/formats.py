"""A topic's `format`, and `schema_registry`: where schemas of formats that need one come from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator

from streamwatch.settings.durations import Duration, Lasting
from streamwatch.settings.numbers import Bounded
from streamwatch.settings.sections import ReadableFile, Section

OWN_KEYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "json": (),
        "avro": ("schema_id", "subject", "version", "schema_file"),
        "protobuf": ("schema_id", "subject", "version", "schema_file", "message"),
        "json_schema": (),
    }
)
"""Formats, and the keys that each takes."""
FORMATS = tuple(OWN_KEYS)


def one_format(text: object) -> object:
    """Check the name of a format; the error names what there is to choose from."""
    if text not in FORMATS:
        raise ValueError(f"expected one of {', '.join(FORMATS)}, got {text!r}")
    return text


def typed(value: object) -> object:
    """`avro` and `{type: avro}` say the same."""
    return {"type": value} if isinstance(value, str) else value


class FormatSection(Section):
    """Format of a topic's values, and the schema if records do not name it."""

    type: Annotated[
        str,
        BeforeValidator(one_format, json_schema_input_type=str),
        Field(json_schema_extra={"enum": list(FORMATS)}),
    ] = "json"
    """Format: json, avro, protobuf or json_schema."""
    schema_id: Annotated[int, Bounded(least=1)] | None = None
    """avro, protobuf: id of the schema in the registry, for records that do not name it."""
    subject: Annotated[str, Field(min_length=1)] | None = None
    """avro, protobuf: subject of the schema in the registry, for records that do not name it."""
    version: Annotated[int, Bounded(least=1)] | None = None
    """avro, protobuf: version of the subject. If not set, the latest one at the start."""
    schema_file: ReadableFile | None = None
    """avro, protobuf: file with the schema (.avsc, .proto), for records that do not name it."""
    message: Annotated[str, Field(min_length=1)] | None = None
    """protobuf: full name of the message, for records that do not name it. If not set, the first message of
    the schema."""

    @model_validator(mode="after")
    def _fits(self) -> FormatSection:
        for key in sorted(self.model_fields_set - {"type"} - set(OWN_KEYS[self.type])):
            if getattr(self, key) is not None:
                raise ValueError(f"{key} is not for format {self.type}")
        given = [key for key in ("schema_id", "subject", "schema_file") if getattr(self, key) is not None]
        if len(given) > 1:
            raise ValueError(f"give one of schema_id, subject and schema_file, got {', '.join(given)}")
        if self.version is not None and self.subject is None:
            raise ValueError("version needs a subject")
        if self.message is not None and not given:
            raise ValueError("message needs schema_id, subject or schema_file: else records name it")
        return self

    def read_schema(self) -> str | None:
        """The schema in the file; None without one."""
        return None if self.schema_file is None else self.schema_file.read_text(encoding="utf-8")


Format = Annotated[FormatSection, BeforeValidator(typed, json_schema_input_type=str | FormatSection)]


class SchemaRegistrySection(Section):
    """Registry that speaks Confluent's protocol (Confluent, Apicurio's ccompat, Karapace, Redpanda)."""

    url: str | None = None
    """URL, such as https://registry:8081 or, with a path, https://apicurio/apis/ccompat/v7. If not set, no
    registry is used."""
    username: str | None = None
    """User name for HTTP basic authentication, or the key of an API key."""
    password_file: ReadableFile | None = None
    """File that contains the password. A trailing newline is ignored."""
    password: SecretStr | None = None
    """Password. Prefer `password_file`."""
    token_file: ReadableFile | None = None
    """File that contains a bearer token, instead of a user name and password."""
    ca_file: ReadableFile | None = None
    """Certificates to trust, in PEM format. If not set, the system's certificates."""
    timeout: Annotated[Duration, Lasting("100ms", "5m")] = 10_000
    """Maximum time to fetch a schema with everything it refers to."""

    @field_validator("url")
    @classmethod
    def _plain_url(cls, url: str | None) -> str | None:
        if url is not None and not re.fullmatch(r"https?://[^/\s@?#]+(/[^\s@?#]*)?", url):
            raise ValueError(
                "expected a URL such as https://registry:8081, users and passwords in keys of their own "
                "(not shown)"
            )
        return url

    @model_validator(mode="after")
    def _complete(self) -> SchemaRegistrySection:
        if self.password is not None and self.password_file is not None:
            raise ValueError("give password or password_file, not both")
        secret = self.password is not None or self.password_file is not None
        if secret != (self.username is not None):
            raise ValueError("give username and password_file together")
        if self.token_file is not None and self.username is not None:
            raise ValueError("give token_file or username, not both")
        return self

    def read_password(self) -> str | None:
        """The password, wherever it was given."""
        return self.password.get_secret_value() if self.password else _line(self.password_file)

    def read_token(self) -> str | None:
        """The bearer token."""
        return _line(self.token_file)


def _line(file: Path | None) -> str | None:
    return file.read_text(encoding="utf-8").strip("\r\n") if file else None
