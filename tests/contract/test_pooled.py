"""Contracts of averages over sites: weights, variances and noise worked out from the sites' own results."""

import numpy as np
import pytest
from scipy.stats import chi2
from scipy.stats import t as student
from tests.contract.trials import ask, on_grid, people, study

import counterveil as cv

SIZES = {"north": 900, "south": 500, "west": 300}


@pytest.fixture(scope="module", params=["much noise", "little noise, unequal variances"])
def sites(request):
    """Return results of three sites; with little noise their variances differ by more than it explains."""
    little = request.param != "much noise"
    found = {}
    for place, (name, size) in enumerate(SIZES.items()):
        data = people(size, 40 + place, confounded=False)
        if little:
            data = data | {"y": on_grid(1 + (1.0, 0.4, 1.5)[place] * (data["y"] - 1))}
        more = {"epsilon": 50 if little else 2, "mechanism": "laplace", "seed": place}
        more |= {"settings": cv.settings.DifferenceInMeans(variance_share="1/5")} if little else {}
        found[name] = ask(data, study(randomised=True), "difference_in_means", "outcome", **more)
    return found


def parts(sites):
    """Return estimates, sampling variances inside their bounds, and variances of noise."""
    known = [one.uncertainty for one in sites.values()]
    at, caps = np.array([(max(one.variance, 0), one.variance_cap) for one in known]).T
    scale = np.array([(one.variance_noise.variance / 2) ** 0.5 for one in known])
    # The median of Laplace's distribution around the released variance, from 0 on.
    sampling = np.minimum(at - scale * np.log(1 - np.exp(-at / scale) / 2), caps)
    return (
        np.array([one.estimate for one in sites.values()]),
        sampling,
        np.array([one.noise.variance for one in known]),
    )


def common_fields(found, weights, sites):
    estimates, sampling, noise = parts(sites)
    w = np.array(weights)
    assert [one.weight for one in found.sites] == pytest.approx(list(w))
    assert found.estimate == pytest.approx(w @ estimates)
    # The pooled variance has less noise than its parts, so that less is added to it.
    released = np.sqrt(w**2 @ [one.uncertainty.variance for one in sites.values()])
    assert released <= found.std_error.sampling <= np.sqrt(w**2 @ sampling) * (1 + 1e-6)
    assert found.std_error.sampling == pytest.approx(released, rel=1e-3)
    assert found.std_error.noise == pytest.approx(np.sqrt(w**2 @ noise))
    assert found.uncertainty.noise.variance == pytest.approx(w**2 @ noise)
    assert found.uncertainty.bias == 0
    # Sites hold different people: the most that one of them spends.
    assert found.spent.epsilon == next(iter(sites.values())).spent.epsilon


def test_by_size(sites):
    weights = np.array(list(SIZES.values())) / 1700
    found = cv.pool(sites, method="all")
    common_fields(found, weights, sites)
    _estimates, _sampling, _noise = parts(sites)
    together = found.uncertainty._together(0.05)
    assert together.variance == pytest.approx(
        weights**2 @ [one.uncertainty.variance for one in sites.values()]
    )
    assert together.variance_cap == pytest.approx(
        weights**2 @ [one.uncertainty.variance_cap for one in sites.values()]
    )
    own = [one.uncertainty.variance_noise.variance for one in sites.values()]
    assert together.variance_noise.variance == pytest.approx(weights**4 @ own)


def test_largest(sites):
    common_fields(cv.pool(sites, method="largest"), [1, 0, 0], sites)


def steadied(sites):
    """Return sampling variances drawn together: per person, weighted by what their noise leaves of differences."""
    sizes = np.array(list(SIZES.values()), dtype=float)
    known = [one.uncertainty for one in sites.values()]
    each = sizes * [one.variance for one in known]
    noise = sizes**2 * [one.variance_noise.variance for one in known]
    tau = paule_mandel(each, noise)
    precision = 1 / (noise + tau)
    centre = precision @ each / precision.sum()
    kept = tau * precision
    drawn = np.maximum(centre + kept * (each - centre), 0)
    return np.minimum((drawn + np.sqrt(kept * noise)) / sizes, [one.variance_cap for one in known])


def paule_mandel(estimates, variances):
    low, high = 0.0, 10 * estimates.var() + 1e-9

    def excess(tau):
        w = 1 / (variances + tau)
        return w @ (estimates - w @ estimates / w.sum()) ** 2 - (len(estimates) - 1)

    if excess(0) <= 0:
        return 0.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def test_inverse_variances(sites):
    _, _, noise = parts(sites)
    weights = 1 / (steadied(sites) + noise)
    common_fields(cv.pool(sites, method="ivw"), weights / weights.sum(), sites)


def test_subset_of_least_variance(sites):
    _, _, noise = parts(sites)
    sizes, variances = np.array(list(SIZES.values()), dtype=float), steadied(sites) + noise
    best = None
    for chosen in range(1, 8):
        inside = np.array([chosen >> k & 1 for k in range(3)], dtype=bool)
        value = (sizes[inside] ** 2 @ variances[inside]) / sizes[inside].sum() ** 2
        if best is None or value < best[0]:
            best = value, np.where(inside, sizes, 0) / sizes[inside].sum()
    common_fields(cv.pool(sites, method="mvagg"), best[1], sites)


def test_sites_that_differ(sites):
    found = cv.pool(sites, method="random_effects")
    estimates, sampling, noise = parts(sites)
    variances = sampling + noise
    w = 1 / variances
    q = w @ (estimates - w @ estimates / w.sum()) ** 2
    said = found.heterogeneity
    assert (said.q, said.df) == (pytest.approx(q), 2)
    assert said.p_value == pytest.approx(chi2.sf(q, 2))
    assert said.i_squared == pytest.approx(max(0, 1 - 2 / q))
    tau = paule_mandel(estimates, variances)
    assert said.tau_squared == pytest.approx(tau, abs=1e-9)
    weights = np.array([one.weight for one in found.sites])
    inside = weights > 0
    assert weights[inside] == pytest.approx(1 / inside.sum())
    assert inside.sum() >= 2
    assert found.estimate == pytest.approx(weights @ estimates)
    between = estimates[inside].std(ddof=1) / np.sqrt(inside.sum())
    by_sites = student.ppf(0.975, inside.sum() - 1) * between
    assert found.uncertainty.between_sites.half_width(0.95) == pytest.approx(by_sites)
    assert found.uncertainty.half_width(0.95) >= by_sites
    own = found.std_error.sampling**2
    assert own <= weights**2 @ sampling * (1 + 1e-6)
    total = own + weights**2 @ noise + tau * (weights @ weights)
    assert found.std_error.total == pytest.approx(max(np.sqrt(total), between))
