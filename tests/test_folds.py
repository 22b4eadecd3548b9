"""Roles of folds: the published vectors, the laws of the three schemes, and what importing them costs."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

from streamwatch.folds import Scheme, roles

VECTORS = json.loads((Path(__file__).parents[1] / "docs/folds/test-vectors.json").read_text("utf-8"))
IDS = [f"event-{i}" for i in range(20_000)]


def role_of(vector):
    scheme = Scheme(vector["validation"], vector["folds"], vector["prequential"])
    return roles(vector["id"], vector["fold"], scheme)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['validation']} {v['id'][:12]} {v['fold']}")
def test_roles_are_the_published_ones(vector) -> None:
    assert role_of(vector) == (vector["tests"], vector["weight"])


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['validation']} {v['id'][:12]} {v['fold']}")
def test_the_published_vectors_follow_from_b2sum_and_the_table_as_written(vector) -> None:
    fold = str(vector["fold"]) if vector["validation"] == "bootstrap" else ""
    hashed = "\0".join([vector["validation"], vector["id"], fold]).encode()
    out = subprocess.run(["b2sum", "-l", "64"], input=hashed, capture_output=True, check=True).stdout
    digest = out.split()[0].decode()
    assert digest == vector["digest"]
    h = int.from_bytes(bytes.fromhex(digest), "little")
    if vector["validation"] == "bootstrap":
        cdf = np.cumsum([math.exp(-1) / math.factorial(j) for j in range(25)])
        weight = int((cdf <= (h >> 11) * 2.0**-53).sum())
        tests = weight == 0
    else:
        chosen = h % vector["folds"] == vector["fold"]
        tests = chosen if vector["validation"] == "cross-validation" else not chosen
        weight = int(not tests)
    assert (vector["tests"], vector["weight"]) == (tests or vector["prequential"], weight)


@pytest.mark.parametrize(
    ("validation", "testing", "training"), [("cross-validation", 1, 9), ("split-validation", 9, 1)]
)
def test_every_event_is_tested_and_trained_on_by_so_many_of_ten_folds(validation, testing, training) -> None:
    scheme = Scheme(validation, 10, prequential=False)
    counts = np.zeros(10, int)
    for event_id in IDS[:5_000]:
        of_event = [roles(event_id, fold, scheme) for fold in range(10)]
        assert sum(role.tests for role in of_event) == testing
        assert sum(role.weight for role in of_event) == training
        assert all(role.tests != bool(role.weight) for role in of_event)
        counts += [role.tests for role in of_event]
    assert chisquare(counts).pvalue > 1e-4


def test_bootstrap_weights_are_poisson_of_mean_one_and_folds_draw_independently() -> None:
    scheme = Scheme("bootstrap", 4, prequential=False)
    weights = np.array([[roles(event_id, fold, scheme).weight for event_id in IDS] for fold in range(4)])
    share = np.array([math.exp(-1) / math.factorial(j) for j in range(5)])
    expected = np.append(share, 1 - share.sum()) * len(IDS)
    for of_fold in weights:
        assert chisquare(np.bincount(np.minimum(of_fold, 5), minlength=6), expected).pvalue > 1e-4
    for one, other in combinations(weights, 2):
        assert abs(np.corrcoef(one, other)[0, 1]) < 4 / math.sqrt(len(IDS))


def test_bootstrap_tests_where_it_does_not_train() -> None:
    scheme = Scheme("bootstrap", 3, prequential=False)
    for event_id in IDS[:1_000]:
        for fold in range(3):
            role = roles(event_id, fold, scheme)
            assert role.tests == (role.weight == 0)


@pytest.mark.parametrize("validation", ["cross-validation", "split-validation", "bootstrap"])
def test_the_prequential_form_tests_everywhere_and_trains_alike(validation) -> None:
    first, table = Scheme(validation, 5), Scheme(validation, 5, prequential=False)
    for event_id in IDS[:500]:
        for fold in range(5):
            assert roles(event_id, fold, first) == (True, roles(event_id, fold, table).weight)


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda: Scheme("leave-one-out"), "validation must be one of cross-validation"),
        (lambda: Scheme("cross-validation", 1), "folds must be at least 2 under cross-validation, got 1"),
        (lambda: Scheme("bootstrap", 0), "folds must be at least 1"),
        (lambda: roles("a", 10, Scheme()), "fold must be in 0 … 9, got 10"),
        (lambda: roles("a", -1, Scheme()), "fold must be in 0 … 9, got -1"),
        (lambda: roles("\ud800", 0, Scheme()), "surrogates"),
    ],
)
def test_what_makes_no_sense_is_refused(make, wrong) -> None:
    with pytest.raises(ValueError, match=wrong):
        make()


def test_a_trainer_that_imports_it_loads_neither_numpy_nor_numba() -> None:
    program = "import sys, streamwatch.folds; print(sorted({'numpy', 'numba', 'scipy'} & sys.modules.keys()))"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout
    assert out.strip() == "[]"
