"""Effects of groups of people in clusters: each group is a study of its own, its error by cluster; refusals."""

import numpy as np
import pytest

import counterveil as cv

PLENTY = {"epsilon": 1e5, "noise": cv.SeededNoise(1)}


def pupils(schools=24, size=30, seed=0):
    rng = np.random.default_rng(seed)
    school = np.repeat(np.arange(schools), rng.integers(size // 2, 2 * size, schools))
    sex = rng.integers(0, 2, len(school))
    shared = rng.normal(0, 0.1, schools)[school]
    y = np.clip(0.4 + 0.1 * (school % 2) + shared + rng.normal(0, 0.1, len(school)), 0, 1)
    return {"arm": school % 2, "y": y, "sex": sex, "school": school, "x": rng.random(len(school))}


def study(**more):
    declared = {"covariates": {"sex": cv.Categories([0, 1])}, "cluster": "school", "randomised": True}
    return cv.Study("arm", "y", (0, 1), control=0, **declared | {"assigned_by_cluster": True} | more)


def refused(declared, question="groups", **asked):
    given = {"by": "sex"} if question == "groups" else {}
    with pytest.raises(cv.CounterveilError) as found:
        getattr(cv, question)(pupils(), declared, epsilon=1, **given, **asked)
    return found.value.code


@pytest.mark.parametrize(
    ("protects", "method"), [("outcome", "difference_in_means"), ("outcome", "weighting"), ("record", "auto")]
)
def test_a_group_that_cuts_through_clusters_is_a_study_of_its_rows(protects, method):
    data = pupils()
    x = {"x": cv.Range(0, 1)} if method == "weighting" else {}
    asked = {"protects": protects, "method": method} | PLENTY
    declared = study(covariates={"sex": cv.Categories([0, 1]), **x})
    result = cv.groups(data, declared, by="sex", **asked)
    for sex, found in enumerate(result.groups):
        own = {name: values[data["sex"] == sex] for name, values in data.items()}
        alone = cv.ate(own, study(covariates=x), **asked)
        assert found.estimate == pytest.approx(alone.estimate, abs=1e-4)
        assert found.interval() == pytest.approx(alone.interval(), abs=1e-3)
        assert found.size == pytest.approx(len(own["y"]), abs=1)
    assert "standard errors clustered by school" in result.method
    assert cv.results.GroupsResult.from_dict(result.to_dict()).interval() == result.interval()


def test_an_outcome_moves_the_numbers_of_its_own_group_alone():
    data, asked = pupils(), {"protects": "outcome", "epsilon": 1}
    moved = dict(data, y=np.where(np.arange(len(data["y"])) == 0, 1 - data["y"], data["y"]))
    one, two = (
        cv.groups(each, study(), by="sex", noise=cv.SeededNoise(3), **asked).groups for each in (data, moved)
    )
    own = int(data["sex"][0])
    assert one[own].estimate != two[own].estimate
    assert one[1 - own].estimate == two[1 - own].estimate
    assert one[1 - own].interval() == two[1 - own].interval()


def test_what_has_no_interval_by_cluster_is_refused_first():
    few = study(covariates={"place": cv.Range(0, 24)})
    assert refused(study(), protects="record", method="adjusted") == "CV-S026"
    assert refused(study(), protects="treatment and outcome") == "CV-P018"
    assert refused(study(), protects="record", settings=cv.settings.Groups(clip=1)) == "CV-P019"
    assert refused(study(), "policy_value", policy=cv.Policy.where(sex=[1]), protects="outcome") == "CV-S026"
    data = pupils() | {"place": pupils()["school"]}
    with pytest.raises(cv.CounterveilError, match="CV-S130"):
        cv.groups(data, few, by={"place": tuple(range(2, 24, 2))}, protects="outcome", epsilon=1)
