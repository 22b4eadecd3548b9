"""What a mapping makes of a sample: how many predictions meet their label, how late, and which meet none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from streamwatch.core.events import (
    Decoded,
    Event,
    EventGroup,
    Invalid,
    Label,
    NullRecord,
    Prediction,
    Skipped,
    WrongFold,
)
from streamwatch.core.join.caveats import Repeats
from streamwatch.core.ports import Record
from streamwatch.history.recordings.lines import RecordedTopic

SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class JoinedPair:
    """A prediction and its label; the delay is in milliseconds."""

    id: str
    model: str
    predicted_class: str
    true_class: str
    delay_ms: int


@dataclass(slots=True)
class TopicCounts:
    """Counts of what became of the sampled records of a topic: a record may hold several events."""

    records: int = 0
    predictions: int = 0
    labels: int = 0
    invalid: int = 0
    others: int = 0
    """Null records, and records that no mapping is about."""
    again: int = 0
    """Predictions or labels of an id, and a model, that the sample has already: they do not count."""

    def text(self) -> str:
        """One line for a person: `402 records: 400 predictions, 2 invalid`."""
        parts = {
            "predictions": self.predictions,
            "labels": self.labels,
            "of an id that came before": self.again,
            "invalid": self.invalid,
            "null or of no mapping": self.others,
        }
        counts = ", ".join(f"{count:,} {name}" for name, count in parts.items() if count)
        return f"{self.records:,} records: {counts or 'nothing'}"


@dataclass(slots=True)
class JoinedSample:
    """Everything a sample shows of a mapping.

    `predictions` and `labels` count distinct ones; `invalid` counts records by topic and reason; `delays_ms`
    are sorted. Shares of classes are counts.
    """

    predictions: int = 0
    labels: int = 0
    labels_met: int = 0
    pairs: list[JoinedPair] = field(default_factory=list[JoinedPair])
    delays_ms: list[int] = field(default_factory=list[int])
    joined: int = 0
    lone_predictions: list[str] = field(default_factory=list[str])
    lone_labels: list[str] = field(default_factory=list[str])
    invalid: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    predicted_classes: Counter[str] = field(default_factory=Counter[str])
    true_classes: Counter[str] = field(default_factory=Counter[str])
    agreed: int = 0
    models: Counter[str] = field(default_factory=Counter[str])
    repeats: Repeats = field(default_factory=Repeats)
    read: dict[str, TopicCounts] = field(default_factory=dict[str, "TopicCounts"])
    """Of each topic, what became of its records."""
    not_due: int = 0
    """Predictions without a label that are younger than the latest one whose label is in the sample."""
    before: int = 0
    """Labels without a prediction that are older than the first prediction of the sample."""

    @property
    def rate(self) -> float:
        """Share of the predictions that met their label."""
        return self.joined / self.predictions if self.predictions else 0.0

    @property
    def dated(self) -> bool:
        """Tell whether delays mean anything: records or their events say when they happened."""
        return bool(self.delays_ms)


def events_of(found: Iterable[Decoded]) -> Iterator[Event]:
    """Events of records, of which one may hold several, in order."""
    for each in found:
        yield from each.events if isinstance(each, EventGroup) else (each,)


def joined_sample(
    topics: Mapping[str, RecordedTopic], samples: Mapping[str, Sequence[Record]]
) -> JoinedSample:
    """Decode a sample as the daemon would, and let labels meet predictions whatever their delay.

    For one id and model the first prediction counts, and the first label.
    """
    predictions: dict[tuple[str, str], Prediction] = {}
    for_all: dict[str, Label] = {}
    for_one: dict[tuple[str, str], Label] = {}
    sample = JoinedSample()
    for name, topic in topics.items():
        records = samples.get(name, ())
        found = topic.decoder.decode_all(records, [record.timestamp for record in records])
        read = sample.read[name] = TopicCounts(len(records))
        for event in events_of(found):
            match event:
                case Prediction():
                    new = predictions.setdefault((event.id, event.model), event) is event
                    read.predictions += new
                    read.again += not new
                    sample.repeats.add(event)
                case Label():
                    if event.model is None:
                        new = for_all.setdefault(event.id, event) is event
                    else:
                        new = for_one.setdefault((event.id, event.model), event) is event
                    read.labels += new
                    read.again += not new
                case Invalid():
                    sample.invalid[name, event.reason] += 1
                    read.invalid += 1
                case NullRecord() | WrongFold() | Skipped():
                    read.others += 1  # they meet nothing
    met: set[tuple[str, str | None]] = set()
    latest_met_ms, alone = -1, list[int]()
    for (id_, model), prediction in predictions.items():
        sample.models[model] += 1
        sample.predicted_classes[prediction.predicted_class] += 1
        label = for_one.get((id_, model)) or for_all.get(id_)
        if label is None:
            sample.lone_predictions += [id_] * (len(sample.lone_predictions) < SHOWN)
            alone.append(time_of(prediction))
            continue
        latest_met_ms = max(latest_met_ms, time_of(prediction))
        met.add((id_, label.model))
        _meet(sample, id_, prediction, label)
    every = [*for_all.values(), *for_one.values()]
    sample.predictions, sample.labels, sample.labels_met = len(predictions), len(every), len(met)
    sample.true_classes = Counter(label.true_class for label in every)
    sample.lone_labels = [label.id for label in every if (label.id, label.model) not in met][:SHOWN]
    sample.delays_ms.sort()
    if sample.dated:
        sample.not_due = sum(made_ms > latest_met_ms for made_ms in alone)
        first_ms = min(time_of(prediction) for prediction in predictions.values())
        unmet = [label for label in every if (label.id, label.model) not in met]
        sample.before = sum(time_of(label) < first_ms for label in unmet)
    return sample


def time_of(event: Prediction | Label) -> int:
    """Time of an event by its own timestamp, else by its record's; in milliseconds."""
    return event.record_ms if event.timestamp_ms is None else event.timestamp_ms


def _meet(sample: JoinedSample, id_: str, prediction: Prediction, label: Label) -> None:
    made_ms, known_ms = time_of(prediction), time_of(label)
    sample.joined += 1
    sample.agreed += prediction.predicted_class == label.true_class
    delay_ms = known_ms - made_ms
    if made_ms > 0 and known_ms > 0:
        sample.delays_ms.append(delay_ms)
    if len(sample.pairs) < SHOWN:
        pair = JoinedPair(id_, prediction.model, prediction.predicted_class, label.true_class, delay_ms)
        sample.pairs.append(pair)
