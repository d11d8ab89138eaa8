"""One cell of each figure of the paper on effect functions, and figures of data that need credentials."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from counterveil.errors import DataError
from counterveil_lab.reproduce.page import Verdict
from counterveil_lab.reproduce.papers.cate import methods
from counterveil_lab.reproduce.papers.cate.figures import FIGURES
from counterveil_lab.reproduce.papers.cate.methods import ALPHA, LITERAL
from counterveil_lab.reproduce.papers.cate.paper import CLAIMS
from counterveil_lab.reproduce.papers.cate.studies import DATASET_1, MIMIC_FILES, is_there, mimic, study_of
from counterveil_lab.reproduce.papers.cate_designs.paper import BEST
from counterveil_lab.reproduce.papers.cate_designs.paper import PAPER as DESIGNS_PAPER

BY_NAME = {figure.name: figure for figure in FIGURES}
SEED = 1000


def rows_of(figure, chosen):
    """Return the rows of the quick cells that a function chooses."""
    cells = [cell for cell in figure.cells(True) if chosen(cell)]
    assert cells
    return pd.DataFrame([{**cell, **row} for cell in cells for row in figure.run(cell)])


def of_method(*names):
    return lambda cell: cell["method"] in names


@pytest.fixture(scope="module")
def functional():
    return {name: BY_NAME[name].table(rows_of(BY_NAME[name], of_method(LITERAL, ALPHA))) for name in
            ("figure4", "figure10")}  # fmt: skip


def test_functional_predictions_have_noise_in_proportion_and_are_shrunk_as_printed(functional):
    for table in functional.values():
        assert len(table) == 2 * 3 * 12
        noise = table.groupby(["method", "epsilon"])["noise"].apply(lambda sizes: np.sqrt(np.mean(sizes**2)))
        assert noise[LITERAL, 0.1] == pytest.approx(100 * noise[LITERAL, 10.0])
        assert noise[ALPHA, 1.0] > 100 * noise[LITERAL, 1.0]
        own = table[table["method"] == LITERAL]
        assert (own["fitted"] < own["truth"]).all()
        assert (own["low"] <= own["middle"]).all()
        assert (own["middle"] <= own["high"]).all()


def test_ours_is_closer_than_the_linear_form_and_without_noise_closest():
    study = study_of(DATASET_1, SEED)
    errors = [
        study.error(methods.answered(DATASET_1, method, "R", SEED, (1.0,)).answers[1.0])
        for method in ("without privacy", "ours, record", "DP-CATE linear")
    ]
    assert errors[0] < errors[1] < errors[2] / 2


def test_the_kernel_guarantee_fails_with_many_covariates():
    figure = BY_NAME["guarantees"]
    table = figure.table(rows_of(figure, lambda cell: cell["theorem"] == 2)).set_index("release")["bound"]
    assert table["kernel, 2 covariates, bandwidth 0.2"] < 1
    assert table["kernel, 30 covariates, bandwidth 1"] > 5


def test_algorithm_2_as_printed_does_not_read_the_fit_after_the_first_query():
    figure = BY_NAME["algorithm2"]
    rows = pd.DataFrame(figure.run({"algorithm": "iterative_printed", "draws": 5})).set_index("query")
    assert rows.loc[1, "mean"] == pytest.approx(rows.loc[1, "fitted"], abs=0.02)
    assert rows.loc[2, "sd"] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["figure3", "figure9", "figure12", "figure13", "figure15"])
def test_figures_of_networks(name):
    figure = BY_NAME[name]
    table = figure.table(rows_of(figure, of_method("DP-CATE network", "k-anonymous network")))
    own = table[table["method"] == "DP-CATE network"]
    least, most = (
        own[own["epsilon"] == end]["noise"].mean() for end in (own["epsilon"].min(), own["epsilon"].max())
    )
    assert least * own["epsilon"].min() == pytest.approx(most * own["epsilon"].max())
    if name == "figure13":
        assert (table[table["method"] != "DP-CATE network"]["noise"] == 0).all()
    plt.close(figure.draw(table))


@pytest.mark.slow
def test_the_finite_guarantee_fails_for_a_network():
    figure = BY_NAME["guarantees"]
    table = figure.table(rows_of(figure, lambda cell: cell.get("learner") == "network"))
    assert table["bound"].max() > 1


@pytest.mark.slow
def test_ours_meets_the_aim_in_a_design_and_the_published_error_is_a_row():
    figure = DESIGNS_PAPER.figures[0]
    chosen = ("ours, record", "DP-EBM, published", "zero", "ours, epsilon 1000")
    rows = rows_of(
        figure, lambda cell: cell["design"] == "B" and cell["seed"] == SEED and cell["method"] in chosen
    )
    table = figure.table(rows).set_index("method")
    assert table.loc["DP-EBM, published", "error"] == BEST["B"][0]
    assert table.loc["ours, record", "of_published"] < 0.5
    assert table.loc["ours, epsilon 1000", "error"] < table.loc["ours, record", "error"]
    drawing = figure.draw(table.reset_index())
    assert drawing.axes[0].get_yscale() == "log"
    plt.close(drawing)


def test_figures_of_data_that_are_not_there_have_no_cells_and_their_claims_cannot_be_checked(monkeypatch):
    monkeypatch.delenv("COUNTERVEIL_DATA", raising=False)
    assert not is_there(MIMIC_FILES)
    own = {figure.name: figure for figure in FIGURES}
    assert own["figure6"].cells(False) == own["figure7"].cells(False) == []
    judged = [claim.judge({}) for claim in CLAIMS if claim.figures == ()]
    assert [one.verdict for one in judged] == [Verdict.CANNOT_BE_CHECKED] * 2
    assert all("credentials" in one.why for one in judged)
    with pytest.raises(DataError, match="CV-D040"):
        mimic(1)
