"""PP-IPW: a cell of every figure runs, the bias is the derived one, and claims are judged both ways."""

import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from counterveil.reproduce.papers.catalogue import load
from counterveil.reproduce.papers.ipw import claims, figures, synthetic
from counterveil.reproduce.papers.ipw.forms import LONG, PARTLY, PLAIN, RELEASED, one_run
from counterveil.reproduce.papers.ipw.tables import EPSILONS, MEAN, PRINTED, WRONG, made_table
from counterveil.reproduce.protocol import Verdict

FIGURES = {figure.name: figure for figure in load("ipw").figures}
in_folder = pytest.mark.skipif(not os.environ.get("COUNTERVEIL_DATA"), reason="COUNTERVEIL_DATA is not set")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(figures, "BLOCK", 2)
    monkeypatch.setattr(figures, "DRAWS", 2)


@pytest.mark.parametrize("name", ["figure-1", "figure-2ab", "figure-2cd", "appendix-f"])
def test_a_cell_of_every_figure_runs_and_fills_its_table(name):
    figure = FIGURES[name]
    cell = figure.cells(True)[0]
    rows = figure.run(cell)
    assert rows == figure.run(cell)
    assert len(figure.table(pd.DataFrame([{**cell, **row} for row in rows]))) >= 1


@in_folder
def test_a_run_of_a_table_has_every_estimate():
    (found,) = one_run("lalonde", 1, (0.99,))
    assert np.isfinite(list(found.values())).all()
    assert LONG not in found


@pytest.mark.slow
@in_folder
def test_a_cell_of_each_table_runs():
    for name in ("table-2", "table-3"):
        cell = {**FIGURES[name].cells(True)[0], "runs": 2}
        rows = FIGURES[name].run(cell)
        table = FIGURES[name].table(pd.DataFrame([{**cell, **row} for row in rows]))
        assert set(PRINTED["ihdp"]) <= {
            (n.removeprefix("paper: "), m) for n, m in zip(table["estimate"], table["measure"], strict=True)
        }


def test_the_bias_is_the_one_that_the_proof_derives():
    study = synthetic.drawn(1, 500, 2.0)
    printed, derived = synthetic.bias_of(study, 0.4)
    drawn = synthetic.simulated_bias(study, 0.4, 200, 1)
    assert drawn == pytest.approx(derived, rel=0.05)
    assert printed < 0 < derived


def table_of(wrong, released):
    rows = [
        {"data": "lalonde", "first_run": 0, "runs": 10, "run": run, "epsilon": epsilon, PLAIN: 1.0,
         PARTLY: -1.0 if run < 10 * share else 1.0, RELEASED: -1.0 if run < 10 * other else 1.0}
        for epsilon, share, other in zip(EPSILONS, wrong, released, strict=True)
        for run in range(10)
    ]  # fmt: skip
    return {"table-3": made_table(pd.DataFrame(rows))}


def test_claims_on_tables_are_judged_both_ways():
    falling, flat = (0.5, 0.4, 0.3, 0.2, 0.1), (0.5,) * 5
    tables = table_of(falling, flat)
    assert claims.fewer_wrong("table-3", PARTLY)(tables).verdict is Verdict.REPRODUCED
    assert claims.fewer_wrong("table-3", RELEASED)(tables).verdict is Verdict.NOT_REPRODUCED
    assert claims.last_noise_small("table-3")(tables).verdict is Verdict.NOT_REPRODUCED
    assert claims.last_noise_small("table-3")(table_of(flat, flat)).verdict is Verdict.REPRODUCED
    assert claims.fidelity_grows("table-3")(tables).verdict is Verdict.REPRODUCED
    assert claims.close_to_printed("table-3", PARTLY)(tables).verdict is Verdict.NOT_REPRODUCED
    first = tables["table-3"].iloc[0]
    assert (first["measure"], first["0.2"]) == (MEAN, 872.21)
    assert WRONG in set(tables["table-3"]["measure"])


def bias(sign):
    rows = [
        {"form": form, "rows": size, "epsilon": epsilon, "bias": factor / (epsilon * size)}
        for form, factor in (("as printed", sign), ("as derived", 1.0), ("simulated", 1.0))
        for size in (500, 1000)
        for epsilon in (0.2, 0.4)
    ]
    return {"figure-1": pd.DataFrame(rows)}


def test_claims_on_the_bias_are_judged_both_ways():
    assert claims.bias_as_printed(bias(-1.0)).verdict is Verdict.NOT_REPRODUCED
    assert claims.bias_as_printed(bias(1.0)).verdict is Verdict.REPRODUCED
    assert claims.bias_falls(bias(1.0)).verdict is Verdict.REPRODUCED
    turned = {"figure-1": bias(1.0)["figure-1"].assign(bias=lambda table: 1 / table["bias"])}
    assert claims.bias_falls(turned).verdict is Verdict.NOT_REPRODUCED


def test_the_effect_on_the_treated_is_told_from_its_product_with_the_share():
    right, wrong = (
        {"appendix-f": pd.DataFrame([{"printed": p, "effect": 2.0, "share": 0.5}])} for p in (2.0, 1.0)
    )
    assert claims.treated_effect(right).verdict is Verdict.REPRODUCED
    assert claims.treated_effect(wrong).verdict is Verdict.NOT_REPRODUCED


def test_guarantee_and_theorem_are_judged_without_tables():
    assert claims.guarantee({}).verdict is Verdict.NOT_REPRODUCED
    assert claims.hoeffding({}).verdict is Verdict.REPRODUCED


def test_more_rows_for_the_model_mean_less_noise():
    study = synthetic.drawn(1, 500, 2.0)
    more = replace(study, fitted=1000)
    assert abs(synthetic.bias_of(more, 0.2)[1]) < abs(synthetic.bias_of(study, 0.2)[1])
