"""Runs `streamwatch` and writes down, once a minute, who owns the memory of the process.

    python -m tests.faults.memory_owners OWNERS.csv run --set ...

A column per owner, in MB: files mapped, the C library's heap in use and free in it, Python's objects, numpy's
arrays (as allocated, and of it what is resident, as memory that was never touched is not), RocksDB's
memtables, table readers and block cache; and numbers of Python's blocks and objects. Walking over all objects
takes the interpreter a few tenths of a second.
"""

from __future__ import annotations

import csv
import ctypes
import gc
import mmap
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SECONDS = 60.0
_PAGE = mmap.PAGESIZE
_MB = 1e6
_PROPERTIES = ("cur-size-all-mem-tables", "estimate-table-readers-mem", "block-cache-usage")


class _Mallinfo2(ctypes.Structure):
    """What glibc's mallinfo2 returns."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


def resident() -> dict[str, float]:
    """Resident MB by kind of mapping."""
    found = {
        "resident": 0.0,
        "resident in files": 0.0,
        "resident in the heap": 0.0,
        "resident elsewhere": 0.0,
    }
    kind = ""
    with Path("/proc/self/smaps").open() as lines:
        for line in lines:
            first, *rest = line.split()
            if not first.endswith(":"):
                path = rest[4] if len(rest) > 4 else ""
                kind = (
                    "in files" if path.startswith("/") else "in the heap" if path == "[heap]" else "elsewhere"
                )
            elif first == "Rss:":
                found["resident"] += int(rest[0]) * 1_024 / _MB
                found[f"resident {kind}"] += int(rest[0]) * 1_024 / _MB
    return found


def c_library() -> dict[str, float]:
    """MB of the C library's heaps: in use, free, and mapped one by one (large numpy arrays among them)."""
    function = ctypes.CDLL(None).mallinfo2
    function.restype = _Mallinfo2
    info = function()
    return {
        "C heap in use": info.uordblks / _MB,
        "C heap free": info.fordblks / _MB,
        "C mapped": info.hblkhd / _MB,
    }


def resident_bytes(array: np.ndarray[Any, Any]) -> int:
    """Bytes of the pages of an array that are in memory; arrays below a page count whole."""
    begin = array.ctypes.data // _PAGE * _PAGE
    pages = -(-(array.ctypes.data + array.nbytes - begin) // _PAGE)
    if array.nbytes < _PAGE:
        return array.nbytes
    told = np.zeros(pages, np.uint8)
    size = ctypes.c_size_t(pages * _PAGE)
    if ctypes.CDLL(None).mincore(ctypes.c_void_p(begin), size, ctypes.c_void_p(told.ctypes.data)):
        return array.nbytes
    return int(np.count_nonzero(told & 1)) * _PAGE


def python_objects() -> dict[str, float]:
    """Numbers of blocks and objects, and MB of numpy arrays and of RocksDB."""
    objects = gc.get_objects()
    seen: set[int] = set()
    arrays = touched = 0
    databases: list[Any] = []
    for each in objects:
        if type(each).__name__ == "Database" and hasattr(each, "_families"):
            databases.append(each)
        for held in gc.get_referents(each):
            owns = isinstance(held, np.ndarray) and not isinstance(held.base, np.ndarray)
            if owns and id(held) not in seen:
                seen.add(id(held))
                arrays += held.nbytes
                touched += resident_bytes(held)
    found = {
        "Python blocks": float(sys.getallocatedblocks()),
        "Python objects": float(len(objects)),
        "numpy arrays": arrays / _MB,
        "numpy arrays resident": touched / _MB,
    }
    del objects
    return found | rocksdb(databases)


def rocksdb(databases: list[Any]) -> dict[str, float]:
    """MB that RocksDB says it holds; the block cache is one for all families."""
    found = dict.fromkeys((f"RocksDB {name}" for name in _PROPERTIES), 0.0)
    for database in databases:
        for name in _PROPERTIES:
            sizes = [
                family.property_int_value(f"rocksdb.{name}") or 0 for family in database._families.values()
            ]
            of_all = max(sizes) if name == "block-cache-usage" else sum(sizes)
            found[f"RocksDB {name}"] += of_all / _MB
    return found


def looks(began: float) -> Iterator[dict[str, float]]:
    """A row of the table, as often as asked for."""
    while True:
        yield {"seconds": time.monotonic() - began} | resident() | c_library() | python_objects()


def write(path: Path) -> None:
    """Write a row every minute, for ever."""
    began = time.monotonic()
    with path.open("w", newline="") as out:
        writer: csv.DictWriter[str] | None = None
        for row in looks(began):
            if writer is None:
                writer = csv.DictWriter(out, list(row))
                writer.writeheader()
            writer.writerow(row)
            out.flush()
            time.sleep(SECONDS)


if __name__ == "__main__":
    threading.Thread(target=write, args=(Path(sys.argv[1]),), daemon=True).start()
    del sys.argv[1]
    from streamwatch.cli import main

    main()
