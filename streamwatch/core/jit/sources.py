"""What Python sources mean, as a hash that words about them do not change; remembered, as it takes long.

Parsing the sources of all compiled functions is half a second of every start; whether a file is the same one
as before is known after reading it.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

_BYTES = 8
_HASH = re.compile(rf"[0-9a-f]{{{2 * _BYTES}}}")


def syntax_hash(sources: Iterable[bytes]) -> str:
    """Hash of what Python sources mean: their syntax trees without docstrings and positions."""
    digest = hashlib.blake2b(digest_size=_BYTES)
    for source in sources:
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                node.body = [line for line in node.body if not _is_text(line)]
        digest.update(ast.dump(tree).encode())
    return digest.hexdigest()


def remembered_syntax_hash(sources: Sequence[bytes], folder: Path) -> str:
    """`syntax_hash`, looked up in a folder by the bytes of the sources, and kept there if it can be.

    A file that does not hold a hash counts as none. How an interpreter writes trees is part of the key, and
    so is this file, which says what is left out of them.
    """
    key = hashlib.blake2b(f"{sys.implementation.cache_tag}".encode(), digest_size=16)
    for source in (Path(__file__).read_bytes(), *sources):
        key.update(len(source).to_bytes(8, "big") + source)
    file = folder / f"{key.hexdigest()}.hash"
    with suppress(OSError, UnicodeDecodeError):
        known = file.read_text()
        if _HASH.fullmatch(known):
            return known
    found = syntax_hash(sources)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(f".{uuid4().hex}.tmp")
        new.write_text(found)
        new.replace(file)  # whoever reads sees it whole or not at all
    return found


def _is_text(line: ast.stmt) -> bool:
    """A docstring, of a function or below an attribute."""
    return (
        isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Constant)
        and isinstance(line.value.value, str)
    )
