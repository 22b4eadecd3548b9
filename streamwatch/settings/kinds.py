"""Lists of estimators in the file, `[landmark, fading: {alpha: 0.99}]`, made from the catalogue's tables.

An entry is the name of a kind, or the name with its parameters; what is read is the core's specification
of it. Names, parameters, ranges, defaults and explanations are the catalogue's: what is added there is known
here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any, cast, get_type_hints

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, create_model
from pydantic_core import CoreSchema, core_schema

from streamwatch.core.estimators.entries import Entry, Parameter
from streamwatch.settings.numbers import counted
from streamwatch.settings.sections import Section


class Within:
    """The range of a parameter, for `Annotated[float, Within(parameter)]`."""

    def __init__(self, parameter: Parameter) -> None:
        self.parameter = parameter

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            counted, core_schema.no_info_after_validator_function(self._check, handler(source))
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), **self.parameter.bounds}

    def _check(self, value: float) -> float:
        problem = self.parameter.problem(value)
        if problem is not None:
            raise ValueError(problem)
        return value


class Generated(Section, use_attribute_docstrings=False):
    """Base of sections made from tables: their keys bring their descriptions, no source is searched."""


class Parameters(Generated):
    """Parameters of one estimator."""

    def values(self) -> dict[str, Any]:
        """Values of which the specification is made."""
        return self.model_dump()


def parameters_of(entry: Entry, base: type[Parameters] = Parameters) -> type[Parameters]:
    """The section with a kind's parameters; keys that `base` has already keep its ways."""
    hints = get_type_hints(entry.spec)
    by_name = {parameter.name: parameter for parameter in entry.parameters}
    keys: dict[str, Any] = {}
    for field in fields(entry.spec):
        parameter = by_name.get(field.name)
        if parameter is None:
            keys[field.name] = (hints[field.name], Field(field.default, description="Its name in metrics."))
            continue
        free = parameter.choices or parameter.text
        ranged = hints[field.name] if free else Annotated[hints[field.name], Within(parameter)]
        keys[field.name] = (ranged, Field(field.default, description=parameter.help))
    title = entry.spec.__name__.removesuffix("Spec")
    told = f"{entry.help[0].upper()}{entry.help[1:]}."
    return create_model(f"{title}Section", __base__=base, __doc__=told, **keys)


def _written(entry: Entry, base: type[Parameters]) -> type[Section]:
    """`fading: {alpha: 0.99}`: a mapping whose only key is the kind."""
    section = parameters_of(entry, base)
    title = section.__name__.removesuffix("Section")
    key: dict[str, Any] = {entry.name: (section, ...)}
    return create_model(f"{title}Entry", __base__=Generated, __doc__=f"`{entry.name}: {{…}}`.", **key)


class OneOf:
    """An entry of a list, for `Annotated[ForgettingSpec, OneOf(MECHANISMS)]`.

    Parameters
    ----------
    entries
        The kinds there are.
    bases
        By kind, a section whose keys it has beside its parameters.
    """

    def __init__(self, entries: Sequence[Entry], bases: Mapping[str, type[Parameters]] | None = None) -> None:
        self._entries = {entry.name: entry for entry in entries}
        self.written = {
            entry.name: _written(entry, (bases or {}).get(entry.name, Parameters))
            for entry in entries
            if fields(entry.spec)
        }
        """By kind that has parameters, the mapping of one key that an entry with some is."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        del source
        choices: dict[str, CoreSchema] = {
            f"{name} by name": core_schema.literal_schema([name]) for name in self._entries
        }
        choices |= {name: handler.generate_schema(written) for name, written in self.written.items()}
        return core_schema.no_info_after_validator_function(
            self._spec,
            core_schema.no_info_before_validator_function(
                unwrapped, core_schema.tagged_union_schema(choices, discriminator=kind_of)
            ),
            serialization=core_schema.plain_serializer_function_ser_schema(self.shown),
        )

    def _spec(self, entry: str | Section) -> object:
        """The specification an entry stands for; a bare name has the defaults."""
        if isinstance(entry, str):
            return self._entries[entry].spec()
        name = next(iter(type(entry).model_fields))
        return self._entries[name].spec(**getattr(entry, name).values())

    def shown(self, spec: object) -> Any:
        """Form in which a specification is written in the file."""
        entry = next(e for e in self._entries.values() if e.spec is type(spec))
        values = {f.name: getattr(spec, f.name) for f in fields(entry.spec)}
        return {entry.name: values} if values else entry.name


class OneOrMore:
    """Parameters of one estimator, or a list of such, or null for none; read as a tuple of specifications.

    For `Annotated[tuple[DriftWeightedSpec, ...], OneOrMore(entry)]`.
    """

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self.section = parameters_of(entry)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        del source
        several = core_schema.list_schema(handler.generate_schema(self.section))
        return core_schema.no_info_after_validator_function(
            self._specs,
            core_schema.no_info_before_validator_function(listed, several),
            serialization=core_schema.plain_serializer_function_ser_schema(self.shown),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        several = handler(schema)
        return {"anyOf": [several["items"], several, {"type": "null"}]}

    def _specs(self, sections: Sequence[Parameters]) -> tuple[object, ...]:
        return tuple(self._entry.spec(**section.values()) for section in sections)

    def shown(self, specs: Sequence[object]) -> Any:
        """Form in which they are written in the file."""
        return [{f.name: getattr(spec, f.name) for f in fields(self._entry.spec)} for spec in specs]


def listed(value: object) -> object:
    """Nothing and a single one as lists."""
    return [] if value is None else [value] if isinstance(value, dict) else value


def unwrapped(entry: object) -> object:
    """`adwin:` and `adwin: {}` say the same as `adwin`."""
    if isinstance(entry, dict) and len(written := cast("dict[object, object]", entry)) == 1:
        ((kind, parameters),) = written.items()
        return entry if parameters else kind
    return entry


def kind_of(entry: Any) -> str | None:
    """The kind an entry is about: itself, or its only key."""
    if isinstance(entry, str):
        return f"{entry} by name"
    if isinstance(entry, dict):
        return str(next(iter(entry), None)) if len(entry) == 1 else None
    return next(iter(type(entry).model_fields), None) if isinstance(entry, Section) else None
