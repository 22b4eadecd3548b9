"""JSON records with segments, or with names of several fields: ordinary ones are scanned into columns.

The others are read as trees.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.core.events import Decoded
from streamwatch.core.ports import Record
from streamwatch.core.records import RecordBatch
from streamwatch.edge.decoders.batches import Batches
from streamwatch.edge.decoders.field_locations import located, slot_locations
from streamwatch.edge.decoders.formats.kind import DecoderSpec
from streamwatch.edge.decoders.judging import SLOTS
from streamwatch.edge.decoders.scanner.plan import SEGMENT_SLOT
from streamwatch.edge.decoders.trees import TreeDecoder, needs_whole_values


def can_be_scanned(spec: DecoderSpec) -> bool:
    """Tell whether one mapping asks for nothing but fields by name, and segments."""
    return not spec.mappings and spec.envelope is None and not needs_whole_values(spec.mapping)


class ScannedTrees:
    """Decodes the records of one topic as `trees` does, most of them as columns.

    Parameters
    ----------
    spec
        One that `can_be_scanned`.
    trees
        Decoder of any record.

    Raises
    ------
    ValueError
        A place is not in the notation.
    """

    def __init__(self, spec: DecoderSpec, trees: TreeDecoder) -> None:
        mapping = spec.mapping
        locations = slot_locations(mapping, SLOTS[spec.side])
        if spec.side != "label":
            for name, place in mapping.segments.items():
                locations[SEGMENT_SLOT + name] = located("segments", place)
        self._trees = trees
        self._batches = Batches(spec.topic, spec.side, mapping, locations, spec.keys, spec.vocabulary)

    def decode(self, record: Record, record_ms: int) -> Decoded:
        """Decode one record, as `TreeDecoder.decode` does."""
        return self._trees.decode(record, record_ms)

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Decoded]:
        """Decode each record with its stamp, as `decode` does."""
        return self._trees.decode_all(records, stamps)

    def decode_batch(self, records: Sequence[Record]) -> RecordBatch:
        """Decode records into columns; events of records that are out of the ordinary are objects."""
        return self._batches.decode(records, self._trees.decode_all)
