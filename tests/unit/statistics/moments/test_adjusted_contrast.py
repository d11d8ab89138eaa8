"""The comparison of a trial's arms, adjusted for covariates with everything private."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.thinned import thinned

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import feature_map
from counterveil.errors import ParameterError, StudyError
from counterveil.numerics.products import Standard
from counterveil.session import SeededNoise
from counterveil.statistics.moments.records import Records
from counterveil.statistics.moments.sensitivity import CentredContrast
from counterveil.statistics.moments.trial import Direction, Prediction, Setting, moments, residual_totals

EFFECT = 0.05
ADJUSTED, PLAIN = cv.settings.Trial("covariates"), cv.settings.Trial("none", "arms")


def study(covariates=4, **extra):
    domains = {f"x{place}": cv.Range(-1, 1) for place in range(covariates)}
    return cv.Study("t", "y", (0, 1), domains, control=0, **({"randomised": True} | extra))


def trial(rows=4000, explained=0.8, seed=0, covariates=4):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, (rows, covariates))
    t = (generator.random(rows) < 0.4).astype(int)
    signal = x @ np.linspace(1, 0.2, covariates)
    left = generator.uniform(-1, 1, rows)
    y = np.sqrt(explained) * signal / signal.std() + np.sqrt(1 - explained) * left / left.std()
    data = {"t": t, "y": np.clip(0.45 + 0.1 * y + EFFECT * t, 0, 1)}
    return data | {f"x{place}": x[:, place] for place in range(covariates)}


def ask(data, declared=None, settings=ADJUSTED, **extra):
    words = {"epsilon": 4, "delta": "1e-6", "noise": SeededNoise(1)} | extra
    return cv.ate(data, declared or study(), protects="record", method="trial", settings=settings, **words)


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_intervals_are_shorter_where_covariates_explain_outcomes(delta):
    data = trial()
    plain = ask(data, settings=PLAIN, mechanism="staircase", delta=delta)
    found = ask(data, delta=delta)
    assert found.details["adjusted"] is True
    assert found.details["explained_variance"] > 0.5
    assert np.ptp(found.interval()) < 0.75 * np.ptp(plain.interval())
    assert found.interval_target is None


@pytest.mark.parametrize("explained", thinned([0.0, 0.8], 0.8))
def test_intervals_cover(explained):
    hits = 0
    for seed in range(60):
        data = trial(1500, explained, seed)
        low, high = ask(data, noise=SeededNoise(seed)).interval()
        hits += low <= EFFECT <= high
    assert hits >= 54


def test_no_replacement_moves_what_is_left_by_more_than_the_claim():
    values = tuple(product((0, 1), (0.0, 0.5, 1.0), (-1.0, 0.3, 1.0)))
    standard = Standard(np.zeros(1), np.ones(1), 4.0, 1.0)
    prediction = Prediction(
        standard, Direction(np.ones(1), 1.0, 1.0, 1.0), 0.5, 0.1, 0.3, 0.3, 0.5, bound=0.4
    )
    share, declared = Fraction(2, 5), study(1)
    claim = None

    def statistics(records):
        nonlocal claim
        t, y, x = (list(column) for column in zip(*records, strict=True))
        table = Table.attach({"t": t, "y": y, "x0": x}, declared)
        arms, unit, width = residual_totals(Records(table, feature_map(declared, 1)), prediction)
        centre = width / 3
        claim = CentredContrast(width, len(records), share, centre)
        return moments(arms, unit, Setting(share, 0.0, centre, 0.0, 0.0))

    rest = (values[0], values[1], values[-1], values[-2])
    found = [statistics((record, *rest)) for record in values]
    for place, bound in enumerate((claim.mean, claim.second_moment)):
        worst = max(abs(a[place] - b[place]) for a, b in product(found, repeat=2))
        assert 0.9 * bound < worst <= bound


@pytest.mark.parametrize(
    ("delta", "mechanism", "drawn"),
    [
        (0, None, {"ball", "laplace", "staircase"}),
        (0, "laplace", {"ball", "laplace"}),
        ("1e-6", None, {"gaussian", "laplace", "staircase"}),
    ],
)
def test_the_guarantee_names_every_law_and_what_joins_them(delta, mechanism, drawn):
    found = ask(trial(), delta=delta, mechanism=mechanism)
    pages, said = found.guarantee.pages, dict(found.releases)
    assert {f"mechanisms/{name}.proof.md" for name in drawn} == {
        page for page in pages if page.startswith("mechanisms/")
    }
    assert len(pages) == len(set(pages))
    assert ("accounting/filters.proof.md" in pages) == (delta != 0)
    # Cells, which have Laplace noise wherever noise is pure.
    assert said["histogram of the rows' lengths"] == ("Gaussian noise" if delta else "Laplace noise")
    assert said["moments of covariates with outcomes"] == ("Gaussian noise" if delta else "l2-ball noise")


def test_refusals():
    data = trial(500)
    with pytest.raises(StudyError, match="CV-S050"):
        ask(data, study(randomised=None))
    with pytest.raises(StudyError, match="CV-S051"):
        ask(data, study(0))
    with pytest.raises(ParameterError, match="CV-P240"):
        ask(data, mechanism="gaussian")
