"""Choice of the form of readers and buckets: in columns if the compiled join suffices, otherwise row by row.

It depends on the settings only; with folds, the form is row by row, too. All readers and buckets of a state
have the same form. A log contains its form, and a bucket of the other form refuses it.
"""

from __future__ import annotations

from streamwatch.core.buckets.columns.id_bucket import ColumnIdBucket
from streamwatch.core.buckets.columns.model_bucket import ColumnModelBucket
from streamwatch.core.buckets.columns.reader import ColumnReader
from streamwatch.core.buckets.contract import Bucket, Reader
from streamwatch.core.buckets.id_bucket import IdBucket
from streamwatch.core.buckets.model_bucket import ModelBucket
from streamwatch.core.buckets.reader import RowReader
from streamwatch.core.buckets.spec import BucketsSpec
from streamwatch.core.join.compiled.rows import Digests
from streamwatch.core.specs import columns_suffice_in_buckets


def reader_of(spec: BucketsSpec, digests: Digests) -> Reader:
    """Build a reader; `digests` computes the digests of ids as the decoders spell them."""
    return ColumnReader(spec, digests) if columns_suffice_in_buckets(spec.join) else RowReader(spec, digests)


def id_bucket_of(number: int, spec: BucketsSpec) -> Bucket:
    """Build an id bucket."""
    return ColumnIdBucket(number, spec) if columns_suffice_in_buckets(spec.join) else IdBucket(number, spec)


def model_bucket_of(number: int, spec: BucketsSpec) -> Bucket:
    """Build a model bucket."""
    return (
        ColumnModelBucket(number, spec)
        if columns_suffice_in_buckets(spec.join)
        else ModelBucket(number, spec)
    )
