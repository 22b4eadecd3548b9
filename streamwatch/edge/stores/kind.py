"""What a store exports: its name in the settings, whether it outlives the process, and how it is opened."""

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
    """A store of state between batches."""

    name: str
    """Value of `state.kind` in the settings."""
    durable: bool
    """Whether its contents survive the process."""
    open: Callable[[Spec], Store]
    """Opens it, given where and how large; may raise StateRefused or StateFailed."""


# What a store on disk may raise: it failed and may be opened anew, or trying again cures nothing.


class StateFailed(Exception):  # noqa: N818 - named by what happened, as the events are
    """The disk failed for the moment: what was being written may be there or not."""


class StateGone(StateFailed):
    """The directory of the state was removed or replaced under the daemon: what it held is lost."""


class StateRefused(Exception):  # noqa: N818 - see StateFailed
    """The state cannot be used as it is."""


class StateForbidden(StateRefused):
    """The directory may not be read or written: by its rights, or because its file system is read-only.

    At a start, an operator has to change that. If a state was open when it happened, it may be temporary.
    """


class StateInUse(StateRefused):
    """Another process has the directory open."""


class StateNewer(StateRefused):
    """The directory was written by a newer version of this program."""


class StateDamaged(StateRefused):
    """A file of the state is corrupt or missing."""


@contextmanager
def damage_named(directory: Path) -> Generator[None]:
    """Raise StateDamaged, which names the directory, for errors about damaged contents."""
    try:
        yield
    except (ColdDamaged, PackedError) as error:
        raise StateDamaged(
            f"the state in {directory} is damaged: {error}; `streamwatch state verify` lists all damage"
        ) from error
