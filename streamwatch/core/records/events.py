"""Events that are joined, and the names and small values that they carry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from operator import attrgetter
from struct import Struct
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.specs import HEADLINE, UtilityKind

# Events for the core and outcomes of the join: plain values, decoded and validated at the edge.
#
# Times are integers, milliseconds since the epoch. `record_ms` is the clock at the event's position in the
# merged sequence (deadlines count from it; the merge sets it when the event is released); `timestamp_ms` is
# the event's own time, if it has one (label delay and prediction-time order use it).


VERDICT = "verdict"
"""Value of `Alarm.detector` in alarms about a changed verdict."""
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
"""Name, as of a model, a class, a topic or a detector: bytes with an empty one are refused when decoded."""
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""Number that an array of int64 takes: bytes with a larger one are refused when decoded."""
Side: TypeAlias = Literal["prediction", "label", "both"]
"""Kinds of events that a topic carries."""


class Partition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


class Mark(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Offset of a delivered record with a hash of its timestamp, key and value."""

    offset: int
    hash: int


class Fingerprint(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Fingerprint by which a partition's log is recognised as the one that was read."""

    topic_id: str | None = None
    """Topic id of the broker; None where brokers do not give one."""
    marks: tuple[Mark, ...] = ()
    """Marks of the last record evaluated, then of a few before it at growing distances."""


class Prediction(msgspec.Struct, gc=False):
    """Event: a deployed model predicted a class for an id."""

    id: str
    model: str
    predicted_class: str
    record_ms: int
    timestamp_ms: int | None = None
    scores: dict[str, float] | None = None
    segments: dict[str, str] | None = None
    """Segment values of the prediction by segment name (`region: eu`); None without any."""
    topic: str = ""
    """Topic of its record; empty if unknown."""
    label_probability: float | None = None
    """Probability with which its label is requested, a float32; None where labels are not sampled."""
    label_requested: bool | None = None
    """Whether its label was requested; None without a probability, or if that is unknown."""


class Label(msgspec.Struct, gc=False):
    """Event: the true class of an id became known, for `model` or (None) for all that predicted the id."""

    id: str
    true_class: str
    record_ms: int
    model: str | None = None
    timestamp_ms: int | None = None
    topic: str = ""
    """Topic of its record; empty if unknown."""


class NullRecord(msgspec.Struct, gc=False):
    """Event: a record with a null value, which withdraws pending predictions of `id` if `withdraws`.

    On a label topic it is ignored.

    `id` is None where the mapping does not find the id in the key; such a record is only counted.
    """

    topic: str
    id: str | None
    model: str | None
    record_ms: int
    withdraws: bool


class WrongFold(msgspec.Struct, gc=False):
    """Event: a prediction by a fold that does not test its id; it is counted and otherwise ignored."""

    record_ms: int


class Skipped(msgspec.Struct, gc=False):
    """Event: a record that no mapping of its topic applies to.

    It moves the clock and is otherwise ignored.
    """

    record_ms: int


class Invalid(msgspec.Struct, gc=False):
    """Event: a record that could not be decoded, or has invalid contents; `reason` is one of a fixed set."""

    topic: str
    partition: int
    offset: int
    reason: str
    record_ms: int = -1
    model: str | None = None
    """Model named by the record; None where that cannot be read or is not a valid name."""
    detail: str = ""
    """Path at which the record was read, and fields found there; only for some records of each reason."""


Event: TypeAlias = Prediction | Label | NullRecord | WrongFold | Skipped | Invalid


class EventGroup(msgspec.Struct, gc=False):
    """Events of a record that holds several, or none. They share its time and its position in the sequence.

    They are joined one after another, and no commit is made between them.
    """

    events: tuple[Event, ...]
    """Events in the order of the record; empty for a skipped record."""
    record_ms: int = -1
    tied: int = 0
    """Number of its predictions whose class shared the largest score with another."""


Decoded: TypeAlias = Event | EventGroup


def is_decodable(found: Decoded) -> bool:
    """Return whether a record could be read: it holds no event at all, or one that is not `Invalid`."""
    events = found.events if isinstance(found, EventGroup) else (found,)
    return not events or any(type(event) is not Invalid for event in events)


class PairedAnswer(NamedTuple):
    """Predicted class of another model on the same id, resolved with the same label."""

    model: Name
    predicted_class: Name
    made: int = 0
    """Predictions that the model had made where the later of the two was resolved, as `Outcome.made`."""


class Outcome(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A resolved prediction: predicted class and true class. Estimators evaluate outcomes in order."""

    model: Name
    true_class: Name
    predicted_class: Name
    event_ms: int
    """Event time of the outcome: the label's own timestamp, else its record's."""
    delay_ms: int
    """Label time minus prediction time, clamped at 0."""
    assumed: bool = False
    """Whether the true class was assumed at expiry (`join.on_expiry`) instead of observed."""
    scores: dict[Name, float] | None = None
    label_at_prediction: Name | None = None
    """Label known last of the model when this prediction was accepted; None before the first.

    Assumed labels do not count. In a fold that tests some ids only, it is the label, assumed or not, of the
    previous distinct id resolved by any fold of the model.
    """
    pairs: tuple[PairedAnswer, ...] | None = None
    """Predicted classes of the models compared with this one whose prediction of the id was resolved before
    with the same label; None without any."""
    segments: dict[Name, Name] | None = None
    """Segment values of the prediction, by segment name; None without any."""
    last_class: Name | None = None
    """Class predicted last before the label arrived, while `predicted_class` is the first (`join.conflicts:
    both`); None if the prediction was never revised."""
    made: int = 0
    """Number of predictions of the model, or fold, accepted before label and prediction met in the merged
    sequence, whether resolved or not, modulo 2³².

    It begins again at 0 after the model retired.
    """
    resolved_ms: int = 0
    """Clock of the merged sequence where label and prediction met; of an assumed outcome the deadline."""
    waited_ms: int = 0
    """`resolved_ms` minus the clock at the prediction's position, at least 0. If another prediction replaced
    it (`join.conflicts: last`), the position of the first one counts."""
    label_probability: float | None = None
    """Probability with which the label was requested, a float32; None where labels are not sampled."""
    label_requested: bool | None = None
    """Whether the label was requested; None without a probability, or if that is unknown."""


DelayKind: TypeAlias = Literal["errors", "hits"]
"""Kind of labels whose delays are compared."""


class Judgement(msgspec.Struct, frozen=True, gc=False):
    """A verdict on a model against an opponent, and since when it holds."""

    opponent: Name
    verdict: Literal[-1, 0, 1]
    """1 better, −1 worse, 0 open."""
    since: int
    """1-based index of the first outcome of the model for which it holds; approximate by cohorts."""
    since_ms: int
    """Event time of that outcome; by cohorts, the prediction time since which it holds."""
    quick_labels_only: bool = False
    """Whether slower labels may have been missing: the model was watched for less than one horizon, and
    delays did not show that hardly any label takes longer."""
    basis: Literal["cohorts", "labels"] = "labels"
    """What is judged: cohorts of prediction time, or outcomes in the order of their labels.

    A verdict by cohorts is against two opponents, no change and the majority: worse than `opponent`, or
    better than both, or open.
    """
    status: Literal["early", "confirmed", "retracted", ""] = ""
    """By cohorts, `early` until all labels of the predictions judged are in, then `confirmed`, or `retracted`
    with an open verdict; otherwise empty."""
    earliest_ms: int | None = None
    """Lower end of the 80 % interval of `since_ms` by cohorts; None for an open verdict.

    It is None, too, if the verdict may hold since before the first cohort judged.
    """
    latest_ms: int | None = None
    """Upper end of that interval; None for an open verdict."""
    utility: UtilityKind = "accuracy"
    """Utility by which the model is judged."""

    @property
    def is_headline(self) -> bool:
        """Return whether this verdict decides the headline of the model."""
        return self.basis == "cohorts" or self.opponent == HEADLINE


class ErrorChange(msgspec.Struct, frozen=True, gc=False):
    """Change of a model's error, located by when predictions were made instead of when labels arrived.

    Attributes
    ----------
    since_ms
        Prediction time from which on the error differs, to the nearest bucket of prediction time.
    earliest_ms, latest_ms
        Limits of the 95 % interval of `since_ms`.
    before, after
        Error rate of the predictions before `since_ms`, and of those since.
    """

    since_ms: int
    earliest_ms: int
    latest_ms: int
    before: float
    after: float


class Confirmation(msgspec.Struct, frozen=True, gc=False):
    """Judgement of an alarm at a rise of the error by cohorts of prediction time.

    Attributes
    ----------
    is_confirmed
        Whether predictions err more often; if not, cohorts show a change of the mix of labels only.
    since_ms
        Prediction time of the change that fits best, at the beginning of a cohort.
    before, after
        Error rate of the predictions before `since_ms`, and of those since, up to the last cohort judged.
    """

    is_confirmed: bool
    since_ms: int
    before: float
    after: float


class Alarm(msgspec.Struct, frozen=True, gc=False):
    """Alarm of one model: a detector declared a drift, or the verdict on the model changed.

    For a verdict, `statistic` is the mean M that claimed it (0 if no claim did), compared with `threshold` A;
    `before` and `after` are the verdicts (1, 0, −1), and `n_eff` is the number of outcomes, or by cohorts of
    predictions, judged. If the verdicts are equal, only the basis, the status or the opponent changed.
    """

    model: Name
    detector: Name
    ordinal: int
    """1 for the first alarm of this (model, detector), then ascending; verdicts may skip some."""
    outcome: int
    """1-based index of the model's outcome that raised it."""
    event_ms: int
    """Event time of that outcome."""
    resolved_ms: int
    """Clock of the merged sequence at which that outcome was resolved, as `Outcome.resolved_ms`."""
    statistic: float
    threshold: float
    before: float
    """Mean loss before the change, as this detector splits it (see the detector)."""
    after: float
    n_eff: float
    judgement: Judgement | None = None
    """The new verdict; None for a detector's alarm."""
    predictions: ErrorChange | None = None
    """Change of the error by prediction time behind a detector's alarm, from the labels known by then; None
    for a verdict, and where no change is found."""
    predicted_ms: int | None = None
    """For a detector in prediction time: time of the prediction at whose outcome it alarmed, while `outcome`
    and `event_ms` are those at which the alarm was raised. None for all others."""
    errors: int | None = None
    """Errors of the model among its first `outcome` outcomes. None for a verdict, a detector in prediction
    time, and a model that predicts in folds."""


# Probability with which a label is requested, and whether it was requested, as one small number ("sampling").
#
# A prediction may carry the probability π with which its label is requested, fixed before the label, and
# whether it was requested. π is the float32 nearest to the record's value everywhere, so that the daemon,
# buckets and a replay compute the same from it.
#
# The number is 0 without a probability. Otherwise its lower 29 bits are 1 + the bits of π as a float32 less
# those of 2⁻³²; the bits above are 0 if it is unknown whether the label was requested, 1 (no) or 2 (yes).


LEAST_PROBABILITY: Final = 1e-6
"""Smallest probability that settings may declare."""
MOST_SAMPLING: Final = (3 << 29) - 1
"""Largest sampling number."""
_FLOAT: Final = Struct("<f")
_BITS: Final = Struct("<I")
_BASE: Final = 0x2F800000  # 2⁻³² as a float32
_SHIFT: Final = 29
_PROBABILITY: Final = (1 << _SHIFT) - 1
_ONE: Final = 0x3F800000 - _BASE + 1


def as_float32(probability: float) -> float:
    """Round to the nearest float32."""
    return _FLOAT.unpack(_FLOAT.pack(probability))[0]


def sampling_of(probability: float | None, requested: bool | None) -> int:  # noqa: FBT001 - a field's value
    """Return the sampling number of a probability, a float32 in [2⁻³², 1], and of `requested`."""
    if probability is None:
        return 0
    (bits,) = _BITS.unpack(_FLOAT.pack(probability))
    return (bits - _BASE + 1) | (0 if requested is None else 1 + requested) << _SHIFT


def samplings_of(bits: NDArray[Any], requested: NDArray[Any]) -> NDArray[np.int32]:
    """Return sampling numbers, int32 (n,), as `sampling_of` does.

    Parameters
    ----------
    bits
        Bits of the probabilities as float32, (n,); 0 without one.
    requested
        Whether the label was requested, (n,): 2 yes, 1 no, 0 unknown.
    """
    return np.where(bits > 0, (bits - _BASE + 1) | requested << _SHIFT, 0).astype(np.int32)


def probability_of(sampling: int) -> float | None:
    """Return the probability of a sampling number; None without one."""
    if sampling == 0:
        return None
    return _FLOAT.unpack(_BITS.pack((sampling & _PROBABILITY) - 1 + _BASE))[0]


def requested_of(sampling: int) -> bool | None:
    """Return whether the label was requested, by a sampling number; None if that is unknown."""
    return (None, False, True)[sampling >> _SHIFT]


def probabilities_of(numbers: NDArray[Any]) -> NDArray[np.float64]:
    """Return the probabilities of sampling numbers, shape (n,); 0 for one without a probability."""
    codes = numbers.astype(np.int64)
    bits = ((codes & _PROBABILITY) - 1 + _BASE).astype(np.uint32)
    return np.where(codes == 0, 0.0, bits.view(np.float32).astype(np.float64))


def requests_of(numbers: NDArray[Any]) -> NDArray[np.int8]:
    """Return for each sampling number, shape (n,), whether the label was requested: 1, 0, −1 unknown."""
    requested = numbers.astype(np.int64) >> _SHIFT
    return np.where(requested == 0, -1, requested - 1).astype(np.int8)


def is_sampling(numbers: NDArray[Any]) -> bool:
    """Return whether all sampling numbers, shape (n,), are valid."""
    wide = numbers.astype(np.int64)
    if ((wide < 0) | (wide > MOST_SAMPLING)).any():
        return False
    probability, requested = wide & _PROBABILITY, wide >> _SHIFT
    return bool(((probability <= _ONE) & ((probability > 0) | (requested == 0))).all())


# Carried numbers: numbers of a prediction that are passed on from its record to its outcome.
#
# Each one declared here is a column of all structures in between: rows and side columns of the join, accepted
# predictions, outcomes and their journal, and the pieces that buckets exchange. To add one changes the schema
# of the store.


class CarriedNumber(NamedTuple):
    """Encoding of some fields of a prediction, and of its outcome, as one number.

    The number is an int32 of at least 0, and 0 if a prediction has none of the fields.
    """

    name: str
    """Name of its side column in the store."""
    fields: tuple[str, ...]
    """Names of the fields in `Prediction`, `Outcome` and a topic's mapping; in the first two they are the
    last ones, in the order of `CARRIED`. Predictions have the number if their mapping has the first field."""
    encode: Callable[..., int]
    """Function from the fields' values to the number."""
    decode: tuple[Callable[[int], Any], ...]
    """Function from the number to the value, for each field."""
    is_valid: Callable[[NDArray[Any]], bool]
    """Function from stored numbers, shape (n,), to whether all are valid."""
    meaning: str
    """Description in the plural, for messages: "expected …"."""


SAMPLING: Final = 0
"""Index of sampling numbers in columns of carried numbers."""
CARRIED: Final = (
    CarriedNumber(
        "sampling",
        ("label_probability", "label_requested"),
        sampling_of,
        (probability_of, requested_of),
        is_sampling,
        "probabilities with which labels are asked for",
    ),
)
"""Carried numbers by their index in a column `carried`, which is int32, (n, len(CARRIED)), everywhere."""
CARRIED_FIELDS: Final = tuple(field for each in CARRIED for field in each.fields)
"""Fields that carried numbers encode, in order."""


def carried_by(event: object) -> tuple[int, ...]:
    """Return the carried numbers of an event, or outcome, that has `CARRIED_FIELDS`."""
    return tuple(each.encode(*[getattr(event, name) for name in each.fields]) for each in CARRIED)


def carried_fields(carried: Sequence[int]) -> list[Any]:
    """Return the values of `CARRIED_FIELDS` that the carried numbers of one event stand for."""
    return [decode(each) for number, each in zip(CARRIED, carried, strict=True) for decode in number.decode]


def carried_by_all(events: Sequence[object]) -> NDArray[np.int32]:
    """Return the carried numbers of events, as `carried_by` does: shape (n, len(CARRIED))."""
    found = np.zeros((len(events), len(CARRIED)), np.int32)
    for index, number in enumerate(CARRIED):
        first, *others = (map(attrgetter(name), events) for name in number.fields)
        values = list(first)
        if values.count(None) < len(values):
            found[:, index] = list(map(number.encode, values, *others))
    return found


def carried_values(carried: NDArray[np.int32]) -> list[Iterable[Any]]:
    """Return n values of each of `CARRIED_FIELDS`: the last arguments of `Prediction` and `Outcome`."""
    found: list[Iterable[Any]] = []
    for index, number in enumerate(CARRIED):
        column = carried[:, index]
        numbers: list[int] | None = column.tolist() if column.any() else None
        found += [
            repeat(None, len(carried)) if numbers is None else map(decode, numbers)
            for decode in number.decode
        ]
    return found


# Values of segments of one prediction as one text, so that a number can stand for all of them.


OTHER: Final = "__other__"
"""Name that stands for all classes of a model, or values of a segment, that are not distinguished."""
_REMEMBERED: Final = 16_384
_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(list[tuple[Name, Name]])


def segments_text(segments: Mapping[str, str]) -> str:
    """Write segments with their values, in their order."""
    return _ENCODER.encode(list(segments.items())).decode()


@lru_cache(_REMEMBERED)
def segments_of(text: str) -> dict[str, str]:
    """Read a text of `segments_text`; the result is shared and must not be changed.

    Raises
    ------
    ValueError
        If it is no such text.
    """
    return dict(_DECODER.decode(text))


def others_of(segments: Mapping[str, str]) -> dict[str, str]:
    """Replace the value of each segment by `OTHER`."""
    return dict.fromkeys(segments, OTHER)


# Names under which the folds of a model are monitored: each fold as a model of its own.
#
# The name of fold f of model m is m, a control character that no valid name contains, and f in decimal.
# Journal and store know nothing else of folds. In the join, the folds of a model share its labels; reports
# join the folds of a model; users never see these names.


SEPARATOR: Final = "\x1f"


def fold_name(model: str, fold: int) -> str:
    """Return the name of fold `fold` of a model."""
    return f"{model}{SEPARATOR}{fold}"


def model_of(name: str) -> str:
    """Return the model of a fold's name; any other name is returned as it is."""
    return name.partition(SEPARATOR)[0]


def fold_of(name: str) -> int | None:
    """Return the number of the fold in a fold's name; None for any other name."""
    fold = name.partition(SEPARATOR)[2]
    return int(fold) if fold else None


def shown_name(name: str) -> str:
    """Write a name, which may be that of a fold, for people."""
    fold = fold_of(name)
    return name if fold is None else f"{model_of(name)} (fold {fold})"
