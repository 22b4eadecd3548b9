"""Log lines of the client library."""

from __future__ import annotations

import logging


class ClientLogCapture(logging.Handler):
    """Keeps the client library's last error line, which its exceptions lack, and its lines off stderr."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""
        self._propagated = True

    def emit(self, record: logging.LogRecord) -> None:
        """Remember the message."""
        self.last = record.getMessage()

    def attach(self) -> None:
        """Listen to the client library, and nobody else."""
        library = logging.getLogger("aiokafka")
        library.addHandler(self)
        self._propagated, library.propagate = library.propagate, False

    def detach(self) -> None:
        """Stop listening."""
        library = logging.getLogger("aiokafka")
        if self in library.handlers:
            library.removeHandler(self)
            library.propagate = self._propagated
