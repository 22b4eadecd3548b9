"""Log lines of the client library."""

from __future__ import annotations

import logging


class ClientLogCapture(logging.Handler):
    """Keeps the client library's last error line, which its exceptions lack, and its lines off stderr."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Remember the message."""
        self.last = record.getMessage()

    def attach(self) -> None:
        """Listen to the client library."""
        logging.getLogger("aiokafka").addHandler(self)

    def detach(self) -> None:
        """Stop listening."""
        logging.getLogger("aiokafka").removeHandler(self)
