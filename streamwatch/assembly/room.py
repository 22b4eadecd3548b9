"""What `streamwatch check` says of room: the worst case in memory and on disk, and where state is to lie."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from streamwatch.assembly import specs
from streamwatch.assembly.finding import Finding, size_text
from streamwatch.assembly.footprint import DiskSpec, Part, worst_case, worst_case_disk
from streamwatch.edge.stores.errors import StateRefused
from streamwatch.edge.stores.rocksdb.database import size_on_disk
from streamwatch.edge.stores.rocksdb.lock import holder
from streamwatch.edge.stores.rocksdb.meta import SCHEMA
from streamwatch.edge.stores.rocksdb.opening import read_format, strangers_in
from streamwatch.settings import Settings


def worst_case_finding(settings: Settings) -> Finding:
    """The most memory the limits allow; told, not judged, unless this machine has less."""
    parts = worst_case(specs.join_spec(settings), specs.monitors_spec(settings), disk_spec(settings))
    return _worst("memory", parts)


def worst_case_disk_finding(settings: Settings, disk: DiskSpec) -> Finding:
    """The most disk the limits allow."""
    return _worst("disk", worst_case_disk(specs.join_spec(settings), specs.monitors_spec(settings), disk))


def _worst(what: str, parts: Sequence[Part]) -> Finding:
    total = sum(part.bytes for part in parts)
    return Finding(
        f"worst-case {what}: {size_text(total)}, if every limit is reached at once",
        good=True,
        details=tuple(f"{size_text(part.bytes):>8}  {part.what}" for part in parts),
    )


def disk_spec(settings: Settings) -> DiskSpec | None:
    """State on disk; None where it is in memory."""
    state = settings.state
    if state.kind == "memory":
        return None
    return DiskSpec(specs.rocks_spec(settings), state.commit_events, state.journal_outcomes)


def state_findings(settings: Settings) -> Sequence[Finding]:
    """Whether there is a state that can be gone on from or room to begin one, and what may become of it."""
    disk = disk_spec(settings)
    if disk is None:
        return [Finding("state in memory: a restart reads the topics again", good=True)]
    directory = settings.state.directory
    try:
        found = standing_of_directory(directory)
    except (StateRefused, OSError) as error:
        return [Finding(str(error), good=False), worst_case_disk_finding(settings, disk)]
    nearest = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        problem = f"state.directory: {nearest} cannot be written by user {os.getuid()}"
        return [Finding(problem, good=False), worst_case_disk_finding(settings, disk)]
    worst = worst_case_disk_finding(settings, disk)
    free, least = shutil.disk_usage(nearest).free, settings.state.min_free_megabytes * 1_000_000
    if free < least:
        short = (
            f"state.directory: {size_text(free)} are free on the disk of {nearest}, "
            f"reading pauses below {size_text(least)} (state.min_free_megabytes)"
        )
        return [Finding(short, good=False), worst]
    details = [
        f"{size_text(free)} are free; reading pauses below {size_text(least)} (state.min_free_megabytes)"
    ]
    largest = sum(
        part.bytes for part in worst_case_disk(specs.join_spec(settings), specs.monitors_spec(settings), disk)
    )
    room = free + found.bytes - least
    if largest > room:
        details.append(
            f"less than the worst case: reading would pause when the state takes {size_text(room)}"
        )
    return [Finding(f"state in {directory}: {found.said}", good=True, details=tuple(details)), worst]


@dataclass(frozen=True, slots=True)
class Standing:
    """What there is in a state's directory before a start."""

    said: str
    bytes: int = 0


def standing_of_directory(directory: Path) -> Standing:
    """Look at a directory from the outside; nothing is opened.

    Raises
    ------
    StateRefused
        If a daemon could not begin or go on there.
    """
    if not directory.exists():
        return Standing("begins anew")
    written = read_format(directory)
    if written is None:
        strangers = strangers_in(directory)
        if strangers and not (directory / "LOCK").exists():
            raise StateRefused(
                f"state.directory: {directory} is not empty and holds no state (there is {min(strangers)!r})"
            )
        return Standing("begins anew")
    if written.schema > SCHEMA:
        raise StateRefused(
            f"state.directory: the state in {directory} has schema {written.schema}, this program knows "
            f"up to {SCHEMA}: run the version that wrote it, or a newer one"
        )
    size = size_on_disk(directory)
    said = f"goes on from {written.identity}, {size_text(size)}"
    if written.schema < SCHEMA:
        said += f"; the start brings it from schema {written.schema} to {SCHEMA} and keeps a copy"
    process = holder(directory)
    if process is not None:
        said += f"; in use by process {process} now" if process else "; in use now"
    return Standing(said, size)
