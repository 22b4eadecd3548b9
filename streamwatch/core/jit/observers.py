"""Functions called when the compiler begins and ends, so that a command can show what it waits for."""

from __future__ import annotations

from collections.abc import Callable

observers: list[Callable[[str, bool], None]] = []
"""Called with a function's name when no cache has it and its compilation begins (False), and ends (True).

Compiling all of them takes about half a minute on two cores.
"""
