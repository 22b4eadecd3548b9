"""Examples of the pages on payloads: records, the settings that map them, and the events that come out."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from streamwatch.assembly import topics as topic_properties
from streamwatch.assembly.topics import envelope_of, mappings_of, texts_of
from streamwatch.core.records.events import Decoded, Event, EventGroup, Invalid, Label, NullRecord, Prediction
from streamwatch.edge.decoders.formats import KINDS, FormatOptions, decoder_spec
from streamwatch.settings import Settings
from streamwatch.settings.topics import FORMATS
from tests.edge.decoders.records import FakeRecord

PAGES = Path(__file__).parents[2] / "docs" / "payloads"
_BLOCK = re.compile(r"^```(yaml|json|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """One section of a page."""

    name: str
    settings: dict[str, Any]
    records: Sequence[FakeRecord]
    events: Sequence[str]
    """As the page says, one a line."""

    def topics(self, kind: str = "memory") -> Settings:
        """Settings with these topics."""
        return Settings(
            **self.settings | {"kafka": {"bootstrap_servers": "localhost:9"}, "state": {"kind": kind}}
        )


def examples() -> list[Example]:
    """Every example of every page, in order."""
    return [
        found
        for page in sorted(PAGES.glob("*.md"))
        if page.stem not in FORMATS  # pages of their own: test_format_pages
        for section in page.read_text().split("\n## ")
        if (found := _example(page.stem, section)) is not None
    ]


def _example(page: str, section: str) -> Example | None:
    blocks = dict(_BLOCK.findall(section))
    if not blocks:
        return None
    records = [_record(json.loads(line), n) for n, line in enumerate(blocks["json"].splitlines())]
    name = f"{page}: {section.splitlines()[0]}"
    return Example(name, yaml.safe_load(blocks["yaml"]), records, blocks["text"].splitlines())


def _record(shown: dict[str, Any], offset: int) -> FakeRecord:
    value = shown.get("value")
    key = shown.get("key")
    headers = tuple((name, text.encode()) for name, text in shown.get("headers", {}).items())
    return FakeRecord(
        None if value is None else json.dumps(value).encode(),
        None if key is None else key.encode(),
        headers,
        topic=shown["topic"],
        offset=offset,
    )


def decoded(example: Example) -> list[Decoded]:
    """What the decoders of the settings make of each record, with ids as they are."""
    topics = example.topics().topics
    mappings, sections = mappings_of(topics), topic_properties.topics_by_name(topics)
    decoders = {
        name: KINDS["json"].build(
            decoder_spec(
                name,
                side,
                mappings[name],
                envelope_of(sections[name].envelope),
                texts=texts_of(sections[name]),
            ),
            FormatOptions(),
        )
        for name, side in topic_properties.sides(topics).items()
    }
    return [decoders[r.topic].decode_all([r], [r.timestamp])[0] for r in example.records]


def shown(found: Sequence[Decoded]) -> list[str]:
    """Events as pages write them."""
    lines: list[str] = []
    for record in found:
        if not isinstance(record, EventGroup):
            lines.append(_line(record))
        elif not record.events:
            lines.append("skipped")
        else:
            lines += map(_line, record.events)
            lines[-1] += f" tied={record.tied}" if record.tied else ""
    return lines


def _line(event: Event) -> str:
    match event:
        case Prediction():
            kind, told = "prediction", {"id": event.id, "model": event.model, "class": event.predicted_class}
            if event.scores is not None:
                told["scores"] = ",".join(f"{name}:{p:g}" for name, p in sorted(event.scores.items()))
        case Label():
            kind, told = "label", {"id": event.id, "model": event.model, "class": event.true_class}
        case NullRecord():
            kind = "withdrawal" if event.withdraws and event.id is not None else "null"
            told = {"id": event.id, "model": event.model}
        case Invalid():
            kind, told = "invalid", {"reason": event.reason, "model": event.model}
        case _:
            kind, told = type(event).__name__, {}
    if isinstance(event, Prediction | Label) and event.timestamp_ms is not None:
        told["at"] = str(event.timestamp_ms)
    return " ".join([kind, *(f"{name}={content}" for name, content in told.items() if content is not None)])
