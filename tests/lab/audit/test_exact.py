import numpy as np
import pytest

from counterveil.errors import ParameterError
from counterveil.privacy import Budget
from counterveil_lab.audit import Cloud, ExactTester, Line, Points, delta_at, largest_log_ratio

# Log densities are floats: the bound is lowered by a few units in the last place.
RATIO_TOLERANCE = 1e-9
# The integral is asked for 1e-5 of the claimed delta.
DELTA_TOLERANCE = 1e-5
PAIR = (0.0, 1.0)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 10.0])
def test_the_largest_log_ratio_of_laplace_is_epsilon(toys, rng, epsilon):
    found = largest_log_ratio(toys.Laplace(1 / epsilon), PAIR, Line(), rng).value
    assert found == pytest.approx(epsilon, rel=RATIO_TOLERANCE)
    assert found <= epsilon


@pytest.mark.parametrize("place", [0.0, -3e4, 1e8])
def test_the_largest_log_ratio_does_not_depend_on_where_the_statistic_lies(toys, rng, place):
    found = largest_log_ratio(toys.Laplace(0.5), (place, place + 0.25), Line(), rng).value
    assert found == pytest.approx(0.5, rel=1e-6)


def test_a_peak_narrower_than_the_first_grid_is_found_by_refinement(toys, rng):
    class Bump(toys.Laplace):
        def log_density(self, dataset, outputs):
            plain = super().log_density(0.0, outputs)
            return plain + dataset * np.exp(-(((outputs - 0.7312) / 0.05) ** 2))

    mechanism, line = Bump(1.0), Line(centres=(0.0,), scale=1.0)
    assert largest_log_ratio(mechanism, PAIR, line, rng).value == pytest.approx(1.0, rel=1e-9)


def test_a_bounded_support_that_moves_gives_an_infinite_ratio(rng):
    class Uniform:
        def sample(self, dataset, count, rng):
            return dataset + rng.uniform(-1, 1, count)

        def log_density(self, dataset, outputs):
            return np.where(np.abs(outputs - dataset) <= 1, -np.log(2), -np.inf)

    finding = ExactTester().examine(Uniform(), (0.0, 0.1), Budget(5), error=0.01, rng=rng)
    assert finding.found == np.inf
    assert finding.violated
    assert finding.to_dict()["found"] == "infinite"
    delta = delta_at(5.0, Uniform(), (0.0, 0.1), Line(), rng)
    assert delta.low == pytest.approx(0.05, abs=1e-9)


def test_gaussian_noise_is_never_pure(toys, rng):
    finding = ExactTester().examine(toys.Gaussian(10.0), PAIR, Budget(8), error=0.01, rng=rng)
    assert finding.violated


@pytest.mark.parametrize(("mu", "epsilon"), [(1, 1), (0.5, 1), (1, 4), (3, 2), (0.2, 1), (0.2, 0.1), (1, 6)])
def test_the_delta_of_gaussian_noise_matches_the_closed_form(toys, rng, mu, epsilon):
    expected = toys.gaussian_delta(mu, epsilon)
    delta = delta_at(epsilon, toys.Gaussian(1 / mu), PAIR, Line(), rng, DELTA_TOLERANCE * expected)
    assert delta.low <= expected * (1 + 1e-9)
    assert delta.high >= expected * (1 - 1e-9)
    assert delta.high - delta.low <= 1e-3 * expected
    assert delta.low == pytest.approx(expected, rel=DELTA_TOLERANCE)


def test_the_delta_of_a_discrete_law_is_its_sum(toys, rng):
    # Geometric noise, shift 1: only outputs at or below the first centre exceed e^epsilon q.
    claim, distribution = 0.6, toys.Geometric(1.0)
    a = np.exp(-1.0)
    expected = (1 - np.exp(claim - 1)) / (1 + a)
    delta = delta_at(claim, distribution, (0, 1), Points.integers(-60, 61), rng)
    assert delta.low == pytest.approx(expected, rel=1e-12)
    assert delta.high - delta.low < 1e-12


def test_points_left_out_count_as_uncertainty(toys, rng):
    claim = Budget(0.6, 0.3)
    tester = ExactTester(Points.integers(-3, 4))
    finding = tester.examine(toys.Geometric(1.0), (0, 1), claim, error=0.01, rng=rng)
    assert finding.accuracy > 0.01
    assert not finding.resolved


def test_a_cloud_nearly_reaches_the_epsilon_of_vector_noise(toys, rng):
    pair = (np.zeros(3), np.array([1.0, 0.0, 0.0]))
    found = largest_log_ratio(toys.L2Ball(1 / 2), pair, Cloud(), rng).value
    assert 0.99 * 2 <= found <= 2


def test_a_density_without_its_constant_is_refused(toys, rng):
    class Careless(toys.Laplace):
        def log_density(self, dataset, outputs):
            return -np.abs(outputs - dataset) / self.scale

    for claim in (Budget(1), Budget(1, 1e-6)):
        with pytest.raises(ParameterError, match="CV-A005"):
            ExactTester().examine(Careless(3.0), PAIR, claim, error=0.01, rng=rng)


def test_a_mechanism_without_a_density_is_refused(toys, rng):
    with pytest.raises(ParameterError, match="CV-A002"):
        ExactTester().examine(toys.Forgetful(1.0), PAIR, Budget(1), error=0.01, rng=rng)


def test_a_cloud_has_no_delta_profile(toys, rng):
    pair = (np.zeros(2), np.ones(2))
    with pytest.raises(ParameterError, match="CV-A007"):
        ExactTester(Cloud()).examine(toys.L2Ball(1.0), pair, Budget(1, 1e-6), error=0.01, rng=rng)


@pytest.mark.parametrize(
    "arguments", [{"scale": 1.0}, {"centres": (0.0,)}, {"centres": (0.0,), "scale": 0.0}]
)
def test_a_line_is_given_whole_or_not_at_all(arguments):
    with pytest.raises(ParameterError, match="CV-A001"):
        Line(**arguments)


def test_a_ratio_at_a_single_output_does_not_count(toys, rng):
    # As where a density jumps and x - centre rounds to the wrong side; one output has no probability.
    class Jumpy(toys.Laplace):
        def log_density(self, dataset, outputs):
            wrong = (outputs == 0.0) & (dataset == 0.0)
            return super().log_density(dataset, outputs) + 5.0 * wrong

    tester = ExactTester(Line(centres=PAIR, scale=1.0))
    finding = tester.examine(Jumpy(1.0), PAIR, Budget(1), error=0.01, rng=rng)
    assert finding.found == pytest.approx(1.0, rel=RATIO_TOLERANCE)
    assert not finding.violated


@pytest.mark.parametrize("place", [0.0, 0.3, 1e5 / 3])
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_a_density_with_jumps_is_tight(rng, place, epsilon):
    class Staircase:
        def sample(self, dataset, count, rng):
            return dataset + rng.laplace(0, 1 / epsilon, count)

        def log_density(self, dataset, outputs):
            # Falls by e^-epsilon at 0.3, 1.3, 2.3 and so on, on both sides.
            b = np.exp(-epsilon)
            steps = np.ceil(np.maximum(np.abs(outputs - dataset) - 0.3, 0.0))
            return np.log((1 - b) / (2 * (0.3 * (1 - b) + b))) - epsilon * steps

    finding = ExactTester().examine(Staircase(), (place, place + 1), Budget(epsilon), error=0.01, rng=rng)
    assert finding.found == pytest.approx(epsilon, rel=RATIO_TOLERANCE)
    assert not finding.violated
