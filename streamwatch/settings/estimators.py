"""Estimators in settings: lists of them, generated from the catalogue, and detectors by pattern of model."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Annotated, Any, TypeAlias, cast, get_type_hints

from pydantic import (
    AfterValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from streamwatch.core.estimators.catalogue import DETECTORS, DRIFT_WEIGHTED, MECHANISMS
from streamwatch.core.estimators.entries import LEAST_ALPHA, Entry, Parameter
from streamwatch.core.specs import (
    DetectorSpec,
    ModelDetectors,
)
from streamwatch.settings.sections import Section
from streamwatch.settings.values import Bounded, counted

# Lists of estimators such as `[landmark, fading: {alpha: 0.99}]`, generated from the catalogue.
#
# An entry is the name of a kind, or a mapping of the name to parameters, and is read as the core's spec of
# the kind. Names, parameters, ranges, defaults and descriptions are those of the catalogue.


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


def _beside(parameter: Parameter) -> Callable[[float, ValidationInfo], float]:
    """Make a validator of a parameter that must be larger than an earlier one."""

    def check(value: float, info: ValidationInfo) -> float:
        problem = parameter.problem_beside(value, info.data)
        if problem is not None:
            raise ValueError(problem)
        return value

    return check


class Parameters(Section):
    """Parameters of one estimator."""

    def values(self) -> dict[str, Any]:
        """Return the arguments of the kind's spec."""
        return self.model_dump()


def parameters_of(entry: Entry, base: type[Parameters] = Parameters) -> type[Parameters]:
    """Make the section of a kind's parameters, as a subclass of `base`."""
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
        default: Any = Field(field.default, description=parameter.help)
        if parameter.above:  # the default, too, has to go with the other parameter as it is set
            ranged = Annotated[ranged, AfterValidator(_beside(parameter))]
            default = Field(field.default, description=parameter.help, validate_default=True)
        keys[field.name] = (ranged, default)
    title = entry.spec.__name__.removesuffix("Spec")
    doc = f"{entry.help[0].upper()}{entry.help[1:]}."
    return create_model(f"{title}Section", __base__=base, __doc__=doc, **keys)


def _written(entry: Entry, base: type[Parameters]) -> type[Section]:
    """Make the section of an entry `kind: {parameters}`, such as `fading: {alpha: 0.99}`."""
    section = parameters_of(entry, base)
    title = section.__name__.removesuffix("Section")
    key: dict[str, Any] = {entry.name: (section, ...)}
    return create_model(f"{title}Entry", __base__=Section, __doc__=f"`{entry.name}: {{…}}`.", **key)


class OneOf:
    """Type of an entry of a list, for `Annotated[ForgettingSpec, OneOf(MECHANISMS)]`.

    Parameters
    ----------
    entries
        Kinds to choose from.
    bases
        Base class of the section of parameters by kind, for further keys; `Parameters` if not given.
    """

    def __init__(self, entries: Sequence[Entry], bases: Mapping[str, type[Parameters]] | None = None) -> None:
        self._entries = {entry.name: entry for entry in entries}
        self.written = {
            entry.name: _written(entry, (bases or {}).get(entry.name, Parameters))
            for entry in entries
            if fields(entry.spec)
        }
        """Section of an entry `{kind: {…}}` by kind, for kinds with parameters."""

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
        """Convert an entry to its spec; a bare name has the defaults."""
        if isinstance(entry, str):
            return self._entries[entry].spec()
        name = next(iter(type(entry).model_fields))
        return self._entries[name].spec(**getattr(entry, name).values())

    def shown(self, spec: object) -> Any:
        """Convert a spec to its entry in the file."""
        entry = next(e for e in self._entries.values() if e.spec is type(spec))
        values = {f.name: getattr(spec, f.name) for f in fields(entry.spec)}
        return {entry.name: values} if values else entry.name


class OneOrMore:
    """Type of one mapping of parameters, a list of them, or null for none; read as a tuple of specs.

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
        """Convert specs to their list in the file."""
        return [{f.name: getattr(spec, f.name) for f in fields(self._entry.spec)} for spec in specs]


def listed(value: object) -> object:
    """Return null as an empty list, a mapping as a list of it, and other values unchanged."""
    return [] if value is None else [value] if isinstance(value, dict) else value


def unwrapped(entry: object) -> object:
    """Read `adwin:` and `adwin: {}` as `adwin`."""
    if isinstance(entry, dict) and len(written := cast("dict[object, object]", entry)) == 1:
        ((kind, parameters),) = written.items()
        return entry if parameters else kind
    return entry


def kind_of(entry: Any) -> str | None:
    """Return the tag of an entry: `<kind> by name` for a text, the only key of a mapping; None for others."""
    if isinstance(entry, str):
        return f"{entry} by name"
    if isinstance(entry, dict):
        return str(next(iter(entry), None)) if len(entry) == 1 else None
    return next(iter(type(entry).model_fields), None) if isinstance(entry, Section) else None


ByModel: TypeAlias = dict[str, dict[str, dict[str, bool | int | float | str]]]
"""Values by pattern of model, name of detector, and name of parameter."""


def model_detectors(detectors: Sequence[DetectorSpec], by_model: ByModel) -> tuple[ModelDetectors, ...]:
    """Return the detectors for each pattern of model: those of all models, with the given parameters changed.

    Raises
    ------
    ValueError
        If there is no such detector or parameter, or a value is out of its range.
    """
    return tuple(
        ModelDetectors(pattern, tuple(_changed(pattern, detector, given) for detector in detectors))
        for pattern, given in by_model.items()
        if known(pattern, "detector", given, [detector.name for detector in detectors])
    )


def _changed(pattern: str, detector: DetectorSpec, given: Mapping[str, Mapping[str, Any]]) -> DetectorSpec:
    parameters = given.get(detector.name, {})
    entry = next(each for each in DETECTORS if each.spec is type(detector))
    names = [parameter.name for parameter in entry.parameters]
    known(f"{pattern}: {detector.name}", "parameter", parameters, names)
    of_all_models = {name: getattr(detector, name) for name in names}
    try:
        values = parameters_of(entry).model_validate({**of_all_models, **parameters}).model_dump()
    except ValidationError as error:
        first = error.errors()[0]
        reason = first.get("ctx", {}).get("error") or f"{first['msg']}, got {first['input']!r}"
        raise ValueError(f"{pattern}: {detector.name}: {first['loc'][0]}: {reason}") from None
    return replace(detector, **{name: values[name] for name in parameters})


def known(where: str, kind: str, given: Mapping[str, object], names: Sequence[str]) -> bool:
    """Return True if all keys of `given` are in `names`; else raise ValueError with the nearest name."""
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names) or 'none'}"
            raise ValueError(f"{where}: no {kind} is named {name!r}; {meant}")
    return True


FORGETTING_KINDS = tuple(entry.name for entry in MECHANISMS)
DETECTOR_KINDS = tuple(entry.name for entry in DETECTORS)


class HalfLife(Parameters):
    """Exponential forgetting may be given as `half_life` instead of `alpha`."""

    half_life: Annotated[float, Bounded("half-life in outcomes", above=0)] | None = Field(
        default=None, description="Number of outcomes after which a weight has halved, instead of `alpha`."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> HalfLife:
        if self.half_life is not None and "alpha" in self.model_fields_set:
            raise ValueError("give alpha or half_life, not both")
        return self

    @field_validator("half_life")
    @classmethod
    def _gives_a_factor(cls, half_life: float | None) -> float | None:
        if half_life is not None and not LEAST_ALPHA <= _alpha_of(half_life) < 1.0:
            raise ValueError(
                f"half-life in outcomes must give a fading factor 2^(-1/half_life) in [{LEAST_ALPHA}, 1), "
                f"got {half_life!r}"
            )
        return half_life

    def values(self) -> dict[str, Any]:
        """Return the arguments of the kind's spec; a half-life h gives alpha = 2^(-1/h)."""
        values = self.model_dump(exclude={"half_life"})
        return values if self.half_life is None else values | {"alpha": _alpha_of(self.half_life)}


def _alpha_of(half_life: float) -> float:
    return 0.5 ** (1.0 / half_life)


FORGETTING = OneOf(MECHANISMS, {"fading": HalfLife})
DETECTOR = OneOf(DETECTORS)
DRIFT_WEIGHTED_SPECS = OneOrMore(DRIFT_WEIGHTED[0])
