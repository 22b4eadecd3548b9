"""Processes that hold the objects of buckets, for all workers of an executor.

Spark gives a task to any worker process. If workers held the objects, each worker would have one of every
bucket, and would have to repeat the feeds of the others. So each bucket has a holder, a process that workers
call.

    parent of workers ─ fork ─→ host of holders ─ fork ─→ holder of ids/0, of ids/1 …
          │ fork                   ↑ one end of a pair of sockets       ↑ is handed it
          └──→ worker ─────────────┘                                    │
                  └─ the other end ─────────────────────────────────────┘

The sockets have no address that other processes could connect to, and leave nothing to clean up: once the
parent and the workers are gone, the host reads the end of its socket and exits, and then the holders do.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection
from typing import Any, Final, NoReturn

from pyspark import cloudpickle

from streamwatch.core.buckets.contract import Bucket, FeedResult
from streamwatch.spark.delta_log import CachedObject

MOST_HOLDERS: Final = 32
"""Most holders of an executor; with more buckets, a holder has several, which it serves in turn."""
_KEY_BYTES: Final = 200

Key = tuple[str, int]
"""Stage and number of a bucket."""


class HolderError(Exception):
    """Error raised in a holder, with the holder's message."""


@dataclass(slots=True)
class _Holder:
    line: socket.socket
    keys: set[Key] = field(default_factory=set[Key])


@dataclass(slots=True)
class Host:
    """Process that forks holders and hands them the sockets of workers.

    Parameters
    ----------
    door
        End of the socket pair on which workers' requests arrive.
    most
        Most holders.
    """

    door: socket.socket
    most: int
    holders: list[_Holder] = field(default_factory=list[_Holder])

    def serve(self) -> None:
        """Connect workers to holders until all workers and their parent have exited."""
        while True:
            message, sockets, _, _ = socket.recv_fds(self.door, _KEY_BYTES, 1)
            if not message:
                return
            key = pickle.loads(message)  # noqa: S301 - of workers forked from the same parent
            while not self._handed(self._holder_of(key), message, sockets):
                pass
            for each in sockets:
                os.close(each)

    def _holder_of(self, key: Key) -> _Holder:
        for holder in self.holders:
            if key in holder.keys:
                return holder
        if len(self.holders) < self.most:
            self.holders.append(self._forked())
        holder = min(self.holders, key=lambda each: len(each.keys))
        holder.keys.add(key)
        return holder

    def _handed(self, holder: _Holder, message: bytes, sockets: Sequence[int]) -> bool:
        try:
            socket.send_fds(holder.line, [message], sockets)
        except (BrokenPipeError, ConnectionResetError):  # it was killed: another begins without state
            holder.line.close()
            self.holders.remove(holder)
            return False
        return True

    def _forked(self) -> _Holder:
        line, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if not os.fork():
            line.close()
            self.door.close()
            for holder in self.holders:
                holder.line.close()
            _run(lambda: hold(ours))
        ours.close()
        return _Holder(line)


def hold(line: socket.socket) -> None:
    """Serve workers one after the other until the host has exited."""
    objects: dict[Key, CachedObject] = {}
    while True:
        message, sockets, _, _ = socket.recv_fds(line, _KEY_BYTES, 1)
        if not message:
            return
        with Connection(sockets[0]) as worker, suppress(EOFError, BrokenPipeError, ConnectionResetError):
            _serve(worker, pickle.loads(message), objects)  # noqa: S301 - of workers of the same parent


def _serve(worker: Connection, key: Key, objects: dict[Key, CachedObject]) -> None:
    """Execute a worker's requests on one bucket; the object is kept only if the last request is `keep`."""
    kept = objects.pop(key, None)
    worker.send(None if kept is None else (kept.entry, kept.token))
    bucket: Any = None if kept is None else kept.bucket
    del kept
    while True:
        name, arguments = worker.recv()
        try:
            if name == "keep":
                objects[key] = CachedObject(bucket, *arguments)
                answer = None
            elif name == "new":
                bucket = None  # free it before another is made
                bucket = cloudpickle.loads(arguments[0])()
                answer = None
            else:
                answer = getattr(bucket, name)(*arguments)
        except Exception:  # noqa: BLE001  # the worker raises it as HolderError
            worker.send((False, traceback.format_exc()))
            return
        worker.send((True, answer))


@dataclass(frozen=True, slots=True)
class HeldBucket:
    """Proxy of a bucket in its holder; implements `Bucket`."""

    holder: Connection

    def feed(self, batch: int, pieces: Sequence[bytes], end_ms: int | None) -> FeedResult:
        """See `Bucket`."""
        return self.ask("feed", batch, pieces, end_ms)

    def take_in(self, delta: bytes) -> None:
        """See `Bucket`."""
        self.ask("take_in", delta)

    def base(self) -> list[bytes]:
        """See `Bucket`."""
        return self.ask("base")

    def ask(self, name: str, *arguments: object) -> Any:
        """Call a method in the holder; raises HolderError if that fails, EOFError if the holder exits."""
        self.holder.send((name, arguments))
        done, answer = self.holder.recv()
        if not done:
            raise HolderError(answer)
        return answer


@dataclass(frozen=True, slots=True)
class HeldSlot:
    """Slot in a holder; implements `processors.ObjectSlot`."""

    held: HeldBucket
    kept: CachedObject | None

    def new(self, make: Callable[[], Bucket]) -> Bucket:
        """Make a bucket without state in the holder."""
        self.held.ask("new", cloudpickle.dumps(make))
        return self.held

    def keep(self, kept: CachedObject) -> None:
        """Keep the object in the holder for the next batch."""
        self.held.ask("keep", kept.entry, kept.token)


@dataclass(frozen=True, slots=True)
class Holders:
    """Holders of this executor, for calls by a worker."""

    door: socket.socket
    """End of the socket pair on which to send requests to the host."""

    @contextmanager
    def open_slot(self, stage: str, bucket: int) -> Generator[HeldSlot]:
        """Connect to the holder of a bucket, which serves no other worker until the context ends.

        If the host has exited, the parent of workers is terminated too, so that Spark starts another.

        Raises
        ------
        ConnectionError
            If the host has exited.
        EOFError
            If the holder has exited.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self.door, [pickle.dumps((stage, bucket))], [theirs.fileno()])
            except ConnectionError:
                os.kill(os.getppid(), signal.SIGTERM)
                raise
        with Connection(ours.detach()) as holder:
            held, found = HeldBucket(holder), holder.recv()
            yield HeldSlot(held, None if found is None else CachedObject(held, *found))


def start_holders(most: int = MOST_HOLDERS) -> Holders:
    """Fork a host of holders; call it in the process that workers are forked from, before any of them."""
    door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if not os.fork():
        door.close()
        _run(Host(theirs, most).serve)
    theirs.close()
    return Holders(door)


def _run(serve: Callable[[], None]) -> NoReturn:
    """Serve in a process just forked, detached from its parent's process group and pipes; then exit."""
    code = 1
    try:
        with suppress(PermissionError):
            os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        serve()
        code = 0
    except BaseException:  # noqa: BLE001  # the parent's code must not continue in this process
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


# Garbage collection in the workers of Spark.


@cache
def freeze_once() -> None:
    """Exclude all objects that exist now from later garbage collections.

    Spark collects after every task, however small; with all imported modules that takes as long as a task.
    """
    gc.freeze()
