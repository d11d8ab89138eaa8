"""What an answer says of itself is written as names and numbers, and read back as the same values or refused."""

import json
from enum import StrEnum

import pytest
from tools.reference.caveats_page import examples

from counterveil.bounded_reading import UnreadableError
from counterveil.privacy.caveats import (
    FIELDS,
    AtSites,
    Caveat,
    ConfoundingBeyond,
    FoldModels,
    KeptPeople,
    LinearScores,
    confounding,
    read_fact,
    read_facts,
    written,
)


@pytest.mark.parametrize("role", FIELDS)
def test_every_value_survives_a_file(role):
    facts = examples(role)
    assert read_facts(role, json.loads(json.dumps([written(one) for one in facts]))) == tuple(facts)
    # Members of two enumerations are equal where their names are: no name may serve twice.
    names = [str(one) for one in facts if isinstance(one, StrEnum)]
    assert len({*names}) == len(names)


def test_what_sites_say_is_read_one_level_deep():
    said = AtSites(("North", "South"), (FoldModels.OUTCOME, None))
    assert read_fact("assumptions", json.loads(json.dumps(written(said)))) == said
    nested = written(said) | {"facts": [written(said), None]}
    for lie in (nested, written(said) | {"facts": [None]}, written(said) | {"facts": ["clamping", None]}):
        with pytest.raises(UnreadableError):
            read_fact("assumptions", lie)


LINEAR = written(LinearScores(inverse=True, squares=False, products=False))


@pytest.mark.parametrize(
    ("role", "value"),
    [
        ("not_covered", "BUY SHARES"),
        ("not_covered", "one_fold"),
        ("not_covered", 1),
        ("not_covered", ["clamping"]),
        ("not_covered", {"name": "Detail"}),
        ("not_covered", {"name": "Caveat"}),
        ("not_covered", {"name": "SmallArms"}),
        ("not_covered", {"name": "SmallArms", "share": True}),
        ("not_covered", {"name": "SmallArms", "share": float("nan")}),
        ("not_covered", {"name": "SmallArms", "share": 0.1, "text": "BUY SHARES"}),
        ("not_covered", {"name": "OtherEstimand", "estimand": "BUY SHARES"}),
        ("not_covered", {"name": "SitesLeftOut", "sites": "North"}),
        ("not_covered", {"name": "ClippedOutliers", "columns": ["y"], "reaches": ["1"], "in_sds": True}),
        ("population", written(KeptPeople(5, 9, 0.1)) | {"kept": 5.5}),
        ("assumptions", LINEAR | {"squares": "none"}),
        ("condition", LINEAR),
    ],
)
def test_what_no_answer_says_is_refused_and_not_repeated(role, value):
    with pytest.raises(UnreadableError) as refused:
        read_fact(role, value)
    assert "BUY" not in str(refused.value)


def test_what_leaves_room_for_confounders():
    bound = ConfoundingBeyond(0.1)
    assert confounding([Caveat.CLAMPING, bound, Caveat.NOTHING_ADJUSTED]) == [bound, Caveat.NOTHING_ADJUSTED]
