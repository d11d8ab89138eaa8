import numpy as np
import pytest

from counterveil.numerics.propensity import _MOST, approach
from counterveil.numerics.propensity import _Binary as TwoArms


def problem(n=400, d=6, seed=0, size=1.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    treated = rng.random(n) < 1 / (1 + np.exp(-X @ (size * rng.normal(size=d))))
    return TwoArms(X, treated, 1e-3)


class Counting:
    """An objective that counts what is asked of it."""

    def __init__(self, inner):
        self.inner, self.gradients, self.hessians = inner, 0, 0

    def gradient(self, weights):
        self.gradients += 1
        return self.inner.gradient(weights)

    def hessian(self, weights):
        self.hessians += 1
        return self.inner.hessian(weights)

    def rough(self):
        return self

    def sample(self):
        return self


@pytest.mark.parametrize("size", [0.5, 2.0, 8.0])
def test_it_ends_where_the_gradient_vanishes_with_few_hessians(size):
    counting = Counting(problem(size=size))
    found = approach(counting, np.zeros(7), 1e-11)
    assert np.linalg.norm(counting.inner.gradient(found.weights)) <= 1e-11
    np.testing.assert_array_equal(found.gradient, counting.inner.gradient(found.weights))
    assert found.steps <= counting.gradients <= _MOST
    assert counting.hessians <= 4


def test_the_first_hessian_is_that_of_a_third_of_many_rows_and_of_all_few():
    weights = np.linspace(-1, 1, 7)
    many, few = problem(n=400), problem(n=40)
    third = TwoArms(many.X[::3], many.treated[::3], 1e-3)
    np.testing.assert_array_equal(many.sample().hessian(weights), third.hessian(weights))
    np.testing.assert_array_equal(few.sample().hessian(weights), few.hessian(weights))


def test_a_quadratic_takes_one_step():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(5, 5))
    hessian, place = root @ root.T + np.eye(5), rng.normal(size=5)

    class Quadratic:
        def gradient(self, weights):
            return hessian @ (weights - place)

        def hessian(self, weights):
            return hessian.copy()

        def rough(self):
            return self

        def sample(self):
            return self

    found = approach(Quadratic(), np.zeros(5), 1e-10)
    assert found.steps == 1
    np.testing.assert_allclose(found.weights, place, atol=1e-10)


def test_a_step_that_goes_too_far_is_cut():
    class Steep:
        """sqrt(1 + w^2), on which whole Newton steps from beyond 1 run away."""

        def gradient(self, weights):
            return weights / np.sqrt(1 + weights**2)

        def hessian(self, weights):
            return np.diag((1 + weights**2) ** -1.5)

        def rough(self):
            return self

        def sample(self):
            return self

    found = approach(Steep(), np.array([3.0]), 1e-9)
    assert abs(found.weights[0]) <= 1e-9


def test_it_gives_up_where_nothing_is_enough():
    counting = Counting(problem())
    approach(counting, np.zeros(7), 0.0)
    assert counting.gradients <= _MOST


class WithTwin(Counting):
    """An objective whose twin in single precision is counted too."""

    def __init__(self, inner, twin):
        super().__init__(inner)
        self.twin = twin if isinstance(twin, Counting) else Counting(twin)

    def rough(self):
        return self.twin


def test_most_of_the_way_is_gone_in_single_precision():
    inner = problem(size=2.0)
    twin = inner.rough()
    assert twin.kind is np.float32
    both = WithTwin(inner, twin)
    found = approach(both, np.zeros(7), 1e-11)
    assert np.linalg.norm(inner.gradient(found.weights)) <= 1e-11
    assert both.hessians == 0
    assert both.twin.hessians <= 4
    assert both.gradients <= 6 <= both.twin.gradients


def test_a_penalty_that_single_precision_would_not_show_keeps_double_precision():
    inner = problem()
    faint = TwoArms(inner.X, inner.treated, 1e-6)
    assert faint.rough() is faint


def test_a_twin_without_curvature_is_left_alone():
    inner = problem()

    class Flat(Counting):
        def hessian(self, weights):
            return np.zeros((7, 7))

    found = approach(WithTwin(inner, Flat(inner)), np.zeros(7), 1e-11)
    assert np.linalg.norm(inner.gradient(found.weights)) <= 1e-11
