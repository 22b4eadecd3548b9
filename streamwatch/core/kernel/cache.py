"""The kernel's compiled functions on disk, in a directory that may be read-only: that of an image.

Numba refuses a cache it cannot write to, and would compile at every start beside a complete one.
"""

# pyright: reportUntypedBaseClass=false
# (numba is untyped)
from __future__ import annotations

from contextlib import suppress
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator


class _Locator(UserProvidedCacheLocator):
    """Takes the directory as it is; numba's own asks for one that can be written to."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator:
        return cls(py_func, py_file)


class _Files(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012  (numba's own name and type for it)


class KernelCache(FunctionCache):
    """Loads what is there; keeps what is new where that is possible, and goes on without where it is not."""

    _impl_class = _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for these argument types, or None."""
        with suppress(OSError):
            return super().load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function."""
        with suppress(OSError):
            super().save_overload(sig, data)
