"""Compiled functions that come with an installation: where they are, and for which processors.

A wheel of a release brings the compiled forms of what default settings call, for processors of the level
x86-64-v3 (of 2013 and later). They are read where no function of this machine's own is kept, by the key that
such a function would have: other versions of numba, llvmlite or numpy, or other sources, find nothing there
and compile. The code of a level is only found while compiling for that level, so `choose_processor` sets it
before numba is imported.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Final

SHIPPED: Final = Path(__file__).parents[2] / "compiled"
"""Directory in an installation of a release; absent in others."""
LEVEL: Final = "x86-64-v3"
"""Level of the processor, as compilers name it (x86-64 psABI)."""
_FLAGS: Final = frozenset(
    {
        *("cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"),
        *("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"),
    }
)
"""What it stands for, as Linux names it; `pni` is SSE3, `abm` LZCNT."""
_CPUINFO: Final = Path("/proc/cpuinfo")


def choose_processor(shipped: Path = SHIPPED, cpuinfo: Path = _CPUINFO) -> bool:
    """Compile for the level of the shipped functions, if there are any and this processor has it.

    Nothing is changed if the environment names a processor, or where Linux does not list what this one has.
    Must be called before numba is imported. Returns whether the level was chosen.
    """
    if not shipped.is_dir() or platform.machine() != "x86_64":
        return False
    if {"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"} & os.environ.keys():
        return False
    if not flags_of(cpuinfo) >= _FLAGS:
        return False
    os.environ.update(compiling_for_level())
    return True


def compiling_for_level() -> dict[str, str]:
    """Environment in which numba compiles for the level, and for nothing beyond it."""
    return {"NUMBA_CPU_NAME": LEVEL, "NUMBA_CPU_FEATURES": ""}


def flags_of(cpuinfo: Path) -> frozenset[str]:
    """Read the flags of the first processor; empty where they are not listed."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return frozenset()
    named = {name.strip(): value for name, _, value in reversed([line.partition(":") for line in lines])}
    return frozenset(named.get("flags", "").split())
