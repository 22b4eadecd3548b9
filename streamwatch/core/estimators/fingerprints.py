"""Names of the sections of a snapshot."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np


def fingerprint(kind: str, spec: object, schema: np.dtype[Any] | None, version: object) -> str:
    """Name of the section of one estimator, from its kind, parameters, record schema and version."""
    described = repr((spec, schema.descr if schema is not None else None, version))
    return f"{kind}/{hashlib.blake2b(described.encode(), digest_size=8).hexdigest()}"
