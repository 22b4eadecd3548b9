"""Envelopes of record values, one file each, by their name in the settings.

===============  =====================================================================================
``cloudevents``  CloudEvents over Kafka, structured (one JSON object) and binary (headers ``ce_*``)
``debezium``     Changes of a database's rows: ``before``, ``after``, ``op``
``kserve_v1``    KServe's v1 protocol: ``instances`` and ``predictions``
``kserve_v2``    The open inference protocol (KServe v2, Triton): tensors with shapes
``seldon``       Seldon Core's v1 protocol: ``data.names``, ``data.ndarray`` or ``data.tensor``
===============  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streamwatch.edge.decoders.envelopes import cloudevents, debezium, kserve_v1, kserve_v2, seldon
from streamwatch.edge.decoders.envelopes.kind import EnvelopeKind, UnwrappedRecord

__all__ = ["KINDS", "EnvelopeKind", "UnwrappedRecord"]

KINDS: Mapping[str, EnvelopeKind] = MappingProxyType(
    {module.KIND.name: module.KIND for module in (cloudevents, debezium, kserve_v1, kserve_v2, seldon)}
)
"""Envelopes by name."""
