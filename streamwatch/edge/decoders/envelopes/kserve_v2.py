"""The open inference protocol (KServe v2, Triton, MLServer): named tensors with a shape and flat data.

Paths begin with `value.id`, `value.model`, `value.model_version`, or with a tensor: `value.outputs.<name>`,
`value.inputs.<name>`, and `value.output`, the first of the outputs. A tensor is an array with an element for
each instance: its value, or the array of its values where the shape gives an instance several. By
default each element of `value.output` is a class, its id is `<id>#<index>`, and its model is name and
version, if the response has one: `fraud/3`. A request without its response is skipped. Data in the binary
extension is not JSON and makes the record invalid.

Source: Open Inference Protocol 2.0, "Inference Response JSON Object" and "Tensor Data".
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final, cast

from streamwatch.core.ports import Record
from streamwatch.edge.decoders.envelopes.cloudevents import first_text, logged
from streamwatch.edge.decoders.envelopes.kind import EnvelopeKind, UnwrappedRecord

MAX_DIMENSIONS: Final = 16
"""Dimensions of a tensor at most."""


def open_v2(tree: Any, record: Record) -> UnwrappedRecord | str | None:
    """Open one response; None for a request alone."""
    found = logged(tree, record)
    if isinstance(found, str):
        return found
    if "outputs" not in found.response:
        return None if isinstance(found.request.get("inputs"), list) else "not_in_envelope"
    outputs = _tensors(found.response["outputs"])
    inputs = _tensors(found.request.get("inputs", []))
    if not outputs or inputs is None:
        return "not_in_envelope"
    attributes, response = found.attributes, found.response
    return UnwrappedRecord(
        {
            "id": first_text(response.get("id"), attributes.get("id"), found.request.get("id")),
            "model": first_text(response.get("model_name"), attributes.get("inferenceservicename")),
            "model_version": first_text(response.get("model_version")),
            "outputs": outputs,
            "output": next(iter(outputs.values())),
            "inputs": inputs,
            "parameters": response.get("parameters"),
            "event": attributes,
        }
    )


def _tensors(tensors: Any) -> dict[str, list[Any]] | None:
    """Return the elements of each tensor by its name; None if one of them is no tensor."""
    if not isinstance(tensors, list):
        return None
    found: dict[str, list[Any]] = {}
    for each in cast("list[Any]", tensors):
        tensor = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        name, rows = tensor.get("name"), elements(tensor.get("shape"), tensor.get("data"))
        if not isinstance(name, str) or rows is None:
            return None
        found[name] = rows
    return found


def elements(shape: Any, data: Any) -> list[Any] | None:
    """Split a tensor along its first dimension; None if data and shape do not fit, or are too deep.

    Data are flat in row-major order, or nested as the shape says.
    """
    if not isinstance(data, list) or not isinstance(shape, list):
        return None
    values, sizes = cast("list[Any]", data), cast("list[Any]", shape)
    if not 0 < len(sizes) <= MAX_DIMENSIONS or any(type(size) is not int or size < 0 for size in sizes):
        return None
    if any(isinstance(value, list) for value in values):
        return values if len(values) == sizes[0] else None
    width = _product(sizes[1:], len(values))
    if len(values) != sizes[0] * width:
        return None
    if width == 1:
        return values
    return [values[at : at + width] for at in range(0, len(values), width)] if width else []


def _product(sizes: list[int], most: int) -> int:
    """Multiply dimensions; a product above `most` is returned as some number above it, to bound its size."""
    product = 0 if 0 in sizes else 1
    for size in sizes:
        product *= size
        if product > most:
            break
    return product


KIND = EnvelopeKind(
    "kserve_v2",
    open_v2,
    MappingProxyType({"model": ("value.model", "value.model_version?"), "prediction": "value.output[]"}),
)
