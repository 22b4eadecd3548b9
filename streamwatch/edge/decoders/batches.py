"""Fetched records → a `RecordBatch`: the scanner's columns, and event objects for records it cannot read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.ports import Record
from streamwatch.core.records.batch import RecordBatch, batch_of
from streamwatch.core.records.events import Decoded, Side
from streamwatch.core.records.fetched import FetchedRecords
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.edge.decoders.fields import canonical_text
from streamwatch.edge.decoders.mapping import AnyLocation, Constant, InTopic, TopicMapping
from streamwatch.edge.decoders.scanner.plan import plan_of, score_rules
from streamwatch.edge.decoders.scanner.reader import ColumnReader
from streamwatch.edge.keys import IdKeys
from streamwatch.folds import Scheme

FEWEST_AT_ONCE: Final = 512
"""Number of the records left by the scanner that are decoded, to teach it names, before it reads the others
again; doubled each time."""


class Batches:
    """Decodes the records of one topic, many at once.

    Parameters
    ----------
    topic, side, mapping
        The topic's name, what it carries, and the paths of its fields.
    locations
        Location of each slot in a record; None where the mapping names none.
    keys
        How ids are changed before they are compared; None leaves them as they are.
    vocabulary
        Numbers of names; a new one if None.
    folds
        Scheme that decides which fold tests which id; None if no model predicts in folds.
    """

    def __init__(
        self,
        topic: str,
        side: Side,
        mapping: TopicMapping,
        locations: Mapping[str, AnyLocation | None],
        keys: IdKeys | None,
        vocabulary: Vocabulary | None,
        folds: Scheme | None,
    ) -> None:
        self._vocabulary = vocabulary or Vocabulary()
        keys = keys or IdKeys()
        numbers = self._fixed_numbers(topic, mapping, locations)
        rules = score_rules(mapping, self._vocabulary.classes.fixed_number)
        prefix = keys.prefix.encode()
        plan = plan_of(
            side,
            locations,
            numbers,
            mapping.timestamp_unit,
            mapping.kind,
            prefix,
            rules,
            reads_folds=folds is not None and folds.prequential,
            least_probability=mapping.min_label_probability,
        )
        self._reader = None
        if plan is not None:
            self._reader = ColumnReader(plan, self._vocabulary, mapping.classes, keep_texts=not keys.digest)

    def _fixed_numbers(
        self, topic: str, mapping: TopicMapping, locations: Mapping[str, AnyLocation | None]
    ) -> dict[str, int]:
        """Numbers of the names that are the same for every record, by slot; invalid names are left out."""
        numbers: dict[str, int] = {}
        for slot, location in locations.items():
            if not isinstance(location, Constant | InTopic):
                continue
            text = canonical_text(location.text if isinstance(location, Constant) else topic)
            if text is not None and slot == "model":
                numbers[slot] = self._vocabulary.models.fixed_number(text)
            elif text is not None and slot in ("prediction", "label"):
                numbers[slot] = self._vocabulary.classes.fixed_number(mapping.classes.get(text, text))
        return numbers

    def decode(
        self,
        records: Sequence[Record],
        decode_all: Callable[[Sequence[Record], Sequence[int]], Sequence[Decoded]],
    ) -> RecordBatch:
        """Decode records; `decode_all` decodes those that the scanner leaves, given them and their times."""
        if self._reader is None or not isinstance(records, FetchedRecords):
            stamps = [record.timestamp for record in records]
            offsets = np.array([record.offset for record in records], np.int64)
            return batch_of(
                decode_all(records, stamps), offsets, np.array(stamps, np.int64), self._vocabulary
            )
        return self._decode_fetched(self._reader, records, decode_all)

    def _decode_fetched(
        self,
        reader: ColumnReader,
        records: FetchedRecords,
        decode_all: Callable[[Sequence[Record], Sequence[int]], Sequence[Decoded]],
    ) -> RecordBatch:
        """Scan records; if many are left, decode some of them, learn their names and scan the rest again."""
        batch, left = reader.read(records.data, records.rows)
        first = np.arange(len(batch))  # position in `records` of each record of the last scan
        part = FEWEST_AT_ONCE
        given: list[tuple[NDArray[np.int64], Sequence[Decoded]]] = []
        while len(left):
            now, later = left[:part], left[part:]
            positions = first[now]
            unusual = [records.record(position) for position in positions.tolist()]
            decoded = decode_all(unusual, [record.timestamp for record in unusual])
            given.append((positions, decoded))
            learnt = [
                reader.learn(records.data, records.rows[first[index], None], index, found)
                for index, found in zip(now.tolist(), decoded, strict=True)
            ]
            if not any(learnt):
                part, left = len(left), later
                continue
            part *= 2
            first = first[later]
            again, left = reader.read(records.data, records.rows[first])
            batch = batch.with_rows(first, again)
        if not given:
            return batch
        positions = np.concatenate([positions for positions, _ in given])
        rows = batch.rows[positions]
        others = [each for _, decoded in given for each in decoded]
        return batch.with_rows(positions, batch_of(others, rows["offset"], rows["record_ms"]))
