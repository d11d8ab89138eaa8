"""Effects at a finite set of queries: the object that holds the answers."""

from dataclasses import replace

import pytest
from tests.unit.questions.groups.group_data import rows, study

import counterveil as cv
from counterveil.errors import ParameterError

PEOPLE = {
    "site": ["north", "south", "east", "south"],
    "age": [30.0, 50.0, 70.0, 55.0],
    "sex": ["f", "m", "f", "m"],
}


def ask(n=3000, **arguments):
    given = {
        "protects": "record",
        "epsilon": 2,
        "delta": 1e-6,
        "noise": cv.SeededNoise(1),
        "queries": PEOPLE,
        "method": "t_learner",
    } | arguments
    return cv.cate(rows(n), study(share=0.5), **given)


@pytest.mark.parametrize("kind", [cv.results.CateAnswers, cv.results.CateModel, cv.Policy])
@pytest.mark.parametrize(
    "text", [None, "no json", "[]", "{}", '{"queries": 3}', '{"kind": "where"}', "[" * 10**5]
)
def test_files_that_hold_something_else_are_refused(kind, text, tmp_path):
    path = tmp_path / "found.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ParameterError) as refused:
        kind.load(path)
    assert refused.value.code == ("CV-P545" if kind is cv.Policy else "CV-P552")
    assert "found.json" in str(refused.value)


def test_scheffe_is_used_where_many_queries_rest_on_few_numbers():
    few = replace(
        ask(),
        queries=tuple({"x": float(k)} for k in range(500)),
        **dict.fromkeys(("sampling", "noise", "shrunk"), (0.1,) * 500),
        estimates=(1.0,) * 500,
        distinct=500,
        noise_tail="normal",
        rank=2,
    )
    many = replace(few, rank=400)
    assert few.band()[1][0] < many.band()[1][0]
