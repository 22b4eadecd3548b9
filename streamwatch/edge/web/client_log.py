"""The HTTP library's log, with what clients do wrong taken out of it and counted."""

from __future__ import annotations

import asyncio
import logging
import ssl

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_exceptions import HTTPException
from aiohttp.web_protocol import RequestPayloadError

from streamwatch.edge.web.connections import Refused

_CLIENTS = (
    HTTPException,
    HttpProcessingError,
    RequestPayloadError,
    TimeoutError,
    asyncio.IncompleteReadError,
    ssl.SSLError,
)


class ClientLog(logging.Handler):
    """Counts what clients do wrong; passes on to the library's own log what is a defect here."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(logging.DEBUG)
        self._refused = refused

    def emit(self, record: logging.LogRecord) -> None:
        """Tell a client's fault from a defect by the exception."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ConnectionError):
            return  # it left, or was cut off and counted then
        if error is None or isinstance(error, _CLIENTS):
            self._refused("malformed_request")
        else:
            logging.getLogger("aiohttp.server").handle(record)

    def logger(self) -> logging.Logger:
        """A logger that leads only here."""
        made = logging.Logger("streamwatch.http", logging.DEBUG)  # noqa: LOG001 - found by no name
        made.addHandler(self)
        return made
