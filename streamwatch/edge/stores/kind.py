"""Definition of a kind of store, and the errors that stores raise."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from streamwatch.core.join.cold.store import ColdDamaged
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.ports import Store

Spec = TypeVar("Spec")


class StoreKind(NamedTuple, Generic[Spec]):
    """A kind of store."""

    name: str
    """Value of `state.kind` in the settings."""
    durable: bool
    """Whether its contents survive the process."""
    open: Callable[[Spec], Store]
    """Opens a store by its specification; may raise StateRefused or StateFailed."""


# Errors of a store on disk: after StateFailed it may be opened anew, after StateRefused that would not help.


class StateFailed(Exception):  # noqa: N818 - named by what happened, as the events are
    """The disk failed: the last write may have been made or not. The store may be opened anew."""


class StateGone(StateFailed):
    """The directory of the state was removed or replaced while the daemon ran: its contents are lost."""


class StateRefused(Exception):  # noqa: N818 - see StateFailed
    """The state cannot be used as it is."""


class StateForbidden(StateRefused):
    """The directory cannot be read or written, by its permissions or because its file system is read-only.

    At a start, an operator has to change that. If the state was already open, it may be temporary.
    """


class StateInUse(StateRefused):
    """Another process has the directory open."""


class StateNewer(StateRefused):
    """The directory was written by a newer version of this program."""


class StateDamaged(StateRefused):
    """A file of the state is corrupt or missing."""


@contextmanager
def damage_named(directory: Path) -> Generator[None]:
    """Turn errors of decoding in the block into StateDamaged, which names the directory."""
    try:
        yield
    except (ColdDamaged, PackedError) as error:
        raise StateDamaged(
            f"the state in {directory} is damaged: {error}; `streamwatch state verify` lists all damage"
        ) from error
