"""The table of every method: cells, pairs of draws, interrupted files, and answers that are not computed twice."""

from dataclasses import astuple

import pytest
from experiments.every_method import asking
from experiments.every_method.designs import Design, simulated
from experiments.every_method.runs import Row, run, saved

import counterveil as cv


def row(number, method, error, epsilon="1", delta="0", half=1.0, valid=1, refusal=""):
    return Row(number, method, epsilon, delta, error, half, 1, valid, "", refusal)


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, capsys):
    design = Design("small", simulated("plain", 60, 7), draws=1.0)
    run(design, tmp_path, 2, ["difference_in_means", "zero"])
    (path,) = tmp_path.iterdir()
    whole = path.read_text()
    path.write_text(whole[: len(whole) * 3 // 4])
    run(design, tmp_path, 2, ["difference_in_means", "zero"])
    again = {astuple(one) for one in saved(path)}
    assert {tuple(line.split(",")[:4]) for line in whole.splitlines()} == {
        tuple(map(str, one[:4])) for one in again
    }
    assert "small: draw 1" in capsys.readouterr().err


@pytest.mark.parametrize(("epsilon", "delta"), [("4", "0"), ("4", "1e-6"), ("0.5", "1e-6")])
def test_what_is_chosen_has_the_answer_that_auto_gives(epsilon, delta):
    instance = simulated("plain", 1000, 8)(0)
    known = {}
    for name in ("doubly_robust", "auto"):
        found = asking.draw(instance, name, epsilon, delta, 5, known)
    result = cv.ate(
        instance.table,
        instance.table.study,
        protects="record",
        epsilon=epsilon,
        delta=delta,
        settings=cv.settings.Auto(kappa=asking.KAPPA),
        noise=cv.SeededNoise(5),
    )
    assert found.error == pytest.approx(result.estimate - 0.5)
    assert result.details["chosen_by_auto"].startswith(found.chosen)
