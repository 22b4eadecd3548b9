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
        for event in events_of(found):
            match event:
                case Prediction():
                    predictions.setdefault((event.id, event.model), event)
                    sample.repeats.add(event)
                case Label():
                    if event.model is None:
                        for_all.setdefault(event.id, event)
                    else:
                        for_one.setdefault((event.id, event.model), event)
                case Invalid():
                    sample.invalid[name, event.reason] += 1
                case NullRecord() | WrongFold() | Skipped():
                    pass  # they meet nothing
    met: set[tuple[str, str | None]] = set()
    for (id_, model), prediction in predictions.items():
        sample.models[model] += 1
        sample.predicted_classes[prediction.predicted_class] += 1
        label = for_one.get((id_, model)) or for_all.get(id_)
        if label is None:
            sample.lone_predictions += [id_] * (len(sample.lone_predictions) < SHOWN)
            continue
        met.add((id_, label.model))
        _meet(sample, id_, prediction, label)
    every = [*for_all.values(), *for_one.values()]
    sample.predictions, sample.labels, sample.labels_met = len(predictions), len(every), len(met)
    sample.true_classes = Counter(label.true_class for label in every)
    sample.lone_labels = [label.id for label in every if (label.id, label.model) not in met][:SHOWN]
    sample.delays_ms.sort()
    return sample


def _meet(sample: JoinedSample, id_: str, prediction: Prediction, label: Label) -> None:
    made_ms = prediction.record_ms if prediction.timestamp_ms is None else prediction.timestamp_ms
    known_ms = label.record_ms if label.timestamp_ms is None else label.timestamp_ms
    sample.joined += 1
    sample.agreed += prediction.predicted_class == label.true_class
    delay_ms = known_ms - made_ms
    if made_ms > 0 and known_ms > 0:
        sample.delays_ms.append(delay_ms)
    if len(sample.pairs) < SHOWN:
        pair = JoinedPair(id_, prediction.model, prediction.predicted_class, label.true_class, delay_ms)
        sample.pairs.append(pair)
