"""Formats and the schema registry in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from streamwatch.settings.topics import FormatSection, SchemaRegistrySection, TopicSection


def test_a_format_is_written_by_name_or_with_its_keys(tmp_path: Path) -> None:
    file = tmp_path / "event.avsc"
    file.write_text('"string"')
    assert TopicSection(name="t", format="avro").format == FormatSection(type="avro")  # type: ignore[arg-type]
    section = TopicSection(name="t", format={"type": "avro", "schema_file": str(file)})  # type: ignore[arg-type]
    assert section.format.read_schema() == '"string"'
    assert TopicSection(name="t").format == FormatSection(type="json")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"type": "xml"}, "expected one of json, avro, protobuf, json_schema, text, got 'xml'"),
        ({"type": "json", "schema_id": 1}, "schema_id is not for format json"),
        ({"type": "avro", "message": "a.B"}, "message is not for format avro"),
        ({"type": "avro", "schema_id": 1, "subject": "s"}, "give one of schema_id, subject and schema_file"),
        ({"type": "avro", "version": 1}, "version needs a subject"),
        ({"type": "protobuf", "message": "a.B"}, "message needs schema_id, subject or schema_file"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        FormatSection(**keys)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"url": "registry:8081"}, "expected a URL such as https://registry:8081"),
        ({"url": "https://me:hunter2@registry"}, "users and passwords in keys of their own"),
        ({"url": "https://r", "username": "me"}, "give username and password_file together"),
        ({"url": "https://r", "password": "hunter2"}, "give username and password_file together"),
    ],
)
def test_a_registry_s_keys_are_judged_and_none_is_shown(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message) as refusal:
        SchemaRegistrySection(**keys)
    assert "hunter2" not in str(refusal.value.errors()[0]["msg"])


def test_secrets_come_from_files_without_their_newline(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("open sesame\n")
    by_name = SchemaRegistrySection(url="https://r/apis/ccompat/v7", username="me", password_file=file)
    assert (by_name.read_password(), by_name.read_token()) == ("open sesame", None)
    assert SchemaRegistrySection(url="https://r", token_file=file).read_token() == "open sesame"
    with pytest.raises(ValidationError, match="give token_file or username, not both"):
        SchemaRegistrySection(url="https://r", token_file=file, username="me", password_file=file)
