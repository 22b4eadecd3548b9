"""Check of room for `streamwatch check`: the worst case in memory and on disk, and where state is to lie."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from streamwatch.admin.capacity import DiskSpec, Part, worst_case, worst_case_disk
from streamwatch.admin.check_result import CheckResult, size_text
from streamwatch.core.specs import JoinSpec, MonitorsSpec
from streamwatch.edge.stores.errors import StateRefused
from streamwatch.edge.stores.rocksdb.directory.database import size_on_disk
from streamwatch.edge.stores.rocksdb.directory.lock import holder
from streamwatch.edge.stores.rocksdb.directory.meta import SCHEMA
from streamwatch.edge.stores.rocksdb.directory.migrations import no_way_forward
from streamwatch.edge.stores.rocksdb.directory.opening import read_format, strangers_in


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of memory and disk."""

    join: JoinSpec
    monitors: MonitorsSpec
    disk: DiskSpec | None
    """State on disk; None where it is in memory."""
    directory: Path
    """Of the state on disk."""
    min_free_bytes: int
    """Reading pauses while less is free on the disk."""


def check_worst_case(limits: Limits) -> CheckResult:
    """The most memory the limits allow; told, not judged, unless this machine has less."""
    return _worst("memory", worst_case(limits.join, limits.monitors, limits.disk))


def check_worst_case_disk(limits: Limits, disk: DiskSpec) -> CheckResult:
    """The most disk the limits allow."""
    return _worst("disk", worst_case_disk(limits.join, limits.monitors, disk))


def _worst(what: str, parts: Sequence[Part]) -> CheckResult:
    total = sum(part.bytes for part in parts)
    return CheckResult(
        f"worst-case {what}: {size_text(total)}, if every limit is reached at once",
        good=True,
        details=tuple(f"{size_text(part.bytes):>8}  {part.what}" for part in parts),
    )


def check_state(limits: Limits) -> Sequence[CheckResult]:
    """Check for a state that can be gone on from or room to begin one, and what may become of it."""
    disk = limits.disk
    if disk is None:
        return [CheckResult("state in memory: a restart reads the topics again", good=True)]
    directory = limits.directory
    try:
        found = state_dir_status(directory)
    except (StateRefused, OSError) as error:
        return [CheckResult(str(error), good=False), check_worst_case_disk(limits, disk)]
    nearest = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        problem = f"state.directory: {nearest} cannot be written by user {os.getuid()}"
        return [CheckResult(problem, good=False), check_worst_case_disk(limits, disk)]
    worst = check_worst_case_disk(limits, disk)
    free, least = shutil.disk_usage(nearest).free, limits.min_free_bytes
    if free < least:
        short = (
            f"state.directory: {size_text(free)} are free on the disk of {nearest}, "
            f"reading pauses below {size_text(least)} (state.min_free_megabytes)"
        )
        return [CheckResult(short, good=False), worst]
    details = [
        f"{size_text(free)} are free; reading pauses below {size_text(least)} (state.min_free_megabytes)"
    ]
    largest = sum(part.bytes for part in worst_case_disk(limits.join, limits.monitors, disk))
    room = free + found.bytes - least
    if largest > room:
        details.append(
            f"less than the worst case: reading would pause when the state takes {size_text(room)}"
        )
    return [CheckResult(f"state in {directory}: {found.said}", good=True, details=tuple(details)), worst]


@dataclass(frozen=True, slots=True)
class StateDirStatus:
    """State of a state directory before a start."""

    said: str
    bytes: int = 0


def state_dir_status(directory: Path) -> StateDirStatus:
    """Look at a directory from the outside; nothing is opened.

    Raises
    ------
    StateRefused
        If a daemon could not begin or go on there.
    """
    if not directory.exists():
        return StateDirStatus("begins anew")
    written = read_format(directory)
    if written is None:
        strangers = strangers_in(directory)
        if strangers and not (directory / "LOCK").exists():
            raise StateRefused(
                f"state.directory: {directory} is not empty and holds no state (there is {min(strangers)!r})"
            )
        return StateDirStatus("begins anew")
    if written.schema > SCHEMA:
        raise StateRefused(
            f"state.directory: the state in {directory} has schema {written.schema}, this program knows "
            f"up to {SCHEMA}: run the version that wrote it, or a newer one"
        )
    if (reason := no_way_forward(directory, written.schema, SCHEMA)) is not None:
        raise StateRefused(f"state.directory: {reason}")
    size = size_on_disk(directory)
    said = f"goes on from {written.identity}, {size_text(size)}"
    if written.schema < SCHEMA:
        said += f"; the start brings it from schema {written.schema} to {SCHEMA} and keeps a copy"
    process = holder(directory)
    if process is not None:
        said += f"; in use by process {process} now" if process else "; in use now"
    return StateDirStatus(said, size)
