"""Compiled functions on disk: where, under which key, and how they are written.

The directory's name is a hash of the kernels' code as Python compiles it: docstrings, comments and line
breaks change nothing. Join, merge, registers, predictions, buckets and publishing have a hash of their own in
the names of their files, and so has each folder outside the core: a change there does not recompile the
estimators. A file is named by the function, and a hash of its module (compiled code names it, so that a
module that was moved is compiled anew) and of what it was compiled for (types of arguments, processor). So
processes that compile side by side never write other code into each other's files; numba's own cache numbers
its files in an index, which two processes at once can leave pointing at each other's code.
A directory that cannot be written to, as in an image, is only read. A function that is not in the directory
is loaded from those that came with the installation (`shipped`), and not copied.
"""

# pyright: reportPrivateUsage=false, reportPrivateImportUsage=false
from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, cast
from uuid import uuid4

import llvmlite
import numba
import numpy as np
from numba.core import types
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from streamwatch.core.jit.observers import observers
from streamwatch.core.jit.shipped import SHIPPED

# Hash of Python sources that comments and docstrings do not change; kept in files, as it takes long.
#
# Compiling the sources of all compiled functions to Python's code would take a fifth of a second of every
# start; reading them tells whether they are the same as before.


_BYTES = 8
_HASH = re.compile(rf"[0-9a-f]{{{2 * _BYTES}}}")


def syntax_hash(sources: Iterable[bytes]) -> str:
    """Hash of the code that Python makes of sources, without docstrings and positions.

    Docstrings of a source that asserts something are part of it: Python leaves out both or neither.
    """
    digest = hashlib.blake2b(digest_size=_BYTES)
    for source in sources:
        optimize = 0 if b"assert" in source else 2
        code = compile(source, "", "exec", dont_inherit=True, optimize=optimize)
        digest.update(repr(_without_positions(code)).encode())
    return digest.hexdigest()


def _without_positions(value: object) -> object:
    """Return what code consists of, or a constant in it, with the same text in every process."""
    if isinstance(value, CodeType):
        names = value.co_name, value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars
        numbers = value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount, value.co_flags
        return names, numbers, value.co_code, value.co_exceptiontable, _without_positions(value.co_consts)
    if isinstance(value, tuple):
        return [_without_positions(each) for each in cast("tuple[object, ...]", value)]
    if isinstance(value, frozenset):  # of texts, it has another order in every process
        return sorted(repr(each) for each in cast("frozenset[object]", value))
    return value


def remembered_syntax_hash(sources: Sequence[bytes], folder: Path, shipped: Path = SHIPPED) -> str:
    """Look up `syntax_hash` in a folder by the bytes of the sources; if absent, compute and store it there.

    It is also looked up in `sources` of `shipped`. A file without a hash is ignored. The interpreter, which
    determines the code, and this file, which defines what is left out of it, are part of the key.
    """
    key = hashlib.blake2b(f"{sys.implementation.cache_tag}".encode(), digest_size=16)
    for source in (Path(__file__).read_bytes(), *sources):
        key.update(len(source).to_bytes(8, "big") + source)
    file = folder / f"{key.hexdigest()}.hash"
    for each in (file, shipped / "sources" / file.name):
        with suppress(OSError, UnicodeDecodeError):
            known = each.read_text()
            if _HASH.fullmatch(known):
                return known
    found = syntax_hash(sources)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(f".{uuid4().hex}.tmp")
        new.write_text(found)
        new.replace(file)  # readers see the whole file or none
    return found


_CORE = Path(__file__).parent.parent
_COMPILED = (
    "estimators/comparisons",
    "estimators/dependence.py",
    "estimators/detectors",
    "estimators/forgetting",
    "estimators/kernel",
    "estimators/memory.py",
    "estimators/recovery.py",
    "estimators/verdicts",
)
"""Rooms and files of the core whose compiled functions have no hash of their own in the names of files."""
_UNCOMPILED = (
    "estimators/comparisons/measures.py",
    "estimators/comparisons/set.py",
    "estimators/comparisons/table.py",
    "estimators/kernel/snapshot.py",
    "estimators/kernel/table.py",
    "jit/shipped.py",
)
"""Files there and in `jit` of which compiled functions use nothing: a change of them recompiles nothing."""
_READ_BY_OTHERS = ("records/batch.py", "records/fetched.py")
"""Files of the core whose constants compiled functions outside the core use."""
_READ_THERE = {
    ("kafka", "batches"): "edge/sources/kafka/batches/frames.py",
    ("decoders", "transcoding"): "edge/decoders/transcoding/wanted.py",
}
"""Files of rooms outside the core that compile nothing, and whose constants compiled functions there use."""
_CALLS = {
    ("history", "outcome_rows"): ("edge", "decoders", "scanner"),
    ("decoders", "transcoding"): ("edge", "decoders", "scanner"),
}
"""Rooms outside the core whose compiled functions call those of another room."""


def kernel_sources() -> list[Path]:
    """List the sources whose change recompiles every function."""
    rooms = (
        source for room in _COMPILED for source in sorted((_CORE / room).rglob("*.py")) or [_CORE / room]
    )
    uncompiled = {_CORE / name for name in _UNCOMPILED}
    named = (source for source in rooms if source not in uncompiled)
    decorators = (source for source in sorted((_CORE / "jit").glob("*.py")) if source not in uncompiled)
    return [*decorators, _CORE / "records/batch.py", _CORE / "specs.py", *named]


def _compiled_in(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.glob("*.py")) if b"core.jit" in file.read_bytes()]


@cache
def kernel_hash() -> str:
    """Hash the sources of compiled rooms, and the versions of numba, numpy, llvmlite and Python."""
    versions = (numba.__version__, np.__version__, llvmlite.__version__, sys.implementation.cache_tag)
    sources = _syntax_of(kernel_sources())
    return hashlib.blake2b(f"{versions} {sources}".encode(), digest_size=8).hexdigest()


def sources_of_room(folder: Path) -> list[Path]:
    """Sources, beside those of `kernel_sources`, that compiled functions of a folder depend on."""
    for room, *files in (("join", "records/outcomes.py", "records/events.py"), ("merge", "records/batch.py")):
        if folder.is_relative_to(_CORE / room):
            return [*(_CORE / each for each in files), *sorted((_CORE / room).rglob("*.py"))]
    if folder.is_relative_to(_CORE / "estimators" / "registers"):
        return sorted(folder.glob("*.py"))
    if folder.is_relative_to(_CORE / "predictions"):
        return [_CORE / "predictions" / "kind.py", *sorted(folder.glob("*.py"))]
    if any(folder.is_relative_to(_CORE / room) for room in ("buckets", "publishing")):
        return [_CORE / "records/outcomes.py", _CORE / "buckets/contract.py", *_compiled_in(folder)]
    if folder.is_relative_to(_CORE):
        return []
    named = folder.parent.name, folder.name
    compiled = _compiled_in(folder)
    if named in _READ_THERE:
        compiled.append(_CORE.parent / _READ_THERE[named])
    if called := _CALLS.get(named):
        compiled += _compiled_in(_CORE.parent.joinpath(*called))
    return [*compiled, *(_CORE / name for name in _READ_BY_OTHERS)]


@cache
def _hash_of_room(folder: Path) -> str:
    """Hash `sources_of_room`; empty for folders without any."""
    sources = sources_of_room(folder)
    return _syntax_of(sources) if sources else ""


def _syntax_of(files: list[Path]) -> str:
    """Return the syntax hash of files, which is kept beside compiled functions."""
    sources = [file.read_bytes() for file in files]
    base = _base()
    return syntax_hash(sources) if base is None else remembered_syntax_hash(sources, base / "sources")


def _base() -> Path | None:
    """Directory of everything that is kept between runs; None for a user without a home."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(os.environ.get("NUMBA_CACHE_DIR") or f"{home}/streamwatch").expanduser()
    except RuntimeError:  # this user has no home
        return None


def cache_directory() -> str | None:
    """Directory of compiled functions between runs, or None where there is none.

    `NUMBA_CACHE_DIR`, else `XDG_CACHE_HOME`/streamwatch, else ~/.cache/streamwatch; below it one directory
    per state of the kernel's sources, made here, and `sources` with hashes of sources. None means that every
    start compiles what did not come with the installation.
    """
    base = _base()
    if base is None:
        return None
    directory = base / f"kernel-{kernel_hash()}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        return str(directory) if os.access(directory, os.R_OK | os.X_OK) else None
    return str(directory)


loaded_files: set[str] = set()
"""Names of the files that this process loaded compiled functions from."""


def _has_array(kind: Any) -> bool:
    """Tell whether a type of Numba's is an array, or a tuple with one."""
    return isinstance(kind, types.Array) or any(map(_has_array, getattr(kind, "types", ())))


class KernelCache:
    """Compiled forms of one function, by numba's cache protocol: loads existing ones, stores new ones.

    Parameters
    ----------
    function
        Python function.
    directory
        That of `cache_directory`; None if nothing is kept.
    shipped
        Directory of the compiled functions that came with the installation.
    """

    def __init__(self, function: Callable[..., Any], directory: str | None, shipped: Path = SHIPPED) -> None:
        self.cache_path = directory or str(shipped)
        self._directory = None if directory is None else Path(directory)
        self._shipped = shipped / f"kernel-{kernel_hash()}"
        self._function = function.__name__
        self._module = function.__module__
        self._room = _hash_of_room(Path(inspect.getfile(function)).parent)
        self._stem = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the compiled function for these argument types; None if there is none, or only a part of it.

        Numba's own cache first loads everything that the compiler needs, which is half of a start. Compiled
        code needs the runtime alone; the compiler loads the rest when there is something to compile.
        """
        name = self._name(sig, target_context.codegen())
        for folder in filter(None, (self._directory, self._shipped)):
            with suppress(OSError, EOFError, pickle.UnpicklingError):  # a power cut may leave a part of it
                parts = pickle.loads((folder / name).read_bytes())  # noqa: S301  (our file)
                loaded_files.add(name)
                rtsys.initialize(target_context)
                return CompileResult._rebuild(target_context, *parts)  # noqa: SLF001
        self._observed(done=False)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled function; readers see the whole file or none.

        Raises
        ------
        TypeError
            If the function returns an array: references to arrays are not counted.
        """
        returned = data.signature.return_type
        if _has_array(returned):
            raise TypeError(
                f"{self._function} returns {returned}: compiled functions write into arrays that they are "
                "given, and return numbers"
            )
        self._observed(done=True)
        if data.library.has_dynamic_globals:  # addresses of this process are in it
            return
        if self._directory is None:
            return
        file = self._directory / self._name(sig, data.codegen)
        new = file.with_suffix(f".{uuid4().hex}.tmp")
        with suppress(OSError):
            kept = data._replace(type_annotation="")  # a text for people, as long as the code
            new.write_bytes(dumps(kept._reduce()))  # noqa: SLF001  (what numba's own cache keeps)
            new.replace(file)

    def _observed(self, *, done: bool) -> None:
        for observer in observers:
            observer(self._function, done)

    def _name(self, sig: Any, codegen: Any) -> str:
        """Name of its file, with a hash of its module and of types and processor it is compiled for."""
        key = f"{self._module} {sig} {codegen.magic_tuple()} {self._room}".encode()
        return f"{self._stem}-{hashlib.blake2b(key, digest_size=16).hexdigest()}.nbc"
