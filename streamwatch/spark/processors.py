"""Stages of the job: the object of a bucket is fed the rows that Spark hands over, its change is logged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from streamwatch.core.buckets.contract import Fed, Keeper
from streamwatch.spark.delta_log import (
    HEAD_SCHEMA,
    KEY_SCHEMA,
    LEAST_REBASE_BYTES,
    VALUE_SCHEMA,
    DeltaLog,
    Entries,
    Head,
    KeptObjects,
)
from streamwatch.spark.rows import Arrived, ResultRow, Row, arrived

if TYPE_CHECKING:
    import pandas as pd

NewKeeper = Callable[[int], Keeper]
"""From the number of a bucket, counted from 0, to its object without state."""
KEPT: Final = KeptObjects({})
"""Of this worker process: Spark gives each task processors of its own, and uses the process again."""


@dataclass(frozen=True, slots=True)
class StageSpec:
    """One stage of buckets."""

    name: str
    """Sets its kept objects apart from those of other stages, and of other jobs."""
    keys: Sequence[int]
    """Key of each bucket, by its number: Spark deals rows out by the hash of the key."""
    new_keeper: NewKeeper
    next_keys: Sequence[int] = ()
    """Keys of the buckets of the next stage; none after the last."""
    rebase_bytes: int = LEAST_REBASE_BYTES


class Stage(StatefulProcessor):
    """Feeds buckets; its output is rows to the buckets of the next stage, or results after the last.

    Parameters
    ----------
    spec
        Which buckets there are.
    """

    def __init__(self, spec: StageSpec) -> None:
        self._spec = spec

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the states of Spark."""
        head = handle.getValueState("head", HEAD_SCHEMA)
        entries = handle.getMapState("log", KEY_SCHEMA, VALUE_SCHEMA)
        self._log = DeltaLog(cast("Head", head), cast("Entries", entries), self._spec.rebase_bytes)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: tuple[Any, ...],
        rows: Iterator[pd.DataFrame],
        timerValues: object,  # noqa: N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Feed the bucket of this key what came for it.

        The object is kept for the next batch before Spark commits this one. Should Spark not commit it, the
        object's token is not that of the log's last entry, and it is built anew.
        """
        import pandas as pd  # noqa: PLC0415 - in the workers only

        del timerValues
        spec = self._spec
        number = spec.keys.index(int(key[0]))
        came = arrived(rows)
        kept = self._log.load(KEPT.take(spec.name, number), lambda: spec.new_keeper(number))
        fed = kept.keeper.feed(came.batch, came.pieces, came.end_ms)
        self._log.append(kept, fed.delta)
        KEPT.put(spec.name, number, kept)
        if spec.next_keys:
            yield pd.DataFrame(rows_onward(spec.next_keys, number, came, fed), columns=list(Row._fields))
        else:
            yield pd.DataFrame(rows_of_results(came, fed), columns=list(ResultRow._fields))

    def close(self) -> None:
        """Leave nothing behind: what is kept is for the next batch."""


def rows_onward(next_keys: Sequence[int], number: int, came: Arrived, fed: Fed) -> list[Row]:
    """Rows to the next stage; results, those of the source included, ride along to the sink."""
    batch, end_ms = came.batch, came.end_ms
    rows = [
        Row(next_keys[bucket], batch, end_ms, number, 0, None, None, piece) for bucket, piece in fed.parts
    ]
    onward = next_keys[number % len(next_keys)]
    passed = [(result.kind, result.name, result.body) for result in came.results]
    for part, (kind, name, body) in enumerate([*passed, *fed.results]):
        rows.append(Row(onward, batch, end_ms, number, part, kind, name, body))
    return rows


def rows_of_results(came: Arrived, fed: Fed) -> Iterable[ResultRow]:
    """Rows to the sink: results of the stage before, then those of this one."""
    own = [ResultRow(came.batch, kind, name, body) for kind, name, body in fed.results]
    return [*came.results, *own]
