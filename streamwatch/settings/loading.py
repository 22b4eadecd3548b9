"""Settings read, merged and checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from streamwatch.settings.faults import SettingsError, describe, faults
from streamwatch.settings.layers import layers_of, merged
from streamwatch.settings.settings import Settings


def load(
    file: Path | None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    otherwise: Mapping[str, Any] | None = None,
) -> Settings:
    """Read, merge and check the settings.

    Parameters
    ----------
    file
        The YAML file; None where environment and command line say everything.
    overrides
        `section.key=value`, strongest; a value starting with `[` or `{` is YAML.
    environ
        The environment; the process's own by default.
    otherwise
        What holds where nobody says anything, for commands that need no Kafka.

    Raises
    ------
    SettingsError
        Naming every faulty key, its origin, what was expected and what was found.
    """
    layers = layers_of(file, overrides, environ, otherwise)
    try:
        return Settings(**merged(layer.values for layer in layers))
    except ValidationError as error:
        raise describe(error, Settings, layers) from None


def load_used(
    file: Path | None,
    overrides: Sequence[str],
    used: Collection[str],
    otherwise: Mapping[str, Any],
    environ: Mapping[str, str] | None = None,
) -> tuple[Settings, Sequence[str]]:
    """Read settings of which only some sections are used: faults in others are no errors.

    Parameters
    ----------
    file, overrides, environ
        As of `load`.
    used
        Names of the sections that are used.
    otherwise
        What holds where nobody says anything, and in place of a faulty section that is not used; its default
        where this says nothing.

    Returns
    -------
    tuple
        The settings, and the lines of the faults that were passed over.

    Raises
    ------
    SettingsError
        Naming every faulty key of the sections used, and every key that is no section: it may be one of those
        that are used, misspelt.
    """
    layers = layers_of(file, overrides, environ, otherwise)
    try:
        return Settings(**merged(layer.values for layer in layers)), ()
    except ValidationError as error:
        found = faults(error, Settings, layers)
    passed_over = Settings.model_fields.keys() - set(used)
    if concerned := [line for section, line in found if section not in passed_over]:
        raise SettingsError("\n".join(concerned))
    faulty = {section for section, _ in found}
    kept = [{name: v for name, v in layer.values.items() if name not in faulty} for layer in layers]
    settings = Settings(**merged([*kept, {name: v for name, v in otherwise.items() if name in faulty}]))
    return settings, [line for _, line in found]
