"""Every type of receiver is one file with its KIND, looked up by name; a forgotten one is an error."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from pydantic import ValidationError, create_model

from streamwatch.assembly.alerts import build_receivers
from streamwatch.edge import receivers
from streamwatch.edge.receivers import KINDS, EndpointSpec, OwnKey, ReceiverKind, ReceiverOptions
from streamwatch.edge.receivers.http import HttpReceiver
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.alerts import TYPES, ReceiverSection, own_fields
from streamwatch.settings.sections import Section

MODULES = [
    importlib.import_module(f"{receivers.__name__}.{found.name}")
    for found in pkgutil.iter_modules(receivers.__path__)
]


def test_every_file_that_knows_a_format_exports_its_kind_and_every_kind_is_found() -> None:
    formats = [module for module in MODULES if hasattr(module, "KIND")]
    assert {module.KIND.name: module.KIND for module in formats} == dict(KINDS)
    assert {module.__name__.rpartition(".")[2] for module in formats} == set(KINDS)
    assert all(isinstance(module.KIND, ReceiverKind) for module in formats)


def test_settings_offer_exactly_the_kinds_there_are_with_the_keys_that_are_theirs() -> None:
    assert set(TYPES) == set(KINDS)
    offered = ReceiverSection.model_fields
    for kind in KINDS.values():
        for key in kind.keys:
            assert (offered[key.name].description or "").startswith(f"{kind.name}: "), key.name
            files = {"secret": "_file", "secrets": "_files"}.get(key.holds)
            assert files is None or f"{key.name}{files}" in offered, key.name


def test_a_kind_that_is_added_has_its_keys_in_the_settings_without_a_line_there() -> None:
    keys = (OwnKey("token", "secret", "token of the channel."), OwnKey("pause", "duration", "pause.", 5))
    fields = own_fields(ReceiverKind("teams", keys, KINDS["slack"].configure))
    assert set(fields) == {"token", "token_file", "pause"}
    section = create_model("Section", __base__=Section, **fields)
    assert section(token="x", pause="3s").pause == 3_000  # type: ignore[attr-defined]  # noqa: S106
    with pytest.raises(ValidationError, match="not shown"):
        section(token=12)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_a_kind_configures_a_receiver_of_the_name_it_is_given(kind: ReceiverKind) -> None:
    spec = EndpointSpec("oncall", kind.default_url or "http://127.0.0.1:9/")
    values = {"secret": "key", "secrets": (b"0" * 24,), "texts": {}, "duration": 60_000}
    own = {key.name: values[key.holds] for key in kind.keys}
    built = HttpReceiver(*kind.configure(spec, ReceiverOptions(own=own)))
    assert built.name == "oncall"


def test_a_type_that_settings_know_and_nobody_builds_is_an_error_and_no_other_type() -> None:
    section = ReceiverSection(name="a", type="slack", url="http://127.0.0.1:9/")  # type: ignore[arg-type]
    unbuilt = section.model_copy(update={"type": "carrier_pigeon"})
    plain = Settings(
        kafka={"bootstrap_servers": "localhost:9"},  # type: ignore[arg-type]
        topics={"predictions": ["p"], "labels": ["l"]},  # type: ignore[arg-type]
    )
    settings = plain.model_copy(update={"alerts": plain.alerts.model_copy(update={"receivers": (unbuilt,)})})
    with pytest.raises(
        SettingsError, match=r"alerts\.receivers\[0\]\.type: expected one of .*carrier_pigeon"
    ):
        build_receivers(settings)
