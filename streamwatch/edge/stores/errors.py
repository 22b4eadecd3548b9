"""What a store on disk may raise: it failed and may be opened anew, or trying again cures nothing."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from streamwatch.core.join.compiled.cold.store import ColdDamaged


class StateFailed(Exception):  # noqa: N818 - named by what happened, as the events are
    """The disk failed for the moment: what was being written may be there or not."""


class StateGone(StateFailed):
    """The directory of the state was removed or replaced under the daemon: what it held is lost."""


class StateRefused(Exception):  # noqa: N818 - see StateFailed
    """The state cannot be used as it is."""


class StateForbidden(StateRefused):
    """The directory may not be read or written: by its rights, or because its file system is read-only.

    At a start that is for a person to change. A state that was open has become so: it may become right again.
    """


class StateInUse(StateRefused):
    """Another process has the directory open."""


class StateNewer(StateRefused):
    """The directory was written by a newer version of this program."""


class StateDamaged(StateRefused):
    """A file of the state is corrupt or missing."""


@contextmanager
def damage_named(directory: Path) -> Generator[None]:
    """Say of cold entries that are not what was written whose state it is; raises StateDamaged."""
    try:
        yield
    except ColdDamaged as error:
        raise StateDamaged(
            f"the state in {directory} is damaged: {error}; `streamwatch state verify` tells what else is"
        ) from error
