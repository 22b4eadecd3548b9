"""Plugin of pytest: the compiled functions of the unchanged module stay valid for its mutant.

Which compiled functions belong to a state of the sources is decided by hashes of whole rooms, and a mutant of
a module without any would compile those of its neighbours anew. The variable holds the two files.
"""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from streamwatch.core.jit import cache

VARIABLE: Final = "STREAMWATCH_MUTANT"
_syntax_of = cache._syntax_of


def unchanged(files: list[Path], mutant: Path, original: Path) -> list[Path]:
    """Name the original instead of its mutant."""
    return [original if file.resolve() == mutant.resolve() else file for file in files]


if VARIABLE in os.environ:
    _mutant, _original = map(Path, os.environ[VARIABLE].split(os.pathsep))
    cache._syntax_of = lambda files: _syntax_of(unchanged(files, _mutant, _original))
