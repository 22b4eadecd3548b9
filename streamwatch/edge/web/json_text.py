"""JSON of any numbers and names: infinities become strings, lone surrogates become escapes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
from prometheus_client.utils import floatToGoString

JSON = "application/json; charset=utf-8"


def encode(document: object) -> bytes:
    """Encode a document as UTF-8, whatever texts it has."""
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:  # a lone surrogate somewhere
        return msgspec.json.encode(_spelt_out(msgspec.to_builtins(document)))


def number(value: float) -> float | str:
    """Convert a number for JSON; infinities become `+Inf` and `-Inf`."""
    if isinstance(value, int):
        return value
    plain = float(value)  # the encoder does not know NumPy's floats
    return plain if math.isfinite(plain) else floatToGoString(plain)


def _spelt_out(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_spelt_out(key): _spelt_out(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spelt_out(item) for item in value]
    return value
