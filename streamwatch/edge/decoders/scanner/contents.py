"""Converts the text of fields to the contents of a row: ids, times, headers, sampling, scores."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, hot, inner, text_stops, trailing_zeros
from streamwatch.core.records.fetched import PADDING
from streamwatch.edge.decoders.scanner.text import (
    ABSENT,
    ARRAY_CLOSES,
    COLON,
    COMMA,
    LETTER_T,
    LETTER_Z,
    LITERAL,
    MINUS,
    NULL,
    NUMBER,
    OBJECT_CLOSES,
    OBJECT_OPENS,
    PLUS,
    POINT,
    QUOTE,
    RAW,
    SCORES,
    SPACE,
    TEXT,
    UNUSUAL,
    WIDE,
    ZERO,
    after_space,
    digits,
    first_word,
    number_at,
    plain_text,
    same,
)
from streamwatch.edge.decoders.scanner.tokens import number_of

# Constants of other files are repeated here, as a change there would not recompile these functions
# (`core.jit.cache.sources_of_room`).
MAX_TIMESTAMP_MS: Final = 253_402_300_799_999
"""The end of the year 9999, as in `edge.decoders.fields`."""
MAX_ID_BYTES: Final = 128
"""Bytes of an id at most, as `MAX_TEXT_BYTES` of `edge.decoders.fields`."""
MILLISECONDS, SECONDS, MICROSECONDS, NANOSECONDS, ISO_8601 = range(5)
"""Units of timestamps; ISO_8601 is text with date and time."""
MAX_TIME_DIGITS: Final = 19
"""Digits of a timestamp at most, so that the number fits 64 bits without a sign."""
_MAX_SPLIT_MS: Final = 4_000_000_000_000
"""Limit (the year 2096) up to which doubles hold seconds to well below a microsecond."""
_TEN = np.uint64(10)
_DAYS_BEFORE_1970: Final = 719_468
"""Days from 1 March of the year 0 to 1 January 1970."""
_LATEST = np.uint64(MAX_TIMESTAMP_MS)
_DIGIT_0 = np.uint64(ZERO)


@hot
def id_span(data: Any, kind: int, start: int, stop: int) -> tuple[int, int]:
    """Return start and end of an id's text; UNUSUAL where it is invalid, or not in canonical form."""
    if kind == TEXT or kind == WIDE:  # noqa: PLR1714, SIM109 - compiled
        start += 1
        stop -= 1
    elif kind == RAW:
        at = start
        while at < stop:
            stops = text_stops(data, at)
            if stops:
                at += trailing_zeros(stops)
                break
            at += 32
        if at < stop:
            return UNUSUAL, UNUSUAL
    elif kind == NUMBER:
        first = start + 1 if data[start] == MINUS else start
        if first + digits(data, first) != stop or (first > start and data[first] == ZERO):
            return UNUSUAL, UNUSUAL
    else:
        return UNUSUAL, UNUSUAL
    if not 0 < stop - start <= MAX_ID_BYTES:
        return UNUSUAL, UNUSUAL
    return start, stop


@hot
def without_affixes(data: Any, affixes: Any, sizes: Any, start: int, stop: int) -> tuple[int, int]:
    """Return start and end of a text after a prefix and a suffix are cut off, if it has them."""
    prefix, suffix = sizes[0], sizes[1]
    if 0 < prefix <= stop - start:
        same = 0
        while same < prefix and data[start + same] == affixes[same]:
            same += 1
        if same == prefix:
            start += prefix
    if 0 < suffix <= stop - start:
        same = 0
        while same < suffix and data[stop - suffix + same] == affixes[prefix + same]:
            same += 1
        if same == suffix:
            stop -= suffix
    return start, stop


@hot
def _written(data: Any, start: int, stop: int) -> Any:
    """Return the number that digits write."""
    number = np.uint64(0)
    for at in range(start, stop):
        number = number * _TEN + (np.uint64(data[at]) - _DIGIT_0)
    return number


@hot
def _two_digits(data: Any, at: int) -> int:
    """Return the number that two digits write; UNUSUAL where they are no digits."""
    tens: Any = np.int64(data[at]) - ZERO
    ones: Any = np.int64(data[at + 1]) - ZERO
    return tens * 10 + ones if 0 <= tens <= 9 and 0 <= ones <= 9 else UNUSUAL


@hot
def _days_of_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 + (month + month // 8) % 2


@hot
def _days_since_1970(year: int, month: int, day: int) -> int:
    """Count days since 1970 in the Gregorian calendar, with years from March, so that a leap day is last."""
    if month <= 2:
        year -= 1
        month += 12
    leap_days = year // 4 - year // 100 + year // 400
    return 365 * year + leap_days + (153 * (month - 3) + 2) // 5 + day - 1 - _DAYS_BEFORE_1970


@inner
def iso_8601_ms(  # noqa: PLR0911 - compiled: a way out for each part
    data: Any, at: int, stop: int
) -> int:
    """Read `2026-11-26T10:40:28.125+01:00`, with up to nine decimals, as milliseconds since the epoch.

    Date and time are joined by T or a space; the offset is Z, `+01:00`, `+0100`, `+01`, or absent for UTC.
    Fractions of a millisecond are cut off. UNUSUAL for every other form, and out of range.
    """
    if stop - at < 19:
        return UNUSUAL
    between = (np.int64(data[at + 4]) << 8) | np.int64(data[at + 7])
    if between != 0x2D2D or data[at + 13] != COLON or data[at + 16] != COLON:
        return UNUSUAL
    if data[at + 10] != LETTER_T and data[at + 10] != SPACE:
        return UNUSUAL
    century, year = _two_digits(data, at), _two_digits(data, at + 2)
    month, day = _two_digits(data, at + 5), _two_digits(data, at + 8)
    hour, minute, second = _two_digits(data, at + 11), _two_digits(data, at + 14), _two_digits(data, at + 17)
    if century < 0 or year < 0 or not 1 <= month <= 12 or not 0 <= hour <= 23:
        return UNUSUAL
    year += 100 * century
    if not (0 <= minute <= 59 and 0 <= second <= 59 and 1 <= day <= _days_of_month(year, month)):
        return UNUSUAL
    found: Any = ((_days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60_000 + second * 1_000
    at += 19
    if at < stop and (data[at] == POINT or data[at] == COMMA):
        decimals = digits(data, at + 1)
        if not 0 < decimals <= 9 or at + 1 + decimals > stop:
            return UNUSUAL
        weight = 100
        for i in range(at + 1, at + 1 + min(decimals, 3)):
            found += weight * (np.int64(data[i]) - ZERO)
            weight //= 10
        at += 1 + decimals
    if at < stop:
        offset = _offset_minutes(data, at, stop)
        if offset == UNUSUAL:
            return UNUSUAL
        found -= offset * 60_000
    return found if 0 <= found <= MAX_TIMESTAMP_MS else UNUSUAL


@hot
def _offset_minutes(data: Any, at: int, stop: int) -> int:
    """Return the minutes of an offset from UTC; UNUSUAL if invalid, and for an offset of -1 minute."""
    if data[at] == LETTER_Z:
        return 0 if at + 1 == stop else UNUSUAL
    size = stop - at
    if (data[at] != PLUS and data[at] != MINUS) or not (size == 3 or size == 5 or size == 6):  # noqa: PLR1714
        return UNUSUAL
    if size == 6 and data[at + 3] != COLON:
        return UNUSUAL
    hours = _two_digits(data, at + 1)
    minutes = 0 if size == 3 else _two_digits(data, stop - 2)
    if not (0 <= hours <= 23 and 0 <= minutes <= 59):
        return UNUSUAL
    offset = hours * 60 + minutes
    return -offset if data[at] == MINUS else offset


@hot
def time_ms(  # noqa: C901, PLR0911, PLR0912 - compiled: one branch a form
    data: Any, kind: int, start: int, stop: int, unit: int
) -> int:
    """Read a timestamp as milliseconds since the epoch; UNUSUAL where it is no plain one, or out of range.

    Seconds with decimals are rounded to milliseconds; close to a half they are UNUSUAL, as the general
    decoder rounds a binary fraction.
    """
    if kind == TEXT:
        start += 1
        stop -= 1
    elif kind != NUMBER and kind != RAW:  # noqa: PLR1714 - compiled
        return UNUSUAL
    if unit == ISO_8601:
        return iso_8601_ms(data, start, stop) if kind != NUMBER else UNUSUAL
    count = digits(data, start)
    end = start + count
    if count == 0 or count > MAX_TIME_DIGITS or end > stop:
        return UNUSUAL
    number = _written(data, start, end)
    if unit == SECONDS:
        if count > 12:
            return UNUSUAL
        number *= np.uint64(1_000)
        if end < stop:
            decimals = digits(data, end + 1)
            if data[end] != POINT or not 0 < decimals <= 9 or end + 1 + decimals != stop:
                return UNUSUAL
            if number > np.uint64(_MAX_SPLIT_MS):
                return UNUSUAL
            fraction = _written(data, end + 1, stop)
            for _ in range(decimals, 9):
                fraction *= _TEN
            rest = np.int64(fraction % np.uint64(1_000_000))
            if 499_000 < rest < 501_000:
                return UNUSUAL
            number += fraction // np.uint64(1_000_000)
            if rest > 500_000:
                number += np.uint64(1)
    elif end != stop:
        return UNUSUAL
    elif unit == MICROSECONDS:
        number //= np.uint64(1_000)
    elif unit == NANOSECONDS:
        number //= np.uint64(1_000_000)
    return np.int64(number) if number <= _LATEST else UNUSUAL  # type: ignore[return-value]  (compiled: an int64)


@hot
def _varint(data: Any, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at


@hot
def read_headers(data: Any, at: int, count: int, plan: Any, trace: Any) -> bool:
    """Note in the trace the last header of each wanted name; False if any header's name is not ASCII."""
    for _ in range(count):
        size, at = _varint(data, at)
        start = at
        at += size
        for k in range(start, at):
            if data[k] > 127:
                return False
        value, begin = _varint(data, at)
        for i in range(len(plan.header_leaf)):
            if plan.header_size[i] == size and same(data, start, plan.header_names, plan.header_at[i], size):
                leaf = plan.header_leaf[i]
                trace.kind[leaf] = RAW if value >= 0 else ABSENT
                trace.start[leaf] = begin
                trace.stop[leaf] = begin + max(value, 0)
        at = begin + max(value, 0)
    return True


@entry
def are_without_header(data: Any, starts: Any, counts: Any, name: Any, found: Any) -> None:
    """Tell for each record whether it has neither a header of this name nor one whose name is not ASCII.

    Parameters
    ----------
    data
        uint8: bytes of records.
    starts, counts
        int64 (n,): position of each record's headers, and their number.
    name
        uint8: the name, followed by `PADDING` more bytes.
    found
        bool (n,): the result, written here.
    """
    wanted = len(name) - PADDING
    for i in range(len(starts)):
        at = starts[i]
        found[i] = True
        for _ in range(counts[i]):
            size, at = _varint(data, at)
            if size == wanted and same(data, at, name, 0, size):
                found[i] = False
            for k in range(at, at + size):
                if data[k] > 127:
                    found[i] = False
            at += size
            value, at = _varint(data, at)
            at += max(value, 0)


# Sampling of labels: the probability with which a prediction's label is requested, and whether it was.


REQUESTED: Final = 32
"""Number of the lowest bits, which hold the probability as a float32; above them is whether the label was
requested: 2 yes, 1 no, 0 unknown."""
_TRUE, _FALSE = (np.uint64(int.from_bytes(text, "little")) for text in (b"true", b"false"))
_ONE_DIGIT, _ZERO_DIGIT = np.uint64(ord("1")), np.uint64(ZERO)


@hot
def sampling_at(data: Any, plan: Any, trace: Any) -> int:  # noqa: PLR0911 - compiled: a reason each
    """Encode how a prediction's label is sampled (see `REQUESTED`), 0 without a probability; or UNUSUAL."""
    leaf = plan.label_probability
    if leaf < 0 or trace.kind[leaf] <= NULL:
        return 0
    start, stop = trace.start[leaf], trace.stop[leaf]
    if trace.kind[leaf] == TEXT:
        start += 1
        stop -= 1
    elif trace.kind[leaf] != NUMBER and trace.kind[leaf] != RAW:
        return UNUSUAL
    at, probability = number_at(data, start)
    if at != stop or not plan.least_probability <= probability <= 1.0:
        return UNUSUAL
    requested = 0
    leaf = plan.label_requested
    if leaf >= 0 and trace.kind[leaf] > NULL:
        start, stop = trace.start[leaf], trace.stop[leaf]
        if trace.kind[leaf] == TEXT:
            start += 1
            stop -= 1
        elif trace.kind[leaf] != NUMBER and trace.kind[leaf] != RAW and trace.kind[leaf] != LITERAL:
            return UNUSUAL
        size = stop - start
        if not 0 < size <= 5:
            return UNUSUAL
        word = first_word(data, start, size)
        if (size == 4 and word == _TRUE) or (size == 1 and word == _ONE_DIGIT):
            requested = 2
        elif (size == 5 and word == _FALSE) or (size == 1 and word == _ZERO_DIGIT):
            requested = 1
        else:
            return UNUSUAL
    return np.int64(np.float32(probability).view(np.int32)) | requested << REQUESTED  # type: ignore[return-value]  (compiled: an int64)


# Scores of one record: an object of class → number, or an array of numbers; both are one content.


MAX_SCORES: Final = 4_096
"""Scores of a record at most, as in `edge.decoders.judging`."""
SCORE_BYTES: Final = 2
"""Least bytes of a score in an array: a digit and a comma."""
_LEAST, _MOST = -1e-6, 1.000001
"""Bounds of a probability, as in `edge.decoders.fields`."""
NAMED, BY_THRESHOLD, BY_LARGEST = range(3)
"""Rules that find a class: it is named, or decided by a threshold, or has the largest score."""
NEW: Final = -3
"""Result where the name of a class was not met before."""
_UNKNOWN: Final = -1
_NAME_BYTES: Final = 256
"""More than the bytes of any name in the tables."""


class ScoreRoom(NamedTuple):
    """Arrays that scores are read to: first all of a record, then packed to those of its events."""

    classes: NDArray[np.int32]
    """Numbers of classes, event after event; -1 where not yet looked up."""
    values: NDArray[np.float64]
    state: NDArray[np.int64]
    """Shape (6,): position for the next event's scores; end of the scores read of the current record; number
    of names in `before`; earlier events with scores or a sampled label; mark of the current event; how its
    label is sampled, as `sampling_at` encodes it."""
    spans: NDArray[np.int64]
    """Shape (n, 2): start and end of the scores as read, of the record or of each of its elements."""
    before: NDArray[np.int64]
    """Shape (MAX_SCORES, 4), by position in an earlier object of the same data: start of the name, bytes up
    to the value, bytes up to its closing quote, and the class's number, -1 if not looked up. Most objects
    name the same classes in the same order, so that comparing with it replaces parsing."""
    names: NDArray[np.int64]
    """As long as `classes`: for a class not yet looked up, position of its name times `_NAME_BYTES`, plus its
    size."""


def no_score_room() -> ScoreRoom:
    """Make empty room, for topics without scores."""
    spans, before = np.zeros((1, 2), np.int64), np.zeros((1, 4), np.int64)
    names = np.zeros(0, np.int64)
    return ScoreRoom(np.zeros(0, np.int32), np.zeros(0), np.zeros(6, np.int64), spans, before, names)


class ScoreRule(NamedTuple):
    """Rule that makes the class and the scores of one side's events."""

    rule: int
    threshold: float
    """NaN where records carry it."""
    above: int
    """Number of the class from the threshold on; `below` is that of the class below it."""
    below: int
    probability: bool
    """Whether the score that is compared with the threshold is the probability of `above`."""
    gives_scores: bool
    """Whether scores are part of the event, or only decide its class."""


@hot
def scores_after(data: Any, at: int, room: Any) -> int:  # noqa: PLR0911 - compiled
    """Read the scores whose brace or bracket is at `at`; return the position after them, or UNUSUAL.

    `judged_scores` looks up the names of classes later. No scores, more than `MAX_SCORES`, and more than
    there is room for, are UNUSUAL.
    """
    is_object = data[at] == OBJECT_OPENS
    first: Any = room.state[1]
    count, most = 0, min(MAX_SCORES, len(room.values) - first)
    at = after_space(data, at + 1)
    while count < most:
        number = _UNKNOWN
        if is_object:
            before = room.before[count]
            if count < room.state[2] and same(data, at, data, before[0], before[1]):
                at += before[1]
            else:
                if data[at] != QUOTE:
                    return UNUSUAL
                start = at
                stop = plain_text(data, at + 1)
                if stop < 0:
                    return UNUSUAL
                at = after_space(data, stop + 1)
                if data[at] != COLON:
                    return UNUSUAL
                at = after_space(data, at + 1)
                before[0], before[1], before[2] = start, at - start, stop + 1 - start
                before[3] = _UNKNOWN
                room.state[2] = count + 1
            number = before[3]
            if number < 0:
                room.names[first + count] = before[0] * _NAME_BYTES + min(before[2], _NAME_BYTES - 1)
        at, value = number_at(data, at)
        if at < 0:
            return UNUSUAL
        room.classes[first + count], room.values[first + count] = number, value
        count += 1
        at = after_space(data, at)
        if data[at] != COMMA:
            if data[at] != (OBJECT_CLOSES if is_object else ARRAY_CLOSES):
                return UNUSUAL
            room.state[1] = first + count
            return at + 1
        at = after_space(data, at + 1)
    return UNUSUAL


@hot
def judged_scores(  # noqa: C901, PLR0911, PLR0912, PLR0913, PLR0915, PLR0917 - compiled: a reason each
    data: Any, rule: Any, of: Any, least: Any, scored: Any, names: Any, of_array: Any, marks: Any, room: Any
) -> int:
    """Return the number of an event's class by its rule; keep its scores if they are part of it.

    0 where the class is named; UNUSUAL where scores are invalid or several are the largest; NEW where the
    name of a class was not met before.

    Parameters
    ----------
    data, rule
        Bytes of the records; the rule, a `ScoreRule`.
    of, least, scored
        (kind, start, end) of three contents: the one that decides the class, the threshold in the record, and
        the scores.
    names, of_array
        Table of the names of classes met before, in quotes; numbers of the classes of an array.
    marks
        By class, the mark of the last event with a score for it: detects a class that is named twice.
    room
        Scores of the event (`ScoreRoom`); changed.
    """
    values, classes = room.values, room.classes
    first, end = room.spans[0, 0], room.spans[0, 1]
    kept = room.state[0]
    named: Any = 0
    score = 0.0
    given = rule.gives_scores and scored[0] > NULL
    if given or rule.rule == BY_LARGEST:
        if scored[0] != SCORES:
            return UNUSUAL
        is_object = data[scored[1]] == OBJECT_OPENS
        if is_object == (len(of_array) > 0) or not (is_object or end - first == len(of_array)):
            return UNUSUAL
        room.state[4] += 1
        for i in range(first, end):
            number: Any = classes[i]
            if not is_object:
                number = of_array[i - first]
            elif number < 0:
                at, size = room.names[i] // _NAME_BYTES, room.names[i] % _NAME_BYTES
                number = number_of(data, at, size, names)
                if number < 0:
                    return NEW
                if room.before[i - first, 0] == at:
                    room.before[i - first, 3] = number
            if marks[number] == room.state[4]:
                return UNUSUAL  # a class twice
            marks[number] = room.state[4]
            classes[i] = number
    if rule.rule == BY_THRESHOLD:
        if of[0] != NUMBER:
            return UNUSUAL
        at, score = number_at(data, of[1])
        if at != of[2] or (rule.probability and not _LEAST <= score <= _MOST):
            return UNUSUAL
        threshold = rule.threshold
        if threshold != threshold:  # noqa: PLR0124 - NaN: the record has it
            if least[0] != NUMBER:
                return UNUSUAL
            at, threshold = number_at(data, least[1])
            if at != least[2]:
                return UNUSUAL
        named = rule.above if score >= threshold else rule.below
    elif rule.rule == BY_LARGEST:
        largest, tied = first, False
        for i in range(first + 1, end):
            if values[i] > values[largest]:
                largest, tied = i, False
            elif values[i] == values[largest]:
                tied = True
        if tied:
            return UNUSUAL
        named = np.int64(classes[largest])
    if given:
        for i in range(first, end):
            if not _LEAST <= values[i] <= _MOST:
                return UNUSUAL
            classes[kept], values[kept] = classes[i], min(max(values[i], 0.0), 1.0)
            kept += 1
    elif rule.probability:
        if kept + 2 > len(values) or room.state[1] > kept:
            return UNUSUAL
        score = min(max(score, 0.0), 1.0)
        classes[kept], classes[kept + 1] = rule.above, rule.below
        values[kept], values[kept + 1] = score, 1.0 - score
        kept += 2
        room.state[1] = kept
    room.state[0] = kept
    return named
