"""What Python computes in place of the compiler is what compiled functions compute."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from streamwatch.core.estimators.kernel.admission import remember
from streamwatch.core.join.table import rehash
from tests.mutants.interpreted import Array, Record, call, reaches


def test_a_table_of_hashes_is_the_one_that_compiled_code_fills() -> None:
    random = np.random.default_rng(1)
    old = np.zeros(64, np.uint64)
    old[::3] = random.integers(1, 2**64, len(old[::3]), np.uint64)
    compiled, interpreted = np.zeros(128, np.uint64), np.zeros(128, np.uint64)
    rehash(old, compiled, np.uint64(57))
    call(rehash, old, interpreted, np.uint64(57))  # pyright: ignore[reportArgumentType]  (it is typed as Python's)
    assert np.count_nonzero(compiled) == len(old[::3])
    assert interpreted.tolist() == compiled.tolist()


def test_products_of_words_wrap_around_as_in_compiled_code() -> None:
    tables: list[list[Any]] = []
    runs: list[Any] = [remember, partial(call, remember)]  # pyright: ignore[reportArgumentType]
    for run in runs:
        keys, indices = np.zeros(16, np.uint64), np.zeros(16, np.int32)
        for name in range(8):
            run(keys, indices, name % 3, 1_000 * name, name)
        tables.append([keys.tolist(), indices.tolist()])
    assert len(set(tables[0][0])) == 9
    assert tables[0] == tables[1]


def test_only_what_calls_a_module_is_interpreted() -> None:
    assert reaches(rehash, ["streamwatch.core.join.table"])
    assert not reaches(rehash, ["streamwatch.core.join.rules"])


def test_fields_are_integers_of_64_bits_and_written_back_to_theirs() -> None:
    records = np.zeros(2, [("a", "u1"), ("b", "i4", (2,))])
    seen = records.view(Array)
    record = seen[1]
    assert isinstance(record, Record)
    record.a = record.a - 1
    record.b[0] = 2**31
    assert records["a"].tolist() == [0, 255]
    assert records["b"][1].tolist() == [-(2**31), 0]
    assert record.a + 1 == 256
