"""Trial of a mapping on a sample: matched predictions and labels, delays, classes and unmatched ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from streamwatch.core.join.caveats import Repeats
from streamwatch.core.ports import Record
from streamwatch.core.records.events import (
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
from streamwatch.history.recordings.lines import RecordedTopic

SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class JoinedPair:
    """A prediction with its label."""

    id: str
    model: str
    predicted_class: str
    true_class: str
    delay_ms: int


@dataclass(slots=True)
class TopicCounts:
    """Counts of the events of a topic's sampled records, of which one may have several."""

    records: int = 0
    predictions: int = 0
    labels: int = 0
    invalid: int = 0
    others: int = 0
    """Null records, and records skipped by the mappings."""
    again: int = 0
    """Predictions or labels of an id and a model that occurred before, which are not counted again."""

    def text(self) -> str:
        """Return the counts in words: `402 records: 400 predictions, 2 invalid`."""
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
    """Result of joining a sample with a mapping."""

    predictions: int = 0
    """Number of distinct predictions."""
    labels: int = 0
    """Number of distinct labels."""
    labels_met: int = 0
    """Number of labels that matched a prediction."""
    pairs: list[JoinedPair] = field(default_factory=list[JoinedPair])
    """The first `SHOWN` pairs."""
    delays_ms: list[int] = field(default_factory=list[int])
    """Delays of labels in ms, sorted; without those of events without times."""
    joined: int = 0
    """Number of predictions that matched a label."""
    lone_predictions: list[str] = field(default_factory=list[str])
    """Ids of the first `SHOWN` predictions without a label."""
    lone_labels: list[str] = field(default_factory=list[str])
    """Ids of the first `SHOWN` labels without a prediction."""
    invalid: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Number of invalid events by topic and reason."""
    predicted_classes: Counter[str] = field(default_factory=Counter[str])
    true_classes: Counter[str] = field(default_factory=Counter[str])
    agreed: int = 0
    """Number of joined predictions whose class is the true one."""
    models: Counter[str] = field(default_factory=Counter[str])
    """Number of predictions by model."""
    repeats: Repeats = field(default_factory=Repeats)
    """Repeated ids by model."""
    read: dict[str, TopicCounts] = field(default_factory=dict[str, "TopicCounts"])
    """Counts of events by topic."""
    not_due: int = 0
    """Predictions without a label that are younger than the latest one whose label is in the sample."""
    before: int = 0
    """Labels without a prediction that are older than the first prediction of the sample."""

    @property
    def rate(self) -> float:
        """Share of the predictions that matched a label; 0 without predictions."""
        return self.joined / self.predictions if self.predictions else 0.0

    @property
    def dated(self) -> bool:
        """Return whether delays are known: records or events have times."""
        return bool(self.delays_ms)


def events_of(found: Iterable[Decoded]) -> Iterator[Event]:
    """Yield the events of decoded records in order; a record may have several."""
    for each in found:
        yield from each_of(each)


def each_of(found: Decoded) -> Sequence[Event]:
    """Return the events of a decoded record."""
    return found.events if isinstance(found, EventGroup) else (found,)


def joined_sample(
    topics: Mapping[str, RecordedTopic], samples: Mapping[str, Sequence[Record]]
) -> JoinedSample:
    """Decode a sample as the daemon would, and join labels with predictions regardless of their delay.

    For an id and a model, the first prediction and the first label count.
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
                    read.others += 1
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
    """Return the time of an event in milliseconds: its own timestamp, else that of its record."""
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
