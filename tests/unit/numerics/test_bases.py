"""Public functions: bounded rows, the right functions, and what is written is read back."""

import numpy as np
import pytest
from scipy.interpolate import BSpline
from scipy.special import eval_legendre

from counterveil.numerics.bases import Axis, Basis, constant_basis, make_basis
from counterveil.numerics.public_choices import public_normals, public_uniforms
from counterveil.statistics.moments.kernels.scores import MomentSpan, higher_functions, higher_variances

KNOTS = (0.25, 0.5, 0.75)
NUMBER = Axis("x", "legendre", 4, -2.0, 4.0)
COLOUR = Axis("c", "labels", 3)
COLUMNS = {"x": np.linspace(-2, 2, 60), "c": np.arange(60) % 3.0, "s": np.linspace(0, 1, 60)}


def spline(knots=KNOTS):
    return Axis("s", "spline", len(knots), knots=knots)


def test_families_are_what_they_are_called():
    t = np.linspace(0, 1, 41)
    found = Axis("x", "legendre", 5).values(t)
    assert found == pytest.approx(np.stack([eval_legendre(k, 2 * t - 1) for k in range(1, 6)], axis=1))
    assert Axis("x", "cosine", 3).values(t)[:, 2] == pytest.approx(np.cos(3 * np.pi * t))
    ends = np.array([0, 0, 0, 0, *KNOTS, 1, 1, 1, 1])
    reference = [BSpline(ends, np.eye(7)[i], 3, extrapolate=False)(t) for i in range(1, 7)]
    assert spline().values(t) == pytest.approx(np.stack(reference, axis=1))


@pytest.mark.parametrize("tensor", [True, False])
@pytest.mark.parametrize("degree", [1, 3, 5])
def test_no_row_is_longer_than_one(tensor, degree):
    axes = (Axis("x", "legendre", degree, -2.0, 4.0), COLOUR, spline(), Axis("y", "cosine", degree))
    basis = make_basis(axes, degree, tensor)
    corners = {
        "x": np.array([-2.0, 2.0, 0.0, -9.0, 9.0]),
        "c": np.array([0.0, 1, 2, 0, 1]),
        "s": np.array([0.0, 1.0, 0.5, 0.0, 1.0]),
        "y": np.array([0.0, 1.0, 0.0, 1.0, 0.5]),
    }
    many = {name: np.tile(values, 40) for name, values in corners.items()}
    many["s"] = np.concatenate((many["s"][:5], public_uniforms(195, 1, 3)[:, 0]))
    length = np.linalg.norm(basis.features(many), axis=1)
    assert length.max() <= 1.0
    assert Basis.from_dict(basis.to_dict()) == basis


def test_mean_squares_and_orders_and_level():
    basis = make_basis((NUMBER, COLOUR), 4, True, level=0.7)
    x = -2 + 4 * (np.arange(3000) + 0.5) / 3000
    features = basis.features({"x": np.repeat(x, 3), "c": np.tile(np.arange(3.0), 3000)})
    assert (features**2).mean(axis=0) == pytest.approx(basis.squares, abs=1e-5)
    assert basis.squares[0] == pytest.approx(0.7 * basis.squares[1:].sum())
    assert list(basis.orders[:4]) == [0, 1, 1, 1]
    assert basis.size == 1 + 4 + 2 + 3 * 2
    assert constant_basis().features(COLUMNS).shape == (60, 1)


def test_moment_span_keeps_true_moments_and_takes_noise_out():
    basis = make_basis((Axis("x", "legendre", 3), Axis("y", "legendre", 3)), 3, True)
    points = public_uniforms(2 * basis.size * (basis.size + 1), 2, 4)
    span = MomentSpan.of(basis.features({"x": points[:, 0], "y": points[:, 1]}))
    assert len(span.rows) == 28  # monomials of total degree six in two variables
    rows = basis.features({"x": points[:50, 1] ** 2, "y": points[:50, 0]})
    gram = rows.T @ rows
    assert span.project(gram) == pytest.approx(gram, abs=1e-9)
    noise = public_normals(basis.size, basis.size, 9)
    noise = noise + noise.T
    assert np.linalg.norm(span.project(noise)) < 0.9 * np.linalg.norm(noise)


def test_higher_functions_continue_those_of_every_number():
    basis = make_basis((NUMBER, COLOUR), 4, False)
    beyond = higher_functions(basis)
    assert beyond is not None
    found = beyond.features(COLUMNS)
    assert found[:, 1] == pytest.approx(eval_legendre(5, COLUMNS["x"] / 2), abs=1e-12)
    weights = np.zeros(basis.size)
    weights[basis.orders == 4] = 2.0 / basis.scale[-1]
    variances = higher_variances(basis, weights, np.zeros((basis.size,) * 2))
    assert variances[0] == 0
    assert variances[1:] == pytest.approx(4.0 * (4 / np.arange(5, 11)) ** 3)
    assert higher_functions(make_basis((COLOUR,), 1, False)) is None
