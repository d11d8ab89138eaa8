"""Effects by formula, and the spellings and arguments that people bring along."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.data.study import ELSEWHERE

RNG = np.random.default_rng(0)
ROWS = {
    "age": RNG.uniform(20, 80, 300),
    "sex": RNG.choice(["f", "m"], 300),
    "my arm": np.arange(300) % 2,
    "died": RNG.integers(0, 2, 300),
}
RANGES = {"died": "binary", "age": (20, 80), "sex": {"f", "m"}}
WIDE = cv.Study(
    "my arm", "died", (0, 1), {"age": (20, 80), "sex": ["f", "m"], "score": (0, 10)}, missing=cv.drafting.Drop(),
    randomized=True,
)  # fmt: skip
ASKED = {"protects": "outcome", "epsilon": 1, "method": "weighting"}


@pytest.fixture
def codebook(tmp_path):
    path = tmp_path / "codebook.csv"
    lines = ["name,role,kind,low,high,labels", "died,,binary,,,", "age,,range,20,80,"]
    lines += ["sex,,categories,,,f|m", "my arm,treatment,,,,"]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(WIDE.to_toml(), encoding="utf-8")
    return path


@pytest.mark.parametrize("declared", ["study", "file", "ranges", "codebook", "entries"])
def test_a_formula_chooses_columns_of_whatever_declares_them(declared, codebook, file):
    entries = cv.drafting.read_codebook(codebook)
    known = {"study": WIDE, "file": file, "ranges": RANGES, "codebook": codebook, "entries": entries}[
        declared
    ]
    more = {"missing": cv.drafting.Drop(), "randomised": True} if known in (WIDE, file) else {}
    covariates = {"age": cv.Range(20, 80), "sex": cv.Categories(["f", "m"])}
    plain = cv.Study("my arm", "died", (0, 1), covariates, **more)
    found = cv.ate(
        "died ~ `my arm` | age + sex", ROWS, known, estimand="att", noise=cv.SeededNoise(1), **ASKED
    )
    assert found.estimate == cv.ate(ROWS, plain, estimand="ATT", noise=cv.SeededNoise(1), **ASKED).estimate
    groups = cv.groups("died ~ `my arm` | sex + age", ROWS, study=known, by="sex", **ASKED)
    assert [one.name for one in groups.table] == ["sex=f", "sex=m"]


def test_a_formula_of_a_trial_says_so():
    asked = {"protects": "record", "epsilon": 4, "noise": cv.SeededNoise(1)}
    found = cv.ate("died ~ my arm", ROWS, RANGES, randomized=True, **asked)
    assert found.interval_target is None
    with pytest.raises(cv.CounterveilError, match="CV-P028"):
        cv.ate("died ~ my arm", ROWS, WIDE, randomized=True, **asked)


def test_what_was_declared_of_other_columns_is_left_out():
    found = cv.Study.from_formula("died ~ my arm | age", WIDE)
    assert set(found.missing) == {"died", "my arm", "age"}
    assert found.randomised is True
    assert cv.Study.from_formula("died ~ my arm | .", WIDE) == WIDE
    arms = cv.Study.from_formula(
        "died ~ dose", {"died": (0, 1), "dose": ["none", "low", "high"]}, randomised=True
    )
    assert (arms.arms, arms.reference) == (("none", "low", "high"), "none")
    several = cv.Study(
        "t", outcomes={"y": (0, 1), "z": (0, 2)}, baseline={"z": "z0"}, missing=cv.drafting.Drop()
    )
    one = cv.Study.from_formula("z ~ t", several)
    assert (one.outcome, float(one.outcome_range[1]), set(one.missing)) == ("z", 2.0, {"t", "z"})


@pytest.mark.parametrize(
    "formula",
    ["died", "died ~ `my arm` | age +", "died + age ~ `my arm`", "died ~ `my arm` | age + age", "died ~ arm", 3,
     "died ~ `my arm` | weight", "age ~ `my arm`", "died ~ `my arm` | age * sex", "died ~ `my arm` |"],
)  # fmt: skip
def test_other_formulas_are_refused_before_a_row_is_read(formula):
    with pytest.raises(cv.CounterveilError, match="CV-S150"):
        cv.ate(formula, None, WIDE, **ASKED)


@pytest.mark.parametrize("name", ["caliper", "n_folds", "ml_g", "cov_type", "duration_col", "seed"])
def test_arguments_of_other_packages_are_named_as_they_are_here(name):
    with pytest.raises(cv.CounterveilError, match="CV-P028") as error:
        cv.survival(None, WIDE, **{name: 1})
    assert ELSEWHERE[name] in error.value.fix
    with pytest.raises(cv.CounterveilError, match="CV-P028"):
        cv.Study("t", "y", (0, 1), **{name: 1})


def test_arguments_that_are_misspelt_or_lacking_are_named():
    with cv.Session(ROWS, cv.Study.from_formula("died ~ my arm", WIDE), budget=cv.Budget(1)) as session:
        for ask in (session.ate, lambda **given: cv.ate(ROWS, WIDE, **given)):
            with pytest.raises(cv.CounterveilError, match=r"CV-P028.*'epsilom'"):
                ask(protects="outcome", epsilom=1)
            with pytest.raises(cv.CounterveilError, match="CV-P028") as error:
                ask(protects="outcome")
            assert error.value.expected == "epsilon="
    with pytest.raises(cv.CounterveilError, match="here it is called 'matching'"):
        cv.ate(ROWS, WIDE, protects="outcome", epsilon=1, method="nearest")
