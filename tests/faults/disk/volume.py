"""File systems of a test's own: one whose power can be cut, and a small one that can be filled."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHUTDOWN = (2 << 30) | (4 << 16) | (ord("X") << 8) | 125
"""EXT4_IOC_SHUTDOWN: nothing reaches the disk any more, and every further call fails."""
NO_LOG_FLUSH = 2
"""Not even what waits in the journal."""
POWER_CUT_MEBIBYTES = 96
PAGE_BYTES = 4096
REPAIR_SECONDS = 300


class Volume:
    """An ext4 file system in a file, mounted while in use.

    Its journal is written as late as can be: what nobody has asked to be durable is in memory only.
    """

    def __init__(self, folder: Path, options: str) -> None:
        self.path = folder / "mounted"
        self._image = folder / "image"
        self._options = f"loop,commit=3600,{options}"
        self.path.mkdir()
        _run("chattr", "+i", str(self.path))  # nobody takes the empty folder for the volume
        with self._image.open("wb") as image:
            image.truncate(POWER_CUT_MEBIBYTES * 2**20)
        _run("mkfs.ext4", "-q", "-F", str(self._image))
        self.mount()

    def mount(self) -> None:
        """After a power cut this replays the journal."""
        _run("mount", "-o", self._options, str(self._image), str(self.path))

    def cut_power(self) -> None:
        """What is in memory only is lost; processes that use the volume see every call fail.

        One call may lie: an `fdatasync` under way at this moment can return 0 although its bytes are lost:
        the journal drops the transaction before the one who waits for it looks (seen in 20 of 1,755 cuts
        under a process that does nothing but append and `fdatasync`). Nobody hears such a word when the power
        of a machine fails, so a test holds a process to what it had said before (`Writing.lose_power`).
        """
        directory = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(directory)

    def turn_read_only(self) -> None:
        """As the kernel does when it meets an error in it (mounted with `errors=remount-ro`)."""
        source = subprocess.run(
            ["findmnt", "-n", "-o", "SOURCE", str(self.path)], check=True, capture_output=True, text=True
        ).stdout
        Path(f"/sys/fs/ext4/{Path(source.strip()).name}/trigger_fs_error").write_text("1")

    def repair(self) -> None:
        """Mount it anew once nobody has a file of it open; meanwhile nobody can write in its place."""
        deadline = time.monotonic() + REPAIR_SECONDS
        while subprocess.run(["umount", str(self.path)], capture_output=True, check=False).returncode:
            assert time.monotonic() < deadline, "somebody keeps a file of it open"
            time.sleep(0.01)
        self.mount()

    def unmount(self) -> None:
        _run("umount", str(self.path))


@contextmanager
def volume(folder: Path, options: str = "data=ordered") -> Iterator[Volume]:
    """A volume that is gone at the end, whatever happened to it."""
    made = Volume(folder, options)
    try:
        yield made
    finally:
        if made.path.is_mount():
            made.unmount()
        _run("chattr", "-i", str(made.path))


class SmallDisk:
    """A file system in memory that is soon full."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    @property
    def free_bytes(self) -> int:
        return shutil.disk_usage(self.path).free

    def fill(self, *, leaving_bytes: int = 0) -> None:
        """Somebody else's file takes the room."""
        piece = self.free_bytes
        with self._ballast.open("ab") as file:
            while (room := self.free_bytes - leaving_bytes) > 0:
                try:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, min(room, piece))
                except OSError:
                    if piece < PAGE_BYTES:
                        return
                    piece //= 2  # the daemon was faster: there is less by now

    def relieve(self) -> None:
        """That file is removed."""
        self._ballast.unlink()


@contextmanager
def small_disk(folder: Path, mebibytes: int) -> Iterator[SmallDisk]:
    """One that is gone at the end."""
    path = folder / "small"
    path.mkdir()
    _run("mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(path))
    try:
        yield SmallDisk(path)
    finally:
        _run("umount", "--lazy", str(path))


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """A file system nobody can write to."""
    path = folder / "read-only"
    path.mkdir()
    _run("mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", str(path))
    try:
        yield path
    finally:
        _run("umount", "--lazy", str(path))


def unavailable() -> str:
    """Why this machine cannot mount a volume and cut its power, or an empty string."""
    if os.geteuid():
        return "mounting takes root"
    programs = ("mkfs.ext4", "mount", "umount", "findmnt", "chattr")
    absent = [name for name in programs if not shutil.which(name)]
    if absent:
        return f"no {absent[0]} on the PATH"
    with tempfile.TemporaryDirectory() as folder:
        try:
            with volume(Path(folder)) as probe:
                probe.cut_power()
        except subprocess.CalledProcessError as error:
            return (error.stderr or "").strip() or str(error)
        except OSError as error:
            return str(error)
    return ""


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
