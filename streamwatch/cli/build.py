"""Version and build of the installation, for bug reports."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from streamwatch import __version__

_PACKAGE: Final = Path(__file__).parents[1]
_COMPONENTS: Final = ("numba", "numpy", "aiokafka", "rocksdict", "msgspec")


def build(package: Path = _PACKAGE) -> str:
    """Return the identity of the code: the variable `STREAMWATCH_BUILD`, which images set, else a hash.

    The hash, of 12 hexadecimal digits, is of the names and contents of the package's Python files: equal for
    equal code.
    """
    given = os.environ.get("STREAMWATCH_BUILD")
    if given:
        return given
    digest = hashlib.blake2b(digest_size=6)
    for file in sorted(package.rglob("*.py")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(package).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def description() -> str:
    """Return version, build, interpreter and versions of the main dependencies, on two lines."""
    parts = [f"Python {platform.python_version()}", *(f"{name} {_version(name)}" for name in _COMPONENTS)]
    return f"streamwatch {__version__} (build {build()})\n{', '.join(parts)}, {platform.platform(terse=True)}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"
