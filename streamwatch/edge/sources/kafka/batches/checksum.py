"""CRC-32C by the processor's own instruction, for functions compiled by `core.jit`."""

# pyright: reportPrivateImportUsage=false, reportUnknownParameterType=false, reportMissingParameterType=false
# (numba and llvmlite are untyped)
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

from llvmlite import ir
from numba.core import types
from numba.core.extending import intrinsic as _untyped_intrinsic
from numba.core.registry import cpu_target

intrinsic = cast("Callable[[Callable[..., Any]], Callable[..., Any]]", _untyped_intrinsic)


@cache
def has_instruction() -> bool:
    """Tell whether code is compiled for a processor that has the instruction."""
    triple, _, features = cast("Any", cpu_target).target_context.codegen().magic_tuple()
    return str(triple).startswith("x86_64") and "+sse4.2" in str(features).split(",")


@intrinsic
def crc_of_word(typing_context: Any, crc: Any, word: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """Take 8 bytes into a checksum: uint64, uint64 → uint64."""
    del typing_context
    return types.uint64(types.uint64, types.uint64), _instruction("llvm.x86.sse42.crc32.64.64", 64)


@intrinsic
def crc_of_byte(typing_context: Any, crc: Any, byte: Any) -> Any:  # noqa: ARG001  (its type is fixed)
    """Take one byte into a checksum: uint64, uint64 (below 256) → uint64."""
    del typing_context
    return types.uint64(types.uint64, types.uint64), _instruction("llvm.x86.sse42.crc32.64.8", 8)


def _instruction(name: str, bits: int) -> Callable[..., Any]:
    """Call an intrinsic of LLVM that takes a checksum of 64 bits and so many bits of data."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(64)
        kind = ir.FunctionType(wide, [wide, ir.IntType(bits)])
        module: Any = builder.module
        function = module.globals.get(name) or ir.Function(module, kind, name)
        crc, data = arguments
        return builder.call(function, [crc, builder.trunc(data, ir.IntType(bits)) if bits < 64 else data])

    return generate
