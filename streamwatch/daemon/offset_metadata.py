"""Metadata committed with advisory offsets: the identity of the state, by which a start recognises it."""

from __future__ import annotations


class OffsetMetadata:
    """`state=<identity> commit=<number>` of the last durable commit; empty without one."""

    def __init__(self) -> None:
        self._identity = ""
        self._commit = 0

    def opened(self, identity: str, commit: int) -> None:
        """A state is open, and durable up to this commit."""
        self._identity, self._commit = identity, commit

    def durable(self, commit: int) -> None:
        """Record the latest durable commit number."""
        self._commit = commit

    def __call__(self) -> str:
        """The text."""
        return f"state={self._identity} commit={self._commit}" if self._identity else ""
