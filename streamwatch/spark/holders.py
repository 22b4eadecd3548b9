"""Processes that hold the objects of buckets, for all workers of an executor.

Spark gives a task to any worker process. Were a bucket's object in the worker, each would have one, and take
in again what others fed theirs. So a bucket has a holder, a process that workers call.

    parent of workers ─ fork ─→ host of holders ─ fork ─→ holder of ids/0, of ids/1 …
          │ fork                   ↑ one end of a pair of sockets       ↑ is handed it
          └──→ worker ─────────────┘                                    │
                  └─ the other end ─────────────────────────────────────┘

There is no address that others could call, and nothing to clear away: once parent and workers are gone, the
host reads the end of its socket, then the holders of theirs.
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
"""Processes of an executor; with more buckets than that a holder has several, which wait for each other."""
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
        End at which workers ask.
    most
        Holders at most.
    """

    door: socket.socket
    most: int
    holders: list[_Holder] = field(default_factory=list[_Holder])

    def serve(self) -> None:
        """Connect workers to holders until none is left that could ask."""
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
        except (BrokenPipeError, ConnectionResetError):  # it was killed: another begins with nothing
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
    """Serve workers one after the other until the host is gone."""
    objects: dict[Key, CachedObject] = {}
    while True:
        message, sockets, _, _ = socket.recv_fds(line, _KEY_BYTES, 1)
        if not message:
            return
        with Connection(sockets[0]) as worker, suppress(EOFError, BrokenPipeError, ConnectionResetError):
            _serve(worker, pickle.loads(message), objects)  # noqa: S301 - of workers of the same parent


def _serve(worker: Connection, key: Key, objects: dict[Key, CachedObject]) -> None:
    """Do what a worker asks of one bucket; it is kept only if the worker asks for that at the end."""
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
                bucket = None  # before another replaces it
                bucket = cloudpickle.loads(arguments[0])()
                answer = None
            else:
                answer = getattr(bucket, name)(*arguments)
        except Exception:  # noqa: BLE001  # whatever it is, the worker raises it
            worker.send((False, traceback.format_exc()))
            return
        worker.send((True, answer))


@dataclass(frozen=True, slots=True)
class HeldBucket:
    """A bucket in its holder: a `Bucket` that asks it."""

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
        """Let the holder do something; raises HolderError if that fails, EOFError if the holder ends."""
        self.holder.send((name, arguments))
        done, answer = self.holder.recv()
        if not done:
            raise HolderError(answer)
        return answer


@dataclass(frozen=True, slots=True)
class HeldSlot:
    """A `processors.ObjectSlot` in a holder."""

    held: HeldBucket
    kept: CachedObject | None

    def new(self, make: Callable[[], Bucket]) -> Bucket:
        """Let the holder make a bucket without state."""
        self.held.ask("new", cloudpickle.dumps(make))
        return self.held

    def keep(self, kept: CachedObject) -> None:
        """Let the holder keep it for the next batch."""
        self.held.ask("keep", kept.entry, kept.token)


@dataclass(frozen=True, slots=True)
class Holders:
    """Holders of this executor, as a worker calls them."""

    door: socket.socket
    """End at which to ask the host."""

    @contextmanager
    def open_slot(self, stage: str, bucket: int) -> Generator[HeldSlot]:
        """Connect to the holder of a bucket, which serves nobody else meanwhile.

        Without their host the parent of workers is of no use: it is ended, and Spark starts another.

        Raises
        ------
        ConnectionError
            There is no host, or the holder ended.
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
    """Fork a host of holders, of a process that workers are forked from later."""
    door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if not os.fork():
        door.close()
        _run(Host(theirs, most).serve)
    theirs.close()
    return Holders(door)


def _run(serve: Callable[[], None]) -> NoReturn:
    """Serve in a process that was just forked, without group and pipes of its parent; then end it."""
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
    except BaseException:  # noqa: BLE001  # nothing of the parent's goes on here
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


# Garbage collection in the workers of Spark.


@cache
def freeze_once() -> None:
    """Spare later collections what is loaded by now.

    Spark collects after every task, however small; through all that was imported it takes as long as a task.
    """
    gc.freeze()
