"""The front door: trials, formulas and spellings, changes since before, and the level of treatment and outcome."""

import numpy as np
import pandas as pd
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data.unknown_arguments import ELSEWHERE
from counterveil.errors import BudgetError, CounterveilError, ParameterError, StudyError
from counterveil.privacy import Estimand, Proof
from counterveil.privacy.caveats import REPLACED_BY_TRENDS, ParallelTrends


def trial(n=4000, seed=0, share=0.5):
    rng = np.random.default_rng(seed)
    t = (rng.random(n) < share).astype(int)
    return {"arm": t, "y": rng.normal(50 + 5 * t, 10, n)}


def study(**extra):
    return study_of(treatment="arm", outcome="y", outcome_range=(0, 100), **({"randomised": True} | extra))


def test_noise_has_at_most_half_the_variance_of_two_draws():
    data = trial(n=1000)
    data["arm"] = np.tile([0, 1], 500)
    settings = cv.settings.DifferenceInMeans(variance_share="1/10")
    words = {"protects": "outcome", "method": "difference_in_means", "settings": settings}
    for epsilon in (0.25, 1, 4):
        result = cv.ate(data, study(), epsilon=epsilon, mechanism="laplace", noise=cv.SeededNoise(1), **words)
        two_draws = 2 * 2 * (100 / 500 / (epsilon * 0.9)) ** 2
        assert result.uncertainty.noise.variance <= two_draws / 2 * (1 + 1e-12)
        best = cv.ate(data, study(), epsilon=epsilon, noise=cv.SeededNoise(1), **words)
        assert best.uncertainty.noise.variance <= result.uncertainty.noise.variance * 1.05


def test_real_noise_has_a_proof_and_differs_between_calls():
    data = trial(n=200)
    first, second = (cv.ate(data, study(), protects="outcome", epsilon=1) for _ in range(2))
    assert first.guarantee.proof is Proof.FINITE_SAMPLE
    assert first.guarantee.warning is None
    assert first.estimate != second.estimate


def test_session_spends_one_budget_over_several_questions():
    with cv.Session(trial(n=300), study(), budget=cv.Budget(epsilon=1)) as session:
        session.ate(protects="outcome", epsilon="0.6")
        assert session.remaining().epsilon == pytest.approx(0.4)
        with pytest.raises(BudgetError):
            session.ate(protects="outcome", epsilon="0.5")
        session.ate(protects="record", epsilon="0.4")
        assert session.remaining().epsilon == 0


def test_confounding_is_said_where_no_trial_is_declared():
    data = trial(n=300)
    with pytest.raises(StudyError, match="CV-S050"):
        cv.ate(data, study(randomised=None), protects="outcome", epsilon=1)
    named = cv.ate(data, study(randomised=None), protects="outcome", epsilon=1, method="difference_in_means")
    assert "CONFOUNDING" in str(named)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"protects": "label"}, "CV-P001"),
        ({"estimand": "LATE"}, "CV-P002"),
        ({"epsilon": "much"}, "CV-P003"),
        ({"epsilon": 0}, "CV-P004"),
        ({"delta": 1}, "CV-P005"),
        ({"mechanism": "cauchy"}, "CV-P010"),
        ({"mechanism": "gaussian"}, "CV-P011"),
        ({"noise": np.random.default_rng(1)}, "CV-P010"),
        ({"level": 95}, "CV-P015"),
        ({"method": "magic"}, "CV-P016"),
    ],
)
def test_wrong_arguments_are_refused_before_the_data_are_looked_at(wrong, code):
    with pytest.raises(ParameterError, match=code):
        cv.ate("no such file.csv", study(), **({"protects": "outcome", "epsilon": 1} | wrong))


RNG = np.random.default_rng(0)
ROWS = {
    "age": RNG.uniform(20, 80, 300),
    "sex": RNG.choice(["f", "m"], 300),
    "my arm": np.arange(300) % 2,
    "died": RNG.integers(0, 2, 300),
}
RANGES = {"died": "binary", "age": (20, 80), "sex": {"f", "m"}}
WIDE = cv.Study(
    "my arm",
    cv.Outcome("died", (0, 1)),
    {"age": (20, 80), "sex": ["f", "m"], "score": (0, 10)},
    assignment=cv.Trial(),
    missing=cv.Drop(),
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
    more = {"missing": cv.Drop(), "randomised": True} if known in (WIDE, file) else {}
    covariates = {"age": cv.Range(20, 80), "sex": cv.Categories(["f", "m"])}
    plain = study_of("my arm", "died", (0, 1), covariates, **more)
    found = cv.ate(
        "died ~ `my arm` | age + sex", ROWS, known, estimand="att", noise=cv.SeededNoise(1), **ASKED
    )
    assert found.estimate == cv.ate(ROWS, plain, estimand="ATT", noise=cv.SeededNoise(1), **ASKED).estimate
    groups = cv.groups("died ~ `my arm` | sex + age", ROWS, study=known, by="sex", **ASKED)
    assert [one.name for one in groups.table] == ["sex=f", "sex=m"]


def test_a_formula_of_a_trial_says_so():
    asked = {"protects": "record", "epsilon": 4, "noise": cv.SeededNoise(1)}
    found = cv.ate("died ~ my arm", ROWS, RANGES, assignment=cv.Trial(), **asked)
    assert found.interval_target is None
    with pytest.raises(cv.CounterveilError, match="CV-P028"):
        cv.ate("died ~ my arm", ROWS, WIDE, assignment=cv.Trial(), **asked)


def test_what_was_declared_of_other_columns_is_left_out():
    found = cv.Study.from_formula("died ~ my arm | age", WIDE)
    assert set(found.missing) == {"died", "my arm", "age"}
    assert found.randomised is True
    assert cv.Study.from_formula("died ~ my arm | .", WIDE) == WIDE
    arms = cv.Study.from_formula(
        "died ~ dose",
        {"died": (0, 1), "dose": ["none", "low", "high"]},
        assignment=cv.Trial(),
    )
    assert (arms.arms, arms.reference) == (("none", "low", "high"), "none")
    several = cv.Study(
        "t",
        outcome=cv.Outcomes({"y": (0, 1), "z": (0, 2)}, baseline={"z": "z0"}),
        missing=cv.Drop(),
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
        cv.Study("t", cv.Outcome("y", (0, 1)), **{name: 1})


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


SEEDED = {"noise": cv.SeededNoise(1)}


def people(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    x, own = rng.uniform(0, 1, n), rng.normal(0, 1, n)
    t = (rng.uniform(size=n) < 0.3 + 0.4 * x).astype(int)
    y0 = own + t + rng.normal(0, 0.4, n)
    return {"t": t, "x": x, "y0": y0, "y": own + t + 0.5 * x + 0.8 * t + rng.normal(0, 0.4, n)}


def change_study(covariates=True, **more):
    known = {"x": cv.Range(0, 1)} if covariates else {}
    return study_of("t", "y", (-4, 7), known, control=0, before="y0", change_range=(-4, 5), **more)


@pytest.mark.parametrize("protects", ["outcome", "record"])
@pytest.mark.parametrize("covariates", [True, False])
def test_auto_answers_for_the_treated_under_parallel_trends(protects, covariates):
    found = cv.ate(people(), change_study(covariates), protects=protects, epsilon=4, **SEEDED)
    assert found.estimand is Estimand.ATT
    assert found.interval_target is None
    low, high = found.interval(0.999)
    assert low < (0.8 if covariates else 0.85) < high
    assert found.not_covered[0] == ParallelTrends("y", adjusted=covariates, of_untreated=False)
    assert not REPLACED_BY_TRENDS & {*found.not_covered}
    assert found.method.startswith("difference in differences: ")
    assert "data/outcomes.proof.md" in found.guarantee.pages


def test_a_trial_assumes_no_trends():
    found = cv.ate(people(), change_study(randomised=True), protects="outcome", epsilon=1, **SEEDED)
    assert found.estimand is Estimand.ATE
    assert not any(isinstance(one, ParallelTrends) for one in found.not_covered)


def test_rows_in_periods_give_the_same_answer():
    wide = people()
    n = len(wide["t"])
    rows = pd.DataFrame({"id": np.tile(np.arange(n), 2), "year": np.repeat([2001, 2002], n)})
    rows["t"] = wide["t"][rows["id"]] * (rows["year"] == 2002)
    rows["x"] = wide["x"][rows["id"]]
    rows["y"] = np.concatenate([wide["y0"], wide["y"]])
    periods = {"time": "year", "before": [2001], "after": [2002], "change_range": (-4, 5)}
    people_of = {"person": "id", "per_person": {"t": "ever"}}
    told = study_of("t", "y", (-4, 7), {"x": cv.Range(0, 1)}, control=0, **periods, **people_of)
    asked = {"protects": "outcome", "epsilon": 1, "method": "weighting"}
    one = cv.ate(wide, change_study(), noise=cv.SeededNoise(3), **asked)
    other = cv.ate(rows.sample(frac=1, random_state=0), told, noise=cv.SeededNoise(3), **asked)
    assert other.interval() == one.interval()
    assert other.guarantee.adjacency == "change-outcomes-of-one-person"


def test_a_federation_takes_outcomes_of_one_column():
    from counterveil.federation.judging import DeclaredOutcome

    with pytest.raises(CounterveilError, match="CV-P600"):
        DeclaredOutcome.of(change_study().to_dict())


PAIR = "treatment and outcome"
PAIR_RNG = np.random.default_rng(3)
PAIR_ROWS = 600
DATA = {
    "arm": PAIR_RNG.permutation([0, 1] * (PAIR_ROWS // 2)),
    "y": PAIR_RNG.uniform(size=PAIR_ROWS),
    "z": PAIR_RNG.uniform(size=PAIR_ROWS),
    "age": PAIR_RNG.uniform(20, 80, PAIR_ROWS),
    "id": np.arange(PAIR_ROWS),
    "site": np.arange(PAIR_ROWS) % 20,
    "third": np.arange(PAIR_ROWS) % 3,
}
AGE = {"age": cv.Range(20, 80)}
TRIAL = cv.Study("arm", cv.Outcome("y", (0, 1)), AGE, assignment=cv.Trial())


def answer(**more):
    return cv.ate(DATA, TRIAL, protects=PAIR, epsilon=2, **more)


@pytest.fixture(scope="module")
def found():
    return answer()


def test_two_answers_are_pooled_and_keep_their_level(found):
    pooled = cv.pool([found, answer()])
    assert pooled.guarantee.unit.value == PAIR


OTHERS = {
    "event_study": (cv.Study("arm", cv.Change("y", (0, 1), before=("z", "third")), AGE), {}),
    "moments": (TRIAL, {}),
    "overlap": (TRIAL, {}),
    "survival": (
        cv.Study("arm", outcome=cv.TimeToEvent("age", "site", horizon=50), assignment=cv.Trial()),
        {},
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_questions_are_refused_before_a_row_is_read(name):
    study, more = OTHERS[name]
    with pytest.raises(cv.CounterveilError, match=r"CV-P018") as error:
        getattr(cv, name)(None, study, protects=PAIR, epsilon=1, **more)
    assert name in error.value.got
    assert "counterveil.ate" in error.value.expected


@pytest.mark.parametrize(
    ("word", "more"),
    [
        ("people", {"person": "id"}),
        ("clusters", {"cluster": "site"}),
        ("clusters", {"cluster": "site", "protects_cluster": True}),
        ("a change", {"before": "z"}),
        ("a ratio", {"denominator": "z", "denominator_range": (0, 1)}),
        ("where", {"where": "arm == 1"}),
    ],
)
def test_studies_without_a_form_are_refused_before_a_row_is_read(word, more):
    study = study_of("arm", "y", (0, 1), AGE, randomised=True, **more)
    with pytest.raises(cv.CounterveilError, match="CV-P018") as error:
        cv.ate(None, study, protects=PAIR, epsilon=1)
    assert word in error.value.got


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"trim": 0.1}, "CV-P668"),
        ({"method": "weighting"}, "CV-P018"),
        ({"measure": "ratio", "estimand": "ATT"}, "CV-P687"),
        ({"settings": cv.settings.Auto(kappa=0.25)}, "CV-P019"),
        ({"method": "trial", "settings": cv.settings.Trial("none")}, "CV-P019"),
    ],
)
def test_what_the_level_does_not_have_is_refused(more, code):
    with pytest.raises(cv.CounterveilError, match=code):
        cv.ate(None, TRIAL, protects=PAIR, epsilon=1, **more)


def test_a_session_knows_what_is_left_for_it():
    with cv.Session(DATA, TRIAL, budget=cv.Budget(3)) as session:
        session.ate(protects=PAIR, epsilon=1)
        assert session.remaining(PAIR).epsilon == session.remaining("outcome").epsilon == 2
        assert session.account().record_spent.epsilon == 0
