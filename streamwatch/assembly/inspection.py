"""`streamwatch inspect`, put together: sample → guess → settings → what they make of the sample."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from streamwatch.assembly import specs
from streamwatch.assembly.replay import recorded_topics
from streamwatch.core.join.repeats import CAUSE
from streamwatch.core.ports import Record
from streamwatch.lab.inspection import yaml_text
from streamwatch.lab.inspection.guessed import Guess
from streamwatch.lab.inspection.guessing import guess
from streamwatch.lab.inspection.joined import JoinedSample, joined_sample
from streamwatch.lab.recordings.csv_rows import CsvColumns
from streamwatch.lab.recordings.lines import BadLine, LineRecord
from streamwatch.lab.recordings.recording import Recording
from streamwatch.settings import Settings, SettingsError, load
from streamwatch.settings.sections import KafkaSection
from streamwatch.settings.yaml_text import parse

NOWHERE = {"bootstrap_servers": "localhost:9092"}


@dataclass(frozen=True, slots=True)
class Inspection:
    """A guess, what it makes of the sample, and the settings; no text where a part is missing."""

    guess: Guess
    sample: JoinedSample | None
    text: str | None

    @property
    def problems(self) -> Sequence[str]:
        """Everything that keeps the settings from being right."""
        found = list(self.guess.problems)
        if self.sample is not None and not self.sample.joined:
            found.append("no prediction of the sample met a label")
        return found


def inspect(
    samples: Mapping[str, Sequence[Record]],
    sections: Mapping[str, Any] | None = None,
    where: str = "",
    formats: Mapping[str, str] = MappingProxyType({}),
    key_formats: Mapping[str, str] = MappingProxyType({}),
) -> Inspection:
    """Guess a mapping for these samples and try it on them.

    Parameters
    ----------
    samples
        Records by topic, their values as JSON text.
    sections
        What stands before the topics: `kafka`, which is made up where there is none, and `schema_registry`.
    where
        What was sampled, for the first line of the settings.
    formats
        What values were written in, by topic, where that is not JSON.
    key_formats
        The same of keys, where these are not text.
    """
    head = dict(sections or {"kafka": NOWHERE})
    found = guess(samples)
    topics = (
        replace(t, format=formats.get(t.topic, t.format), key_format=key_formats.get(t.topic))
        for t in found.topics
    )
    guessed = replace(found, topics=tuple(topics))
    sides = {topic.side for topic in guessed.topics}
    if not ("both" in sides or {"prediction", "label"} <= sides):
        return Inspection(guessed, None, None)
    settings = Settings(**yaml_text.document(guessed, head))
    joined = joined_sample(recorded_topics(settings), samples)
    heading = [
        f"Guessed by `streamwatch inspect`{f' from {where}' if where else ''}: read it before you believe it."
    ]
    heading.append(
        f"Of {joined.predictions:,} predictions in the sample {joined.rate:.1%} met their label; of "
        f"{joined.labels:,} labels {joined.labels_met:,} met a prediction."
    )
    heading += [f"Note: {note}." for note in guessed.notes]
    heading += [f"Note: model {each.model} {each.said}; {CAUSE}." for each in joined.repeats.many()]
    if not sections:
        heading.append("kafka.bootstrap_servers is made up: write your own.")
    text = yaml_text.text(guessed, head, joined, heading)
    return Inspection(guessed, joined, _sound(text))


def _sound(text: str) -> str:
    """Check that the text loads.

    Raises
    ------
    SettingsError
        It does not, which is a defect of the guess.
    """
    try:
        Settings(**parse(text))
    except ValidationError as error:
        raise SettingsError(
            f"the guessed settings do not load: {error.errors()[0]['msg']}\n{text}"
        ) from error
    return text


def sampling_settings(
    config: Path | None, servers: str | None, registry: str | None, overrides: Sequence[str]
) -> Settings:
    """Settings of a file and of overrides, with these servers and this registry where they are given.

    Raises
    ------
    SettingsError
        Naming every faulty key.
    """
    more = [f"kafka.bootstrap_servers={servers}"] if servers else []
    more += [f"schema_registry.url={registry}"] if registry else []
    nowhere = {"topics": {"predictions": "unused-predictions", "labels": "unused-labels"}}
    return load(config, [*overrides, *more], otherwise=nowhere)


def kafka_written(section: KafkaSection) -> dict[str, Any]:
    """Section as the settings write it: what is not the default, and never a password."""
    dumped = section.model_dump(mode="json", exclude_defaults=True, exclude={"security": {"password"}})
    return dumped | {"bootstrap_servers": ",".join(section.bootstrap_servers)}


def sections_written(settings: Settings, *, registry: bool) -> dict[str, Any]:
    """Sections that stand before the topics; that of the registry only where it is needed."""
    sections: dict[str, Any] = {"kafka": kafka_written(settings.kafka)}
    if registry and settings.schema_registry.url is not None:
        sections["schema_registry"] = settings.schema_registry.model_dump(
            mode="json", exclude_defaults=True, exclude={"password"}
        )
    return sections


kafka_spec = specs.kafka_spec


def read_files(files: Sequence[str], most: int) -> dict[str, list[LineRecord]]:
    """Last records of each file, by topic: kcat's lines name it, of others it is the file's name.

    Raises
    ------
    RecordingError
        A file cannot be read.
    """
    found: dict[str, deque[LineRecord]] = {}
    anything = CsvColumns(ids=(), classes=())
    for file in files:
        with Recording(file, columns=anything) as recording:
            for line in recording.records():
                if isinstance(line, BadLine):
                    continue
                line.topic = line.topic or Path(file.removesuffix(".gz")).stem or "stdin"
                found.setdefault(line.topic, deque(maxlen=most)).append(line)
    return {topic: list(records) for topic, records in found.items()}
