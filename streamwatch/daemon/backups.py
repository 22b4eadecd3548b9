"""Backups of the state while the daemon runs: at SIGUSR1 or at intervals, with a command after each."""

from __future__ import annotations

import asyncio
import shutil
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streamwatch.core.metrics import single
from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import Store
from streamwatch.edge.stores.kind import StateFailed, StateRefused
from streamwatch.edge.stores.rocksdb.exporting import backup_name, backups_in, begun_at
from streamwatch.telemetry import BackupFailed, BackupMade, BackupSkipped, InternalEvent

_MOST_SHOWN: Final = 200
"""Most characters of a command's last line of errors that are shown."""
_PART: Final = ".part"
"""Suffix of the directory of a backup until it is complete."""


@dataclass(frozen=True, slots=True)
class BackupsSpec:
    """Directory of backups, and how often they are made."""

    directory: Path
    interval_seconds: float | None = None
    """Time between the beginnings of two backups; None: only at SIGUSR1."""
    kept: int = 3
    """Number of backups to keep; older ones are removed after a new one, also where its command failed."""
    command: tuple[str, ...] = ()
    """Command and arguments to run after each backup, with the path of the backup added; empty: none."""
    command_seconds: float = 3_600.0
    """Longest run of the command; then it is killed, and the backup counts as failed."""


class Backups:
    """Copies the open state in a thread, one backup at a time, while records are read and committed.

    Parameters
    ----------
    spec
        Directory and interval; None if no directory is set: then a request emits `BackupSkipped`.
    emit
        Receives internal events.
    clock
        Seconds since the epoch.
    """

    def __init__(
        self,
        spec: BackupsSpec | None,
        emit: Callable[[InternalEvent], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._spec = spec
        self._emit = emit
        self._clock = clock
        self._is_asked = False
        self._making: asyncio.Task[Path] | None = None
        self._following: asyncio.Task[None] | None = None
        self._made = self._failed = 0
        self._last_seconds: float | None = None
        self._last = self._newest()
        """Time of the beginning of the newest backup, in seconds since the epoch; None without one."""
        self._tried = self._last

    def ask(self) -> None:
        """Request a backup, which begins at the next `look` at a durable state once no other is made."""
        if self._spec is None:
            self._emit(BackupSkipped("state.backups.directory is not set"))
            return
        self._is_asked = True

    @property
    def _is_due(self) -> bool:
        spec = self._spec
        if spec is None or self._making is not None or self._following is not None:
            return False
        if self._is_asked:
            return True
        now = self._clock()
        return spec.interval_seconds is not None and (
            self._tried is None or not 0 <= now - self._tried < spec.interval_seconds
        )

    def look(self, store: Store) -> None:
        """Begin a backup of the open state if one is due; run the command after one that has been made."""
        if self._making is not None and self._making.done():
            making, self._making = self._making, None
            self._following = asyncio.create_task(self._follow(making))
        if self._following is not None and self._following.done():
            following, self._following = self._following, None
            following.result()
        if self._is_due and store.durable:
            self._is_asked = False
            self._tried = self._clock()
            self._making = asyncio.create_task(self._make(store, self._tried))

    async def leave(self, seconds: float | None) -> bool:
        """Wait at most `seconds` (None: no limit) for a running backup; return whether none runs."""
        if self._making is None:
            return True
        await asyncio.wait({self._making}, timeout=seconds)
        return self._making.done()

    async def stop(self) -> None:
        """Kill the command of a backup if it runs."""
        if self._making is not None and self._making.done():
            making, self._making = self._making, None
            self._following = asyncio.create_task(self._follow(making))
            await asyncio.sleep(0)
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait({self._following})

    def families(self) -> Sequence[Family]:
        """Backups made and failed, time and duration of the newest; empty if no directory is set."""
        if self._spec is None:
            return ()
        return [
            single("backups_total", float(self._made)),
            single("backups_failed_total", float(self._failed)),
            single("last_backup_timestamp_seconds", self._last),
            single("last_backup_seconds", self._last_seconds),
        ]

    async def _make(self, store: Store, now: float) -> Path:
        spec = self._spec
        assert spec is not None  # noqa: S101 - none is due without
        target = spec.directory / backup_name(now)
        began = time.monotonic()
        await asyncio.to_thread(_copied, store, target)
        self._last_seconds = time.monotonic() - began
        return target

    async def _follow(self, making: asyncio.Task[Path]) -> None:
        """Run the command, count the backup as made or failed, and remove backups beyond `kept`."""
        spec, began = self._spec, self._tried
        assert spec is not None  # noqa: S101 - none is made without
        try:
            target = making.result()
            try:
                await self._run(target)
            finally:  # else a command that always fails would let copies fill the disk
                await asyncio.to_thread(_remove_older, spec)
        except (StateFailed, StateRefused, OSError, BackupCommandFailed) as error:
            self._failed += 1
            self._emit(BackupFailed(str(error) or type(error).__name__))
            return
        self._made += 1
        self._last = began
        self._emit(BackupMade(str(target), round(self._last_seconds or 0.0, 3)))

    async def _run(self, target: Path) -> None:
        spec = self._spec
        if spec is None or not spec.command:
            return
        try:
            process = await asyncio.create_subprocess_exec(
                *spec.command, str(target), stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE
            )
        except OSError as error:
            raise BackupCommandFailed(f"state.backups.command cannot be run for {target}: {error}") from error
        try:
            async with asyncio.timeout(spec.command_seconds):
                _, errors = await process.communicate()
        except TimeoutError:
            raise BackupCommandFailed(
                f"state.backups.command was killed for {target}: expected it to end within "
                f"{spec.command_seconds:g} s"
            ) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            last = errors.decode(errors="replace").strip().rpartition("\n")[2]
            raise BackupCommandFailed(
                f"state.backups.command ended with {process.returncode} for {target}: {last[:_MOST_SHOWN]}"
            )

    def _newest(self) -> float | None:
        spec = self._spec
        if spec is None:
            return None
        found = backups_in(spec.directory)
        return begun_at(found[-1]) if found else None


class BackupCommandFailed(Exception):  # noqa: N818 - the name says what happened
    """The command after a backup failed; the backup itself is there."""


def _copied(store: Store, target: Path) -> None:
    """Copy the state to `<target>.part`, which is renamed to `target` once it is complete.

    Copies that an earlier failure or a crash has left incomplete are removed: their links keep files on the
    disk that the state has long replaced.
    """
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in target.parent.glob(f"*{_PART}*"):
        if begun_at(left.with_name(left.name.partition(_PART)[0])) is not None:
            shutil.rmtree(left, ignore_errors=True)
    begun = target.with_name(f"{target.name}{_PART}")
    try:
        store.copy_to(begun)
        begun.rename(target)
    except BaseException:
        shutil.rmtree(begun, ignore_errors=True)
        raise


def _remove_older(spec: BackupsSpec) -> None:
    for path in backups_in(spec.directory)[: -spec.kept]:
        shutil.rmtree(path, ignore_errors=True)
