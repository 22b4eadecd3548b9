"""Scores of predictions and outcomes as bytes: classes, and values in the fewest bytes that keep them.

Models give scores as decimals of few digits, or in single or double precision. The scores of a prediction
have one form, the first that gives back the bits of all of them: as whole numbers of a decimal place, from
ones to billionths, in 1, 2 or 4 bytes; in single precision; or as they are, in 8 bytes. Where all predictions
of a value name the same classes in the same order, as those of one service do, these are stored once.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, hot
from streamwatch.core.join.durable.columns import (
    MOST_ROWS,
    PackedError,
    pack_columns,
    pack_numbers,
    require,
    signed,
    unpack_columns,
)
from streamwatch.core.records.scores import ScoreLists

_MOST_DIGITS: Final = 9
"""Most digits behind the point of scores stored as whole numbers: those of a probability fit 4 bytes."""
_SINGLE, _DOUBLE = 10, 11
"""Forms of scores that are stored in single and in double precision; smaller ones are digits."""
_POWERS: Final = 10.0 ** np.arange(_MOST_DIGITS + 1)
_MOST_WHOLE: Final = 2.0**31 - 1
_ROUNDING: Final = 1.5 * 2.0**52
"""Number that rounds one of at most `_MOST_ROUNDED` when it is added and taken away, without a call."""
_MOST_ROUNDED: Final = 2.0**51
_MINUS_ZERO: Final = np.int64(-(2**63))
"""Bits of -0.0, which a whole number does not keep."""


class PackedScores(msgspec.Struct, array_like=True, frozen=True):
    """Scores of some of n rows as bytes; classes are numbers."""

    rows: bytes
    """Packed columns: steps between positions of the rows with scores, from -1 on; how many scores each has;
    and their form: the digits behind the point, `_SINGLE` or `_DOUBLE`."""
    classes: bytes
    """Packed column: number of each score's class; only those of the first row if all rows have the same."""
    wholes: bytes
    """Packed column: scores of rows that have digits, as whole numbers of the last of these."""
    singles: bytes
    """float32, little-endian: scores of rows of that form."""
    doubles: bytes
    """float64, little-endian: scores of all other rows."""


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(PackedScores)


@hot
def lost_as_wholes(values, bits, start, stop, power, most, wholes, at):
    """Write scores times `power` to `wholes` from `at` on; return how many of them these do not give back.

    Those that are larger than `most` count as well.
    """
    lost = 0
    for k in range(start, stop):
        whole = (values[k] * power + _ROUNDING) - _ROUNDING
        wholes[at + k - start] = np.int32(whole)
        lost += (whole / power != values[k]) | (abs(whole) > most) | (bits[k] == _MINUS_ZERO)
    return lost


@hot
def digits_of(values, bits, start, stop, digits, powers, wholes, at):
    """Write scores as whole numbers to `wholes` from `at` on; return their digits, at least `digits`.

    Returns one more than the most if no number of digits gives back all bits. Whatever has few digits has the
    most as well, so these are tried first.
    """
    most = powers.shape[0] - 1
    first = min(start + 1, stop)
    if lost_as_wholes(values, bits, start, first, powers[most], _MOST_ROUNDED, wholes, at):
        return most + 1
    if not lost_as_wholes(values, bits, start, stop, powers[digits], _MOST_WHOLE, wholes, at):
        return digits
    if lost_as_wholes(values, bits, start, stop, powers[most], _MOST_ROUNDED, wholes, at):
        return most + 1
    for more in range(digits + 1, most + 1):
        if not lost_as_wholes(values, bits, start, stop, powers[more], _MOST_WHOLE, wholes, at):
            return more
    return most + 1


@entry
def split_scores(ends, classes, values, bits, powers, forms, wholes, singles, doubles):
    """Write each row's scores in the first form that gives back their bits, with no fewer digits than before.

    Parameters
    ----------
    ends, classes, values
        Attributes of `ScoreLists`, of n rows.
    bits
        `values` as int64.
    powers
        float64: powers of ten, by the number of digits.
    forms
        int64 (n,), output: form of each row.
    wholes, singles, doubles
        int32, float32 and float64, with room for all scores; output.

    Returns
    -------
    wholes, singles, doubles
        Numbers of scores written to each.
    alike
        Whether all rows have the same classes in the same order.
    """
    of_wholes = of_singles = of_doubles = start = before = digits = 0
    alike = True
    for r in range(ends.shape[0]):
        stop = ends[r]
        size = stop - start
        if r and alike:
            alike = size == before
            k = start
            while alike and k < stop:
                alike = classes[k] == classes[k - size]
                k += 1
        before = size
        own = digits_of(values, bits, start, stop, digits, powers, wholes, of_wholes)
        if own < powers.shape[0]:
            forms[r] = digits = own
            of_wholes += size
        else:
            k = start
            while k < stop and np.float64(np.float32(values[k])) == values[k]:
                singles[of_singles + k - start] = np.float32(values[k])
                k += 1
            if k == stop:
                forms[r] = _SINGLE
                of_singles += size
            else:
                forms[r] = _DOUBLE
                for j in range(start, stop):
                    doubles[of_doubles] = values[j]
                    of_doubles += 1
        start = stop
    return of_wholes, of_singles, of_doubles, alike


def pack_scores(scored: NDArray[np.int64], scores: ScoreLists) -> bytes:
    """Pack the scores of rows at these positions, ascending, without `beside`; empty for none."""
    if not len(scored):
        return b""
    count, forms = len(scores.values), np.empty(len(scored), np.int64)
    wholes, singles, doubles = np.empty(count, np.int32), np.empty(count, "<f4"), np.empty(count, "<f8")
    values = np.ascontiguousarray(scores.values)
    columns = scores.ends, scores.classes, values, values.view(np.int64)
    of_wholes, of_singles, of_doubles, alike = split_scores(
        *columns, _POWERS, forms, wholes, singles, doubles
    )
    steps, sizes = np.diff(scored, prepend=np.int64(-1)), np.diff(scores.ends, prepend=np.int64(0))
    packed = PackedScores(
        pack_columns((steps, sizes, forms)),
        pack_numbers(scores.classes[: int(sizes[0])] if alike else scores.classes),
        pack_numbers(wholes[:of_wholes]),
        singles[:of_singles].tobytes(),
        doubles[:of_doubles].tobytes(),
    )
    return _ENCODER.encode(packed)


def unpack_scores(value: bytes, rows: int) -> tuple[NDArray[np.int64], ScoreLists]:
    """Unpack a result of `pack_scores` that is not empty; `beside` is -1 for every row.

    Raises
    ------
    PackedError
        If it cannot be such a result of this many rows.
    """
    try:
        packed = _DECODER.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PackedError(f"expected packed scores: {error}") from error
    steps, sizes, forms = map(signed, unpack_columns(packed.rows, 3))
    scored = np.cumsum(steps) - 1
    require(sizes, 0, MOST_ROWS, "numbers of scores")
    require(forms, 0, _DOUBLE, "forms of scores")
    if (
        not len(steps)
        or int(steps[1:].min(initial=1)) < 1
        or not 0 <= int(scored[0]) <= int(scored[-1]) < rows
    ):
        raise PackedError(f"expected scores of {rows} rows, in their order")
    values = _values_of(packed, sizes, forms)
    classes = signed(*unpack_columns(packed.classes, 1))
    require(classes, 0, 2**31 - 1, "numbers of classes")
    if len(classes) < len(values) and (sizes == len(classes)).all():
        classes = np.tile(classes, len(sizes))
    if len(classes) != len(values):
        raise PackedError(f"expected classes of {len(values)} scores, got {len(classes)}")
    beside = np.full(len(scored), -1, np.int32)
    return scored, ScoreLists(np.cumsum(sizes), classes.astype(np.int32), values, beside)


def _values_of(
    packed: PackedScores, sizes: NDArray[np.int64], forms: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the scores of all rows; raises PackedError if there are more or fewer than `sizes` says."""
    wholes = signed(*unpack_columns(packed.wholes, 1))
    require(wholes, -int(_MOST_WHOLE), int(_MOST_WHOLE), "scores as whole numbers")
    if len(packed.singles) % 4 or len(packed.doubles) % 8:
        raise PackedError("expected scores of 4 and of 8 bytes, got a part of one")
    singles, doubles = np.frombuffer(packed.singles, "<f4"), np.frombuffer(packed.doubles, "<f8")
    found = [len(wholes), len(singles), len(doubles)]
    kinds = np.maximum(forms - _MOST_DIGITS, 0)
    wanted = [int(sizes[kinds == kind].sum()) for kind in range(len(found))]
    if found != wanted:
        raise PackedError(f"expected {wanted} scores of each kind, got {found}")
    in_digits = kinds == 0
    parts = [wholes / np.repeat(_POWERS[forms[in_digits]], sizes[in_digits]), singles, doubles]
    if max(found) == sum(found):
        return parts[found.index(max(found))].astype(np.float64)
    values, of_scores = np.empty(sum(found), np.float64), np.repeat(kinds, sizes)
    for kind, part in enumerate(parts):
        values[of_scores == kind] = part
    return values


def warm_up_packed_scores() -> None:
    """Pack scores, so that the compiled function is called."""
    one = np.ones(1, np.int64)
    pack_scores(one, ScoreLists(one, np.zeros(1, np.int32), np.ones(1), np.zeros(1, np.int32)))
