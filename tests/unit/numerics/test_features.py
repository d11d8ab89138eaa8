"""Features in [-1, 1], public functions, exact totals and running sums, and shares of variance."""

import numpy as np
import pytest
from scipy.interpolate import BSpline
from scipy.special import eval_legendre

from counterveil.numerics.arm_totals import Arm, arm_totals
from counterveil.numerics.balance import balance, effective_size, overlap_counts
from counterveil.numerics.bases import Axis, Basis, constant_basis, make_basis
from counterveil.numerics.higher_orders import higher_functions, higher_variances
from counterveil.numerics.moment_span import MomentSpan
from counterveil.numerics.products import BLOCK, Column, FeatureMap, Standard, exact_gram, grid_bits, steps
from counterveil.numerics.propensity import partial_shares
from counterveil.numerics.public_choices import public_normals, public_uniforms
from counterveil.numerics.running_sums import FLAT, SUMS, Form, root_coefficients
from counterveil.rows.time_tables import TimeTables

COLUMNS = (
    Column("age", 20.0, 40.0, None, False),
    Column("sex", 0.0, 1.0, None, True),
    Column("place", 0.0, 1.0, 0, True),
    Column("place", 0.0, 1.0, 1, True),
)
VALUES = {
    "age": np.array([20.0, 40.0, 60.0]),
    "sex": np.array([0.0, 1.0, 1.0]),
    "place": np.array([0.0, 1.0, 2.0]),
}


def test_every_kind_of_covariate_and_products():
    features = FeatureMap(COLUMNS, ((0, 0), (0, 1), (1, 2)))
    found = features.block(VALUES, slice(0, 3))
    assert found[:, :4].tolist() == [[-1, -1, 1, -1], [0, 1, -1, 1], [1, 1, -1, -1]]
    assert found[:, 4].tolist() == [1, -1, 1]
    assert found[:, 5].tolist() == [1, 0, 1]
    assert found[:, 6].tolist() == [-1, -1, -1]
    assert features.two_valued.tolist() == [False, True, True, True, False, False, True]
    assert features.size == 7


def test_rows_are_clipped_and_shortened():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (500, 8))
    standard = Standard(np.zeros(8), np.full(8, 0.4), 2.0, 6.0)
    u = standard.rows(x)
    lengths = (u[:, 1:] ** 2).sum(axis=1)
    assert lengths.max() <= 6.0 * (1 + 2**-40)
    assert (u[:, 0] == 1).all()
    short = (np.clip(x / 0.4, -2, 2) ** 2).sum(axis=1) <= 6.0
    assert u[short, 1:] == pytest.approx(np.clip(x[short] / 0.4, -2, 2))
    assert 0 < short.sum() < 500


@pytest.mark.parametrize("largest", [1.0, 4.0, 21.0, 300.0])
def test_grams_are_exact_integers(largest):
    rng = np.random.default_rng(1)
    w = rng.uniform(-largest, largest, (3 * BLOCK // 2, 3))
    bits = grid_bits(largest)
    assert largest * 2**bits <= 2**20
    whole = steps(w, bits).astype(np.int64).astype(object)
    exact = whole.T @ whole
    assert exact_gram([w[:BLOCK], w[BLOCK:]], bits).tolist() == exact.tolist()
    assert (np.abs(steps(w, bits)) <= np.abs(w) * 2**bits).all()


KNOTS = (0.25, 0.5, 0.75)
NUMBER = Axis("x", "legendre", 4, -2.0, 4.0)
COLOUR = Axis("c", "labels", 3)
BASES_COLUMNS = {"x": np.linspace(-2, 2, 60), "c": np.arange(60) % 3.0, "s": np.linspace(0, 1, 60)}


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
    assert constant_basis().features(BASES_COLUMNS).shape == (60, 1)


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
    found = beyond.features(BASES_COLUMNS)
    assert found[:, 1] == pytest.approx(eval_legendre(5, BASES_COLUMNS["x"] / 2), abs=1e-12)
    weights = np.zeros(basis.size)
    weights[basis.orders == 4] = 2.0 / basis.scale[-1]
    variances = higher_variances(basis, weights, np.zeros((basis.size,) * 2))
    assert variances[0] == 0
    assert variances[1:] == pytest.approx(4.0 * (4 / np.arange(5, 11)) ** 3)
    assert higher_functions(make_basis((COLOUR,), 1, False)) is None


@pytest.mark.parametrize("n", [2, 7, 8191, 8192, 8193, 50_000])
def test_totals_equal_python_integers(n):
    rng = np.random.default_rng(n)
    treated = rng.random(n) < 0.4
    outcome = rng.integers(0, 2**24 + 1, n)
    arms = arm_totals(treated, outcome)
    for arm, chosen in ((arms.treated, treated), (arms.control, ~treated)):
        values = [int(y) for y in outcome[chosen]]
        assert arm == Arm(len(values), sum(values), sum(y * y for y in values))
    assert arms.count == n


def test_largest_values_do_not_overflow():
    n = 100_000
    arms = arm_totals(np.ones(n, dtype=bool), np.full(n, 2**24, dtype=np.int64))
    assert arms.treated.squares == n * 2**48
    assert arms.control == Arm(0, 0, 0)


def test_differences_and_ratios_are_those_of_the_textbook():
    rng = np.random.default_rng(1)
    X, treated = rng.normal(size=(500, 3)), rng.random(500) < 0.3
    found = balance(X, treated)
    one, zero = X[treated], X[~treated]
    scale = np.sqrt((one.var(axis=0, ddof=1) + zero.var(axis=0, ddof=1)) / 2)
    np.testing.assert_allclose(found.difference, (one.mean(axis=0) - zero.mean(axis=0)) / scale, rtol=1e-12)
    np.testing.assert_allclose(
        found.variance_ratio, one.var(axis=0, ddof=1) / zero.var(axis=0, ddof=1), rtol=1e-12
    )


def test_constant_columns_are_balanced_or_infinitely_apart():
    treated = np.array([True, True, False, False])
    X = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    found = balance(X, treated)
    assert found.difference.tolist() == [0.0, np.inf]
    assert found.variance_ratio.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("weights", "expected"), [([1, 1, 1, 1], (2, 2)), ([1, 0, 3, 1], (1, 1.6)), ([0, 0, 5, 0], (0, 1))]
)
def test_the_effective_size_counts_equal_weights_whole(weights, expected):
    treated = np.array([True, True, False, False])
    assert effective_size(treated, np.array(weights, float)) == pytest.approx(expected)


def test_overlap_counts_cover_every_score_once():
    treated = np.array([True, False, True, False, True, False])
    score = np.array([0.0, 0.5, 0.5, 1.0, -0.2, 1.3])
    one, zero = overlap_counts(treated, score, np.array([0.0, 0.5, 1.0]))
    assert one.tolist() == [2, 1]
    assert zero.tolist() == [0, 3]


def test_the_root_times_itself_adds_up():
    root = np.array([float(one) for one in root_coefficients(9)])
    assert np.convolve(root, root)[:9] == pytest.approx(np.ones(9))


@pytest.mark.parametrize("kind", [FLAT, SUMS])
def test_counts_come_back(kind):
    form, counts = Form(kind, 4), [3, 0, 5, 1, 2, 2, 0, 7, 4]
    numbers = np.array([[float(one) for one in TimeTables(form).numbers(counts)]])
    assert form.counts(numbers)[0] == pytest.approx(counts)


def test_running_sums_have_less_noise_than_those_of_counts():
    cells = 50
    form = Form(SUMS, cells)
    covariance = float(TimeTables(form).l2) ** 2 * form.inverse @ form.inverse.T
    sums = np.tril(np.ones((cells, cells)))
    spread = np.diag(sums @ covariance[:cells, :cells] @ sums.T)
    plain = float(TimeTables(Form(FLAT, cells)).l2) ** 2 * np.arange(1, cells + 1)
    assert spread.max() < plain.max() / 4


def by_regressions(columns, labels, treated):
    def left(parts):
        design = np.column_stack([np.ones(len(treated)), *parts])
        return float(np.sum((treated - design @ np.linalg.lstsq(design, treated, rcond=None)[0]) ** 2))

    expanded = [
        [column] if not count else [(column == code) * 1.0 for code in range(1, count)]
        for column, count in zip(columns, labels, strict=True)
    ]
    whole = left([part for parts in expanded for part in parts])
    without = [
        left([part for k, parts in enumerate(expanded) if k != j for part in parts])
        for j in range(len(labels))
    ]
    return [1 - whole / rest for rest in without]


def rows(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n) + 2000.0
    w = 0.7 * (x - 2000) + rng.standard_normal(n)
    site = rng.integers(0, 4, n).astype(float)
    treated = rng.random(n) < 1 / (1 + np.exp(-(0.9 * (x - 2000) - 0.4 * w + 0.5 * (site == 2))))
    return [x, w, site], [0, 0, 4], treated


def test_shares_are_those_of_regressions_with_and_without_each_covariate():
    columns, labels, treated = rows()
    expected = by_regressions(columns, labels, treated.astype(float))
    assert partial_shares(columns, labels, treated) == pytest.approx(expected, abs=1e-6)
    assert expected[0] > 0.05


def test_constants_and_repeated_columns_are_harmless():
    columns, labels, treated = rows()
    found = partial_shares([*columns, np.full(4000, 3.0), columns[0].copy()], [*labels, 0, 0], treated)
    assert found[3] == pytest.approx(0.0, abs=1e-6)
    # What another column holds already explains nothing beyond it.
    assert found[0] == pytest.approx(0.0, abs=1e-3)
    assert np.all((found >= 0) & (found <= 1))
