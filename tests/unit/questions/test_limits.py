"""What an interval may say: ends at the declared range, no sampling error of zero, everything left to the value."""

from dataclasses import replace

import numpy as np
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.inference.estimates import truncate
from counterveil.inference.noisy_ratio import NoisyRatio
from counterveil.privacy.caveats import Target
from counterveil.session import SeededNoise

# Outcomes of width 2; half of the people are treated.
TRIAL = cv.Study(
    cv.Treatment("t", control=0),
    cv.Outcome("y", (1, 3)),
    {"g": cv.Categories(["a", "b"])},
    assignment=cv.Trial(),
)
TRUTH, FEW = 0.5, "0.05"


def people(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(rows) % 2
    y = 1.5 + rng.random(rows) * 0.5 + TRUTH * t
    return {"t": t, "y": y, "g": np.array(["a", "b"])[np.arange(rows) // 2 % 2]}


def ask(seed=0, epsilon=FEW, **extra):
    words = {"protects": "outcome", "method": "difference_in_means", "noise": SeededNoise(seed)} | extra
    return cv.ate(people(seed=seed), TRIAL, epsilon=epsilon, **words)


@pytest.mark.parametrize(
    ("ends", "cut"),
    [((-3, 1), (-2, 1)), ((-1, 3), (-1, 2)), ((-9, 9), (-2, 2)), ((3, 4), (2, 2)), ((-4, -3), (-2, -2))],
)
def test_what_lies_beyond_the_limits_is_cut_and_nothing_is_reversed(ends, cut):
    assert truncate(ends, (-2, 2)) == cut
    assert truncate(ends, None) == ends


def test_intervals_are_cut_and_cover_no_less_while_what_was_released_stays():
    shorter, beyond = 0, 0
    for seed in range(60):
        found = ask(seed)
        (low, high), (least, most) = found.interval(), found.untruncated_interval()
        assert -2 <= low <= high <= 2
        assert (low <= TRUTH <= high) == (least <= TRUTH <= most)
        assert (low <= 0 <= high) == (found.p_value >= 0.05)
        assert found.estimate == pytest.approx((least + most) / 2)
        assert most - least == pytest.approx(2 * found.uncertainty.half_width(0.95))
        shorter += high - low < most - least
        beyond += abs(found.estimate) > 2
        again = cv.results.Result.from_dict(found.to_dict())
        assert again == found
        assert again.interval() == (low, high)
        (row,) = found.tidy()
        assert (row["conf_low"], row["conf_high"]) == (low, high)
    assert shorter > 40
    assert beyond  # the estimate itself is not moved


def test_intervals_for_something_else_are_left_as_they_are():
    found = replace(ask(), interval_target=Target.KERNEL_REGRESSION)
    assert found.interval() == found.untruncated_interval()


def test_pooling_uses_what_was_released():
    sites = [ask(seed) for seed in range(4)]
    for method in ("mvagg", "ivw", "all", "random_effects"):
        pooled = cv.pool(sites, method=method)
        plain = cv.pool([replace(site, limits=None) for site in sites], method=method)
        assert (pooled.estimate, pooled.std_error) == (plain.estimate, plain.std_error)
        assert pooled.untruncated_interval() == plain.interval()
        assert pooled.interval() == truncate(plain.interval(), (-2, 2))
        assert plain.limits is None
    with pytest.raises(cv.CounterveilError, match="CV-P502"):
        cv.pool([replace(sites[0], limits=(1.0, -1.0)), *sites[1:]])


@pytest.mark.parametrize("method", ["difference_in_means", "weighting"])
def test_effects_of_groups_and_arms_are_cut_too(method):
    groups = cv.groups(
        people(400), TRIAL, by="g", protects="outcome", epsilon=FEW, method=method, noise=SeededNoise(2)
    )
    assert cv.results.GroupsResult.from_dict(groups.to_dict()) == groups
    ends = [*groups.interval().values(), *groups.interval(simultaneous=True).values()]
    assert max(abs(end) for pair in ends for end in pair) == 2
    data = people(200) | {"t": np.arange(200) % 3}
    study = cv.Study(
        cv.Treatment("t", arms=(0, 1, 2), reference=0),
        cv.Outcome("y", (1, 3)),
        {"g": cv.Categories(["a", "b"])},
    )
    arms = cv.arms(data, study, protects="outcome", epsilon=FEW, method=method, noise=SeededNoise(2))
    assert cv.results.ArmsResult.from_dict(arms.to_dict()) == arms
    for mean in arms.means:
        assert mean.interval() == truncate(replace(mean.known, limits=None).interval(mean.level), (1, 3))
    ends = [*arms.interval().values(), *arms.interval(simultaneous=True).values()]
    assert max(abs(end) for pair in ends for end in pair) == 2


def test_noisy_ratios_beyond_what_is_possible_are_the_nearer_end():
    for sign in (-1, 1):
        found = NoisyRatio(sign * 300.0, 100.0, 0.01, 0.1, 0.1, limit=2.0)
        assert found.interval(0.95) == (2.0 * sign, 2.0 * sign)


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
TWO = cv.Study("t", cv.Outcome("y", (0, 1)), COVARIATES, assignment=cv.Trial())


def ate(method, protects="outcome", study=TWO, **more):
    words = {"protects": protects, "epsilon": 1, "method": method} | more
    return lambda seed: cv.ate(PEOPLE, study, noise=cv.SeededNoise(seed), **words)


def arms(seed):
    study = cv.Study(
        cv.Treatment("arm", arms=("a", "b", "c"), reference="a"),
        cv.Outcome("y", (0, 1)),
        assignment=cv.Trial(),
    )
    return cv.arms(PEOPLE, study, epsilon=1, protects="outcome", noise=cv.SeededNoise(seed))


def outcomes(seed):
    study = cv.Study("t", outcome={"y": (0, 1), "z": (0, 1)}, assignment=cv.Trial())
    return cv.outcomes(PEOPLE, study, epsilon=1, protects="outcome", noise=cv.SeededNoise(seed))


def groups(seed):
    return cv.groups(PEOPLE, TWO, by={"x": (0.5,)}, protects="outcome", epsilon=1, noise=cv.SeededNoise(seed))


ASKED = {
    "difference in means": ate("difference_in_means"),
    "weighting": ate("weighting"),
    "matching": ate("matching"),
    "ratio": ate("difference_in_means", measure="ratio"),
    "trial of records": ate("trial", "record"),
    "clusters": ate(
        "difference_in_means",
        study=cv.Study(
            "t",
            cv.Outcome("y", (0, 1)),
            assignment=cv.Trial(),
            clusters="site",
        ),
    ),
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


ALONE = cv.settings.DifferenceInMeans(variance_share=0)
ALONE_RNG = np.random.default_rng(5)
T = np.tile([0, 0, 1, 0, 1], 24)
DATA = {
    "t": T,
    "y": np.round(ALONE_RNG.uniform(-3, 5, 120), 3),
    "z": np.round(ALONE_RNG.uniform(0, 2, 120), 3),
    "before": ALONE_RNG.uniform(-3, 5, 120),
    "earlier": ALONE_RNG.uniform(-3, 5, 120),
    "site": np.where(np.arange(120) % 2, "a", "b"),
    "school": np.arange(120) // 5,
    "x": ALONE_RNG.normal(size=120),
}
ALONE_TRIAL = {"control": 0, "randomised": True}
ARMS = {"arms": (0, 1, 2), "reference": 0, "randomised": True}
ALONE_ASKED = {"protects": "outcome", "epsilon": 8, "method": "difference_in_means"}


def alone_ask(question, study, settings=ALONE, **more):
    return question(DATA, study, **ALONE_ASKED, settings=settings, noise=cv.SeededNoise(2), **more)


@pytest.mark.parametrize(
    ("question", "study", "more"),
    [
        (
            cv.groups,
            study_of("t", "y", (-3, 5), {"site": cv.Categories(("a", "b"))}, **ALONE_TRIAL),
            {"by": "site"},
        ),
        (cv.outcomes, study_of("t", outcomes={"y": (-3, 5), "z": (0, 2)}, **ALONE_TRIAL), {}),
        (cv.event_study, study_of("t", "y", (-3, 5), before=("earlier", "before"), **ALONE_TRIAL), {}),
    ],
)
def test_questions_by_means_spend_everything_on_the_values(question, study, more):
    usual, alone = (alone_ask(question, study, settings, **more) for settings in (None, ALONE))
    for one, other in zip(usual.table, alone.table, strict=True):
        assert other.std_error.noise < one.std_error.noise
        known = other.known.uncertainty
        assert known.variance_noise is None
        assert known.variance == known.variance_cap


def test_a_clustered_error_is_then_the_largest():
    study = study_of("t", "y", (-3, 5), cluster="school", **ALONE_TRIAL)
    known = alone_ask(cv.ate, study).uncertainty
    assert known.sd_noise is None
    # Every school may lie at one end of the range or at the other.
    weights = np.where(T == 1, 1 / T.sum(), 1 / (120 - T.sum()))
    own = np.bincount(DATA["school"], weights) / 2
    assert known.variance == known.variance_cap == pytest.approx(64 * float(own @ own))
    assert known.noise.epsilon == 8


@pytest.mark.parametrize(
    ("question", "study", "code"),
    [
        (cv.arms, study_of("t", "y", (-3, 5), **ARMS), "CV-P019"),
        (cv.outcomes, study_of("t", outcomes={"y": (-3, 5), "z": (0, 2)}, **ARMS), "CV-P019"),
        (
            cv.ate,
            study_of("t", "y", (0, 5), denominator="z", denominator_range=(1, 2), **ALONE_TRIAL),
            "CV-P673",
        ),
    ],
)
def test_questions_without_such_an_interval_refuse_it(question, study, code):
    with pytest.raises(CounterveilError, match=code):
        alone_ask(question, study)
