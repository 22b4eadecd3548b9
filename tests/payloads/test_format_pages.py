"""Every page on a format holds an example that does what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamwatch.assembly.topics import build_topics
from streamwatch.core.records.events import Event, Invalid, Label, Prediction
from streamwatch.edge.decoders.schemas.schema import Schema, SchemaRequest, ValueReader
from streamwatch.edge.keys import digest_bytes
from streamwatch.settings import Settings
from streamwatch.settings.topics import FORMATS
from tests.edge.decoders.records import AT_MS, FakeRecord

PAGES = Path(__file__).parents[2] / "docs" / "payloads"
LANGUAGES = {"avro": ("json", "AVRO"), "protobuf": ("protobuf", "PROTOBUF")}


class OnThePage:
    """The one schema of a page, as number 1."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def reader(self, wanted: SchemaRequest) -> ValueReader | str:
        assert wanted.ref == 1
        return wanted.compile(self._schema)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def settings(page: str, folder: Path) -> Settings:
    """The settings of a page, with a broker, and a file in place of each that it names."""
    document: dict[str, Any] = yaml.safe_load(blocks(page, "yaml")[0])
    for name in document.get("schema_registry", {}):
        if name.endswith("_file"):
            (folder / name).write_text("secret")
            document["schema_registry"][name] = str(folder / name)
    return Settings(**{"kafka": {"bootstrap_servers": "localhost:9092"}, **document})


def told(event: Event) -> str:
    match event:
        case Prediction():
            found = f"prediction id={event.id} model={event.model} class={event.predicted_class}"
        case Label():
            found = f"label id={event.id} class={event.true_class}"
        case Invalid():
            return f"invalid reason={event.reason}"
        case _:
            raise AssertionError(event)
    return found if event.timestamp_ms is None else f"{found} timestamp_ms={event.timestamp_ms}"


def hashed(key: str) -> str:
    return digest_bytes([key]).decode("latin-1")


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "json"])
def test_the_example_of_a_page_gives_what_the_page_says(name: str, tmp_path: Path) -> None:
    page = (PAGES / f"{name}.md").read_text()
    chosen = settings(page, tmp_path)
    schema = Schema("JSON", "")
    if name in LANGUAGES:
        language, kind = LANGUAGES[name]
        schema = Schema(kind, blocks(page, language)[0])
    topics = build_topics(chosen, OnThePage(schema))
    both = (*chosen.topics.predictions, *chosen.topics.labels)
    decoder = next(topics[topic.name].decoder for topic in both if topic.format.type == name)
    lines = blocks(page, "text")[0].splitlines()
    assert lines
    for written, expected in zip(lines[::2], lines[1::2], strict=True):
        [event] = decoder.decode_all([FakeRecord(bytes.fromhex(written))], [AT_MS])
        assert told(event) == re.sub(r"(?<= id=)\S+", lambda found: hashed(found[0]), expected)
