from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats
from tests.thinned import examples

from counterveil.errors import ParameterError
from counterveil.mechanisms import Grid, SeededNoise, StudentT
from counterveil.mechanisms.student import StudentDistribution
from counterveil.privacy import PureEvent

SETTINGS = [
    (1, "1/50", 4),
    (1, "1/10", 3),
    (1, "1/5", "9/2"),
    (5, "1/2", 3),
    (1, "1/2", "1/2"),
    (1, "1/200", 30),
    # The growth of the scale decides, which it does below one degree of freedom only.
    (1, "9/10", "1/2"),
]
ROUNDING = 1e-12


def largest_loss(mechanism, shrink=1):
    """Return the largest log-ratio over neighbours (f, S), (f', S') and outputs x; S = 1, f = 0."""
    g = float(mechanism.smoothness)
    sizes = np.concatenate([[0], np.logspace(-3, 6, 1500)])
    x = np.concatenate([-sizes[::-1], sizes])
    base = mechanism.distribution(Fraction(1, shrink))
    worst = -np.inf
    for change in np.linspace(-g, g, 11):
        other = mechanism.distribution(Fraction(np.exp(change)) / shrink)
        farthest = min(1.0, np.exp(change))  # each S bounds its own local sensitivity
        for shift in farthest * np.array([-1, -0.5, 0, 0.5, 1]):
            losses = base.log_density(x) - other.log_density(x - shift)
            worst = max(worst, float(losses.max()), float(-losses.min()))
    return worst


@pytest.mark.parametrize(("epsilon", "smoothness", "df"), SETTINGS)
def test_the_largest_loss_is_the_claim(epsilon, smoothness, df):
    mechanism = StudentT(epsilon, smoothness, df)
    assert 0.95 * epsilon <= largest_loss(mechanism) <= epsilon + ROUNDING


@pytest.mark.parametrize(("epsilon", "smoothness", "df"), SETTINGS[:3])
def test_a_third_of_the_noise_breaks_the_claim(epsilon, smoothness, df):
    assert largest_loss(StudentT(epsilon, smoothness, df), shrink=3) > 1.2 * epsilon


@pytest.mark.parametrize(("epsilon", "smoothness", "df"), SETTINGS)
def test_the_shift_is_larger_than_sliding_and_dilating_apart_would_allow(epsilon, smoothness, df):
    d, g = float(Fraction(df)), float(Fraction(smoothness))
    apart = (epsilon - max(1, d) * g) * 2 * np.sqrt(d) / (d + 1)
    assert StudentT(epsilon, smoothness, df).shift > apart


def test_the_quantile_is_proved_and_agrees_with_scipy():
    for df in (Fraction(1, 2), Fraction(3), Fraction(40)):
        distribution = StudentDistribution(df)
        for tail in (0.999, 0.5, 2.0**-10, 2.0**-50):
            with ctx.workprec(128):
                ball = distribution.tail_quantile(arb(tail))
            assert ball.rel_accuracy_bits() > 80
            assert float(ball.mid()) == pytest.approx(stats.t.isf(tail / 2, float(df)), rel=1e-8)


def test_a_tail_beyond_float64_still_has_a_quantile():
    with ctx.workprec(1500):
        ball = StudentDistribution(Fraction(3)).tail_quantile(arb((3, -1201)))
        # The tail is (2 * 6 sqrt(3) / (3 pi)) x^-3 to first order.
        leading = (arb(4) * arb(3).sqrt() / arb.pi() * arb(2) ** 1201 / 3) ** (arb(1) / 3)
    assert abs(float(ball / leading) - 1) < 1e-12


def test_a_tail_that_may_be_zero_is_left_open():
    assert not StudentDistribution(Fraction(3)).tail_quantile(arb((1, -64), (1, -64))).is_finite()


def test_draws_follow_the_law(assert_law):
    assert_law(StudentT(1, "1/10", 3).distribution(Fraction(3, 7)))


def test_the_fast_path_is_the_exact_path(assert_paths_agree):
    noise = StudentT(1, "1/10", 3).distribution(Fraction(1))
    assert_paths_agree(noise, examples(2_000, 10_000))
    assert_paths_agree(noise, 200, bits=46)


def test_the_table_keeps_its_bounds(assert_table_bounds):
    assert_table_bounds(StudentDistribution(Fraction(3)))


def test_releases_follow_the_law():
    mechanism, grid, source = StudentT(1, "1/10", 3), Grid(Fraction(1, 1024)), SeededNoise(8)
    released = [float(mechanism.release(Fraction(5), Fraction(2), grid, source)) - 5 for _ in range(2000)]
    distribution = mechanism.distribution(Fraction(2))
    for p in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert abs(np.mean(released <= distribution.quantile(p)) - p) < 4 * np.sqrt(p * (1 - p) / 2000)


def test_a_zero_sensitivity_releases_the_rounded_value():
    mechanism, grid = StudentT(1, "1/10", 3), Grid(Fraction(1, 10))
    assert mechanism.release(Fraction(1, 3), Fraction(0), grid, SeededNoise(1)) == Fraction(3, 10)


def test_moments_and_quantiles_are_those_of_the_closed_form():
    distribution = StudentT(1, "1/10", 3).distribution(Fraction(1))
    assert distribution.variance == pytest.approx(3 * float(distribution.scale) ** 2)
    assert distribution.quantile(0.975) == pytest.approx(float(distribution.scale) * stats.t.ppf(0.975, 3))
    assert np.allclose(
        distribution.log_density([0.0, 2.0]), stats.t.logpdf([0.0, 2.0], 3, scale=float(distribution.scale))
    )
    assert distribution.kinks(-3.0, 3.0, 1).size == 0
    assert StudentT(1, "1/10", 2).distribution(Fraction(1)).variance == np.inf


def test_the_event_and_the_facts():
    mechanism = StudentT(1, "1/10", 3)
    assert mechanism.event == PureEvent(Fraction(1))
    assert mechanism.to_dict() == {"mechanism": "student", "epsilon": "1", "smoothness": "1/10", "df": "3"}


@pytest.mark.parametrize(
    ("epsilon", "smoothness", "df", "code"),
    [
        (0, 1, 3, "CV-P101"),
        (1, 0, 3, "CV-P103"),
        (1, "1/3", 3, "CV-P103"),
        (1, 1, "1/2", "CV-P103"),
        (1, "1/10", 0, "CV-P104"),
        (1, "1/10", 10**6, "CV-P104"),
    ],
)
def test_parameters_out_of_range_are_refused(epsilon, smoothness, df, code):
    with pytest.raises(ParameterError) as refused:
        StudentT(epsilon, smoothness, df)
    assert refused.value.code == code
