"""Writes a trace: a CSV row per outcome with every estimate and alarm; floats read back exactly."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from streamwatch.core.estimators.names import TraceChunk
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.metrics.series import Family
from streamwatch.core.records.events import Alarm, Outcome
from streamwatch.history.recordings.file import RecordingError, place_of

_EXECUTED: Final = re.compile(r"['=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""Beginnings of texts that a spreadsheet takes for formulas, and of texts that are escaped."""
_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


class TraceError(RecordingError):
    """Trace that cannot be written."""


class TraceCsv:
    """CSV file of a trace.

    Columns of outcomes are `model,outcome,y_true,y_pred` and then one per series, named like the metric with
    its label values after `:`. Undefined values are empty. Floats have the fewest digits that read back as
    the same float.

    Texts come from records, and a spreadsheet would execute a class named `=HYPERLINK(…)`: a text that begins
    with `=`, `+`, `-`, `@`, a tab, a line break or `'` is written with `'` before it, which marks text in
    spreadsheets, unless it is a number such as `-1`.

    Raises
    ------
    TraceError
        The file cannot be opened.
    """

    def __init__(self, path: str | Path) -> None:
        self.rows = 0
        """Number of rows written so far."""
        try:
            self._file = Path(path).open("w", newline="", encoding="utf-8")  # noqa: SIM115  # __exit__ closes
        except OSError as error:
            raise self._failed(path, error) from error
        self._path = path
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._headed = False

    def write(self, chunk: TraceChunk) -> None:
        """Write the rows of a chunk; before those of the first one, the header.

        Raises
        ------
        TraceError
            The file cannot be written to; also at the end of the context, which writes what is buffered.
        """
        try:
            if not self._headed:
                self._writer.writerow(map(_field, chunk.columns))
                self._headed = True
            self._writer.writerows([_field(value) for value in row] for row in chunk.rows)
        except OSError as error:
            raise self._failed(self._path, error) from error
        self.rows += len(chunk.rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._file.close()
        except OSError as error:
            raise self._failed(self._path, error) from error

    @staticmethod
    def _failed(path: str | Path, error: OSError) -> TraceError:
        return TraceError(f"the trace cannot be written to {path}: {error.strerror or error}")


def require_own_files(traces: Sequence[str | Path | None], sources: Sequence[str | Path]) -> None:
    """Refuse traces that would overwrite a recording, or each other.

    Parameters
    ----------
    traces
        Files to write; None where a trace is not wanted.
    sources
        Recordings to read; `-` is standard input.

    Raises
    ------
    TraceError
        A trace is one of the recordings, or two traces are one file.
    """
    read = {place_of(source): source for source in sources}
    written: set[object] = set()
    for trace in traces:
        if trace is None or (here := place_of(trace)) is None:
            continue
        if here in read:
            raise TraceError(
                f"the trace cannot be written to {trace}: expected another file than the recording, "
                f"got {read[here]}"
            )
        if here in written:
            raise TraceError(f"the trace cannot be written to {trace}: the other trace is written there")
        written.add(here)


class TracedEstimatorSet:
    """`EstimatorSet` that writes a row of its series after every outcome, pair, or both."""

    def __init__(self, monitors: EstimatorSet, trace: TraceCsv | None, pairs: TraceCsv | None = None) -> None:
        self._monitors = monitors
        self._trace = trace
        self._pairs = pairs
        self.fold([])  # writes the header, even if there are no outcomes

    @property
    def records_over_limit(self) -> Mapping[str, int]:
        """Number of outcomes over a limit, by limit."""
        return self._monitors.records_over_limit

    def fold(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        """Evaluate outcomes and their pairs in order, and write a row for each."""
        monitors, comparisons = self._monitors, self._monitors.comparisons
        if comparisons is not None and self._pairs is not None:
            self._pairs.write(comparisons.trace(outcomes))
        elif comparisons is not None:
            comparisons.fold(outcomes)
        if self._trace is None:
            return monitors.fold_models(outcomes)
        chunk = monitors.trace_models(outcomes)
        self._trace.write(chunk)
        return chunk.alarms

    def retire(self, model: str) -> None:
        """Remove a model that has retired."""
        self._monitors.retire(model)

    def models(self) -> list[str]:
        """Names of the models."""
        return self._monitors.models()

    def families(self) -> list[Family]:
        """Every series of every model."""
        return self._monitors.families()


def _field(value: str | float | None) -> str | int:
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(value)
    if isinstance(value, str) and _EXECUTED.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value
