"""Parts of a study: each checks itself, flat spellings name the part, and a range is never guessed."""

import pickle
from inspect import signature

import pytest

import counterveil as cv

PARTS = [
    cv.Treatment("arm", treated="new", control="old"),
    cv.Treatment("arm", arms=("a", "b", "c"), reference="b"),
    cv.Outcome("y", (0, 1)),
    cv.Change("y", (0, 1), before=["y0", "y1"], change_range=(-1, 1)),
    cv.Change("y", (0, 1), time="year", before=[1], after=2),
    cv.Ratio("clicks", (0, 9), "sessions", (1, 5)),
    cv.TimeToEvent("days", "died", grid=[1, 2.5]),
    cv.Outcomes({"y": (0, 1), "z": (0, 2)}, baseline={"y": "y0"}),
    cv.Trial(share="1/3"),
    cv.Propensity("p"),
    cv.Observational(),
    cv.People("id", rules={"y": "last"}, order="day", max_rows=3),
    cv.Clusters("school", protected=True, rules={"y": "sum"}),
]


def code_of(call):
    with pytest.raises(cv.CounterveilError) as refused:
        call()
    return refused.value.code


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_a_part_is_a_value_and_documented(part):
    again = pickle.loads(pickle.dumps(part))
    assert again == part
    assert hash(again) == hash(part)
    with pytest.raises((AttributeError, TypeError)):
        part.column = "other"
    for section in ("Raises", "Examples"):
        assert section in type(part).__doc__ or isinstance(part, cv.Observational)
    assert code_of(lambda: type(part)(colour="blue")) == "CV-P028"


def test_a_study_takes_at_most_ten_arguments():
    assert len(signature(cv.Study).parameters) <= 10


@pytest.mark.parametrize(
    ("flat", "line"),
    [
        ({"randomised": True}, "assignment=cv.Trial()"),
        ({"treated_share": 0.5}, "cv.Trial(share=0.5)"),
        ({"score": "p"}, "cv.Propensity("),
        ({"outcome_range": (0, 1)}, "cv.Outcome("),
        ({"control": 0}, "cv.Treatment("),
        ({"arms": (0, 1, 2)}, "cv.Treatment("),
        ({"person": "id"}, "cv.People("),
        ({"cluster": "school"}, "cv.Clusters("),
        ({"event": "died"}, "cv.TimeToEvent("),
        ({"denominator": "n"}, "cv.Ratio("),
        ({"before": "y0"}, "cv.Change("),
        ({"outcomes": {}}, "cv.Outcomes("),
    ],
)
def test_a_flat_spelling_names_the_part(flat, line):
    with pytest.raises(cv.CounterveilError, match="CV-P028") as refused:
        cv.Study("t", {"y": (0, 1)}, **flat)
    assert line in refused.value.fix


@pytest.mark.parametrize(
    "key", ["randomised", "outcome_range", "person", "cluster", "event", "treated_share"]
)
def test_a_flat_key_of_a_file_names_the_table(key):
    document = {"treatment": "t", "outcome": {"column": "y", "range": [0, 1]}, key: "x"}
    with pytest.raises(cv.CounterveilError, match="CV-S013") as refused:
        cv.Study.from_dict(document)
    assert refused.value.fix.startswith("write ")


def test_a_range_is_never_guessed():
    with pytest.raises(cv.CounterveilError, match="CV-S170") as refused:
        cv.Study("t", "days")
    assert "cv.Outcome('days'" in refused.value.fix
    assert code_of(lambda: cv.Study("t", "y", (0, 1), {"age": (18, 90)})) == "CV-P028"


def test_short_forms_are_the_parts():
    assert cv.Study("t", {"y": (0, 1)}) == cv.Study(cv.Treatment("t"), cv.Outcome("y", (0, 1)))
    two = {"y": (0, 1), "z": (0, 2)}
    assert cv.Study("t", two) == cv.Study("t", cv.Outcomes(two))
    rows = cv.Study("t", {"y": (0, 1)}, people="id", clusters="school")
    assert rows == cv.Study("t", {"y": (0, 1)}, people=cv.People("id"), clusters=cv.Clusters("school"))
    assert rows.to_dict()["people"] == "id"


@pytest.mark.parametrize("bad", [True, "trial", cv.settings.Trial()])
def test_an_assignment_is_one_of_its_parts(bad):
    assert code_of(lambda: cv.Study("t", {"y": (0, 1)}, assignment=bad)) == "CV-S012"


def test_parts_that_do_not_fit_together_are_refused():
    periods = cv.Change("y", (0, 1), time="year", before=[1], after=[2])
    three = cv.Treatment("t", arms=(0, 1, 2), reference=0)
    refused = {
        "CV-S018": lambda: cv.Study("t", periods),
        "CV-S019": lambda: cv.Study(three, cv.Ratio("a", (0, 1), "b", (0, 1))),
        "CV-S025": lambda: cv.Study(
            "t", {"y": (0, 1)}, people="id", clusters=cv.Clusters("s", protected=True)
        ),
        "CV-S061": lambda: cv.Study(three, {"y": (0, 1)}, assignment=cv.Trial(share=0.5)),
        "CV-S090": lambda: cv.Study(three, cv.TimeToEvent("days", "died", horizon=5)),
    }
    assert {code: code_of(call) for code, call in refused.items()} == {code: code for code in refused}
