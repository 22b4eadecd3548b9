"""Conversion of the rows of a Parquet file to JSON values.

A row becomes an object with a field for each column that is not null; structs become objects, lists arrays.
Whole decimals keep all their digits, as they may be ids; those beyond 64 bits become text.
Timestamps become milliseconds since the epoch (UTC if they have no zone), dates ISO 8601 text.
"""

# ruff: noqa: PLC0415  # pyarrow is an extra, and takes a fifth of a second to import

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import msgspec

from streamwatch.edge.extras import command_for
from streamwatch.history.recordings.file import RecordingError

_ROWS: Final = 5_000
"""Number of rows converted at a time."""
_BEYOND_64_BITS: Final = 2**63


def parquet_values(path: str, name: str) -> Iterator[bytes]:
    """Yield the JSON value of each row of a file, in order; messages call the file `name`.

    Raises
    ------
    RecordingError
        The file is no Parquet file, is truncated, has a value that JSON cannot represent, or pyarrow is not
        installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise RecordingError(f"{name}: reading Parquet needs pyarrow: {command_for('parquet')}") from error
    if path == "-":
        raise RecordingError(
            "-: expected the name of a Parquet file, whose end is read first; got standard input"
        )
    row = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_ROWS):
                for found in batch.to_pylist():
                    row += 1
                    yield msgspec.json.encode(_value(found))
    except (pa.ArrowException, OSError) as error:
        raise RecordingError(f"{name} cannot be read as Parquet behind row {row}: {error}") from error
    except (TypeError, ValueError, OverflowError, KeyError) as error:  # of dates and time zones, too
        raise RecordingError(f"{name}, row {row}: expected values that JSON can hold: {error}") from error


def _value(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _value(each) for name, each in found.items() if each is not None}
    if isinstance(found, list):
        return [_value(each) for each in found]
    if isinstance(found, datetime):
        aware = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
        return round(aware.timestamp() * 1_000)
    if isinstance(found, Decimal):
        return _number(found)
    if isinstance(found, bytes):
        return found.decode()
    return found


def _number(found: Decimal) -> float | int | str:
    """Convert a decimal: a whole one to all its digits, as text where JSON readers would round them."""
    if found != found.to_integral_value():
        return float(found)
    whole = int(found)
    return whole if -_BEYOND_64_BITS <= whole < _BEYOND_64_BITS else str(whole)
