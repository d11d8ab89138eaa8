"""Effects of groups: every unit of protection and form, clusters, sums over cells, brute force, refusals."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.thinned import thinned_rows
from tests.unit.estimators.moments.small_records import REST, STUDY, NotingGate, largest_change, records
from tests.unit.questions.groups.group_data import EFFECTS, rows, study
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data.features import feature_map
from counterveil.errors import ParameterError, StudyError
from counterveil.estimators.moments import cell_tallies
from counterveil.estimators.moments.cell_clip import CellClip, release_histogram
from counterveil.estimators.moments.cell_tallies import Tallies, release_cells
from counterveil.estimators.moments.effect_sums import EffectSums, effect_sums
from counterveil.estimators.moments.group_score import AdjustedScore, MeanScore, PlainScore
from counterveil.numerics.products import Standard
from counterveil.questions.groups import layout_of
from counterveil.rows.moments.linear_models import LinearModels
from counterveil.rows.moments.placing import LayoutPlaces

NAMES = [f"site={name}" for name in EFFECTS]


def ask(data, declared, by="site", **arguments):
    given = {"protects": "record", "epsilon": 1, "noise": cv.SeededNoise(5)} | arguments
    return cv.groups(data, declared, by=by, **given)


def off(result):
    """Return the error of every group's effect in its standard errors."""
    truth = dict(zip(NAMES, EFFECTS.values(), strict=True))
    return [abs(one.estimate - truth[one.name]) / float(one.std_error) for one in result.groups]


@pytest.mark.parametrize("method", ["arms", "adjusted"])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_every_form_finds_the_effects_of_a_trial(method, delta):
    result = ask(rows(30_000), study(share=0.5), method=method, epsilon=2, delta=delta)
    assert [one.name for one in result.groups] == NAMES
    assert max(off(result)) < 3.5
    assert all(float(one.std_error) < 0.25 for one in result.groups)
    for one, part in zip(result.groups, (0.5, 0.3, 0.2), strict=True):
        assert abs(one.size - part * 30_000) < 4 * one.size_sd + 300


@pytest.mark.parametrize("method", ["difference_in_means", "weighting", "matching"])
def test_outcomes_protected_every_linear_method_finds_the_effects(method):
    result = ask(rows(3000), study(), protects="outcome", method=method)
    assert max(off(result)) < 3.5
    assert [one.size for one in result.groups] == [
        sum(site == name for site in rows(3000)["site"]) for name in EFFECTS
    ]
    assert all(one.size_sd == 0 for one in result.groups)


def test_every_group_gets_the_whole_budget():
    """A group's noise is that of a study of this group alone: groups of public rows cost nothing beside others."""
    data, declared = rows(900), study()
    result = ask(data, declared, protects="outcome", method="difference_in_means")
    own = [place for place, site in enumerate(data["site"]) if site == "north"]
    mine = {name: [column[place] for place in own] for name, column in data.items()}
    words = {"protects": "outcome", "epsilon": 1, "method": "difference_in_means"}
    alone = cv.ate(mine, declared, noise=cv.SeededNoise(1), **words)
    assert result.effect("site=north").std_error.noise == pytest.approx(alone.std_error.noise)


def test_groups_without_two_people_in_an_arm_are_left_out_where_that_is_public():
    data = rows(600)
    data["site"] = ["north"] * 599 + ["south"]
    result = ask(data, study(), protects="outcome")
    assert [one.name for one in result.groups] == ["site=north"]
    assert result.left_out == ("site=south", "site=east")
    assert "too few people" in str(result)


def test_at_record_level_an_empty_group_is_answered_like_any_other():
    data = rows(6000)
    data["site"] = ["north"] * 6000
    result = ask(data, study(share=0.5))
    low, high = result.effect("site=east").interval()
    assert high - low > 10
    assert [one.name for one in result.groups] == NAMES


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"by": ()}, "CV-P541"),
        ({"by": 3}, "CV-P541"),
        ({"by": "nothing"}, "CV-S072"),
        ({"by": "age"}, "CV-S071"),
        ({"by": {"age": [30 + k / 100 for k in range(2500)]}}, "CV-P542"),
        ({"method": "weighting"}, "CV-P016"),
        ({"method": "scores"}, "CV-P016"),
        ({"settings": cv.settings.Matching()}, "CV-P019"),
        ({"protects": "outcome", "settings": cv.settings.Groups()}, "CV-P019"),
    ],
)
def test_refusals_come_before_the_data(arguments, code):
    with pytest.raises((ParameterError, StudyError), match=code):
        ask(None, study(share=0.5), **arguments)


def test_unaffordable_adjustment_is_refused_before_anything_is_spent():
    with cv.Session(rows(200), study(randomised=False), budget=cv.Budget(1)) as session:
        with pytest.raises(ParameterError, match="CV-P544"):
            session.groups(by="site", protects="record", epsilon="1/10")
        assert session.remaining().epsilon == 1


def test_where_no_group_can_be_compared_it_is_said_before_anything_is_spent():
    data = rows(12)
    data["t"] = [0, 1] * 6
    data["age"] = np.repeat(np.linspace(20, 80, 6), 2)
    with cv.Session(data, study(), budget=cv.Budget(1)) as session, pytest.raises(StudyError) as refused:
        session.groups(by={"age": (26, 38, 50, 62, 74)}, protects="outcome", epsilon=1)
    assert refused.value.code == "CV-S110"


PLENTY = {"epsilon": 1e5, "noise": cv.SeededNoise(1)}


def pupils(schools=24, size=30, seed=0):
    rng = np.random.default_rng(seed)
    school = np.repeat(np.arange(schools), rng.integers(size // 2, 2 * size, schools))
    sex = rng.integers(0, 2, len(school))
    shared = rng.normal(0, 0.1, schools)[school]
    y = np.clip(0.4 + 0.1 * (school % 2) + shared + rng.normal(0, 0.1, len(school)), 0, 1)
    return {"arm": school % 2, "y": y, "sex": sex, "school": school, "x": rng.random(len(school))}


def clustered_study(**more):
    declared = {"covariates": {"sex": cv.Categories([0, 1])}, "cluster": "school", "randomised": True}
    return study_of("arm", "y", (0, 1), control=0, **declared | {"assigned_by_cluster": True} | more)


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
    declared = clustered_study(covariates={"sex": cv.Categories([0, 1]), **x})
    result = cv.groups(data, declared, by="sex", **asked)
    for sex, found in enumerate(result.groups):
        own = {name: values[data["sex"] == sex] for name, values in data.items()}
        alone = cv.ate(own, clustered_study(covariates=x), **asked)
        assert found.estimate == pytest.approx(alone.estimate, abs=1e-4)
        assert found.interval() == pytest.approx(alone.interval(), abs=1e-3)
        assert found.size == pytest.approx(len(own["y"]), abs=1)
    assert "standard errors clustered by school" in result.method
    assert cv.results.GroupsResult.from_dict(result.to_dict()).interval() == result.interval()


def test_an_outcome_moves_the_numbers_of_its_own_group_alone():
    data, asked = pupils(), {"protects": "outcome", "epsilon": 1}
    moved = dict(data, y=np.where(np.arange(len(data["y"])) == 0, 1 - data["y"], data["y"]))
    one, two = (
        cv.groups(each, clustered_study(), by="sex", noise=cv.SeededNoise(3), **asked).groups
        for each in (data, moved)
    )
    own = int(data["sex"][0])
    assert one[own].estimate != two[own].estimate
    assert one[1 - own].estimate == two[1 - own].estimate
    assert one[1 - own].interval() == two[1 - own].interval()


def test_what_has_no_interval_by_cluster_is_refused_first():
    few = clustered_study(covariates={"place": cv.Range(0, 24)})
    assert refused(clustered_study(), protects="record", method="adjusted") == "CV-S026"
    assert refused(clustered_study(), protects="treatment and outcome") == "CV-P018"
    assert refused(clustered_study(), protects="record", settings=cv.settings.Groups(clip=1)) == "CV-P019"
    assert (
        refused(clustered_study(), "policy_value", policy=cv.Policy.where(sex=[1]), protects="outcome")
        == "CV-S026"
    )
    data = pupils() | {"place": pupils()["school"]}
    with pytest.raises(cv.CounterveilError, match="CV-S130"):
        cv.groups(data, few, by={"place": tuple(range(2, 24, 2))}, protects="outcome", epsilon=1)


ROWS, CENTRE, OFFSET, UNIT, COST = 300, 0.3, 0.2, 1.5, 0.4
RNG = np.random.default_rng(3)
CODES, SCORES = RNG.integers(0, 3, ROWS), RNG.normal(0.5, 1.0, ROWS)
SCORE = MeanScore(0.0, 0.3, offset=OFFSET, extra=0.01, bias=0.02)


def per_cell(values):
    return np.bincount(CODES, weights=values, minlength=3)


SIZES = per_cell(np.ones(ROWS))
CELLS = Tallies(SIZES, per_cell(SCORES - CENTRE), per_cell((SCORES - CENTRE) ** 2), CENTRE, 2, 5, 7, True)


def test_means_and_squares_are_those_of_the_rows():
    gains = (SCORES + OFFSET) * UNIT - COST
    found = effect_sums(CELLS, SCORE, ROWS, UNIT, COST)
    assert found.means == pytest.approx(per_cell(gains) / ROWS)
    assert found.squares == pytest.approx(per_cell(gains**2) / ROWS)
    assert (found.noise_sd, found.bias, found.heavy) == (5.0 * UNIT / ROWS, 0.02 * UNIT, True)
    assert found.extra == pytest.approx(0.01 * UNIT**2 * (SIZES / ROWS) ** 2)


def test_sizes_add_up_to_the_public_number_of_rows():
    found = effect_sums(replace(CELLS, sizes=SIZES - 4), SCORE, ROWS, UNIT, COST)
    assert found.sizes == pytest.approx(SIZES)


def test_errors_that_both_models_show_are_taken_off():
    # A propensity that is wrong by a and an outcome's model that is wrong by b move a mean score by weight a b.
    none, a, b = np.zeros(2), 0.1, 0.2
    models = LinearModels(0.5, 0.0, none, none, none, OFFSET)
    score = AdjustedScore(None, models, 0.1, 0.5, 0.1, propensity_error_variance=1e6, extra=0.0, bias=0.0)
    left = {"treatment_residual": SIZES * a, "residual": SIZES * b}
    left |= dict.fromkeys(("treatment_residual_sd", "residual_sd"), 1e-9)
    wrong = replace(CELLS, totals=SIZES * score.weight * a * b, centre=0.0, size_sd=0.0, **left)
    found = effect_sums(wrong, score, ROWS, UNIT, 0.0)
    assert found.means == pytest.approx(OFFSET * UNIT * SIZES / ROWS, rel=1e-4)


def test_noise_of_the_information_counts_by_the_effect_of_each_cell():
    # Everything is divided by one noisy number, so that a cell is wrong by a part of its own mean.
    cells = replace(CELLS, totals=SIZES * np.array([0.0, 1.0, 3.0]), centre=1.0, size_sd=0.0)
    noise = (4.0 * np.sqrt(3) / ROWS) ** 2
    found = cell_tallies._whole_effects(cells, SIZES, 4.0)
    part = 0.2**2 / (0.2**2 + noise)
    assert found.noise_variance == pytest.approx(part * noise * np.array([1.0, 2.0, 4.0]) ** 2)
    _, extra = cell_tallies.model_errors(found, SCORE)
    assert extra == pytest.approx(SCORE.extra + found.noise_variance)


def test_a_weighted_sum_knows_its_noise_its_spread_and_its_errors():
    means, squares = np.array([0.2, -0.1, 0.3]), np.array([0.5, 0.4, 0.6])
    extra, weights = np.array([0.01, 0.04, 0.09]), np.array([1.0, -2.0, 0.5])
    sums = EffectSums(
        100, np.array([50.0, 30.0, 20.0]), means, squares, 0.03, 0.04, 0.5, extra, 0.1, 0.01, False
    )
    known = sums.sum(weights)
    value = float(weights @ means)
    assert known.total / known.size == pytest.approx(value)
    noise_variance = 0.7 * 0.5 * np.linalg.norm(weights**2)
    assert known.row_variance == pytest.approx(float(weights**2 @ squares) + noise_variance - value**2)
    assert known.total_sd / known.size == pytest.approx(np.sqrt(5.25) * 0.05)
    # Errors of the models may go together in all cells, whatever the signs of the weights.
    assert known.extra == pytest.approx((1 * 0.1 + 2 * 0.2 + 0.5 * 0.3) ** 2)
    # What was clipped may all lie in the cell of the largest weight.
    assert known.bias == pytest.approx(0.1 * (0.5 + 2 * 0.3 + 0.5 * 0.2) + 2 * 0.01)


GRID = list(product((-1.0, 0.1, 1.0), (0, 1), ("u", "v", "z"), (0, 1), (-1.0, 0.0, 0.4, 1.0)))
SIZE = feature_map(STUDY, 1).size
STANDARD = Standard(np.full(SIZE, 0.1), np.full(SIZE, 0.5), 2.0, 6.0)
MODELS = LinearModels(
    0.45, 0.1, np.linspace(-0.1, 0.2, SIZE + 1), np.linspace(0, 0.1, SIZE + 1), np.full(SIZE + 1, 0.1), 0.3
)
BRUTE_SCORES = {
    "plain": PlainScore(0.4, 0.1, 0.0, 0.3),
    "arms": MeanScore(0.1, 0.3),
    "adjusted": AdjustedScore(STANDARD, MODELS, 0.1, 0.6, 0.1, 1e-4, 0.0, 0.0),
}


@pytest.mark.parametrize("form", ["plain", "arms", "adjusted"])
@pytest.mark.parametrize(
    ("clip", "by"), thinned_rows(list(product([0.3, 1.0], [("c",), ("b", "c")])), (1.0, ("b", "c")))
)
def test_no_exchange_moves_the_cells_further_than_claimed(form, clip, by):
    layout = layout_of(STUDY, by)
    values = {False: [], True: []}
    for record, pure in product(GRID, (False, True)):
        gate = NotingGate()
        rows, places = records(record), LayoutPlaces(layout)
        release_cells(gate, rows, BRUTE_SCORES[form], places, layout.public, CellClip(0.05, clip), pure=pure)
        values[pure].append(gate.values["cells"])
        if not pure:
            claim = float(gate.sensitivity["cells"])
        else:
            total = float(gate.sensitivity["cells"])
    assert 0.8 * claim < largest_change(values[False]) <= claim * (1 + 1e-12)
    found = np.array([[float(entry) for entry in value] for value in values[True]])
    largest = max(float(np.abs(found - one).sum(axis=1).max()) for one in found)
    assert 0.8 * total < largest <= total * (1 + 1e-12)


@pytest.mark.parametrize("form", ["plain", "arms", "adjusted"])
def test_no_exchange_moves_the_histogram_further_than_claimed(form):
    values = []
    for record in GRID:
        gate = NotingGate()
        release_histogram(gate, records(record), BRUTE_SCORES[form], False)
        values.append(gate.values["histogram"])
        assert sum(gate.values["histogram"]) == 1 + len(REST)
    assert largest_change(values) <= float(gate.sensitivity["histogram"])
