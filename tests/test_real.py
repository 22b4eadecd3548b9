"""Nothing is left out in silence."""

from __future__ import annotations

import pytest

from tests import real


@pytest.fixture(autouse=True)
def _own_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "left_out", {})
    monkeypatch.setattr(real, "on_the_embedded_broker", {})


def test_a_missing_component_leaves_the_test_out_by_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(real, "REQUIRED", False)
    with pytest.raises(pytest.skip.Exception, match="needs no-such-program: no no-such-program on the PATH"):
        real.need("test_x", "no-such-program")
    assert list(real.left_out) == ["test_x"]
    assert not real.need_or_embedded("test_y", "no-such-program")
    assert list(real.on_the_embedded_broker) == ["test_y"]


def test_a_missing_component_is_a_failure_where_real_ones_are_required(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(real, "REQUIRED", True)
    with pytest.raises(pytest.fail.Exception, match="needs no-such-program"):
        real.need("test_x", "no-such-program")
    with pytest.raises(pytest.fail.Exception, match="needs no-such-program"):
        real.need_or_embedded("test_y", "no-such-program")
    assert not real.left_out
    assert not real.on_the_embedded_broker


def test_a_component_that_is_there_leaves_nothing_out():
    real.need("test_x", "sh")
    assert real.need_or_embedded("test_x", "sh")
    assert not real.left_out
