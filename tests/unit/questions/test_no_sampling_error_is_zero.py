"""A released variance that came out below zero is not shown as no sampling error, by any question that releases one."""

import numpy as np
import pytest

import counterveil as cv

N, DRAWS = 240, 12
RNG = np.random.default_rng(4)
PEOPLE = {
    "t": np.arange(N) % 2,
    "arm": np.array(["a", "b", "c"])[np.arange(N) % 3],
    "x": RNG.random(N),
    "site": np.arange(N) // 12,
    # The same for everyone: half of all noisy variances are negative.
    "y": np.full(N, 0.3),
    "z": np.full(N, 0.6),
}
COVARIATES = {"x": cv.Range(0, 1)}
TWO = cv.Study("t", "y", (0, 1), COVARIATES, randomised=True)


def ate(method, protects="outcome", study=TWO, **more):
    return lambda seed: cv.ate(
        PEOPLE,
        study,
        protects=protects,
        epsilon=1,
        method=method,
        noise=cv.SeededNoise(seed),
        **more,
    )


def arms(seed):
    study = cv.Study("arm", "y", (0, 1), arms=("a", "b", "c"), reference="a", randomised=True)
    return cv.arms(PEOPLE, study, epsilon=1, protects="outcome", noise=cv.SeededNoise(seed))


def outcomes(seed):
    study = cv.Study("t", outcomes={"y": (0, 1), "z": (0, 1)}, randomised=True)
    return cv.outcomes(PEOPLE, study, epsilon=1, protects="outcome", noise=cv.SeededNoise(seed))


def groups(seed):
    return cv.groups(PEOPLE, TWO, by={"x": (0.5,)}, protects="outcome", epsilon=1, noise=cv.SeededNoise(seed))


ASKED = {
    "difference in means": ate("difference_in_means"),
    "weighting": ate("weighting"),
    "matching": ate("matching"),
    "ratio": ate("difference_in_means", measure="ratio"),
    "trial of records": ate("trial", "record"),
    "clusters": ate("difference_in_means", study=cv.Study("t", "y", (0, 1), cluster="site", randomised=True)),
    "arms": arms,
    "outcomes": outcomes,
    "groups": groups,
}


@pytest.mark.parametrize("name", ASKED)
def test_no_answer_shows_a_sampling_error_of_zero(name):
    shown = [effect.std_error.sampling for seed in range(DRAWS) for effect in ASKED[name](seed).table]
    assert min(shown) > 0


def test_some_of_the_variances_came_out_below_zero():
    """So that the test above asks something."""
    released = [ASKED["difference in means"](seed).uncertainty.variance for seed in range(DRAWS)]
    assert min(released) < 0
