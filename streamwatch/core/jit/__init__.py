"""Functions compiled by numba: decorators, and intrinsics that compiled functions call.

A decorated function costs nothing until it is needed: numba is imported, and the function handed to it, when
Python first calls it or when a compiled caller first names it. So commands that only read the tables of
estimators (`streamwatch --help`, `config`, `check`) never load a compiler. Importing this package loads
`decorators` and `intrinsics`; `dispatcher`, `instructions`, `sparing` and `cache` import numba.
"""

from __future__ import annotations

from streamwatch.core.jit.decorators import CompiledFunction, detached, entry, hot, inner, where_filled
from streamwatch.core.jit.intrinsics import (
    add_to_row,
    bits_at_most,
    bytes_with,
    class_bits,
    copy_bytes,
    count_bits,
    digit_stops,
    either,
    exp_lanes,
    high_product,
    lane,
    lanes,
    lanes_of,
    lanes_where,
    larger,
    log_lanes,
    ones_of,
    prefetch,
    put_lanes,
    sum_in_pairs,
    swapped,
    text_stops,
    trailing_zeros,
    where_at_most,
    with_entry,
    word_at,
)

__all__ = [
    "CompiledFunction",
    "add_to_row",
    "bits_at_most",
    "bytes_with",
    "class_bits",
    "copy_bytes",
    "count_bits",
    "detached",
    "digit_stops",
    "either",
    "entry",
    "exp_lanes",
    "high_product",
    "hot",
    "inner",
    "lane",
    "lanes",
    "lanes_of",
    "lanes_where",
    "larger",
    "log_lanes",
    "ones_of",
    "prefetch",
    "put_lanes",
    "sum_in_pairs",
    "swapped",
    "text_stops",
    "trailing_zeros",
    "where_at_most",
    "where_filled",
    "with_entry",
    "word_at",
]
