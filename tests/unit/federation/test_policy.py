from fractions import Fraction

import pytest

from counterveil.errors import CounterveilError, ParameterError
from counterveil.federation.messages import Ask, RefusedError
from counterveil.federation.site_files import SitePolicy

DOCUMENT = {
    "estimators": ["matching", "trial"],
    "protects": ["outcome"],
    "min_epsilon": 0.5,
    "study_epsilon": "2",
    "max_delta": "1e-6",
    "min_rows": 100,
    "approval": "by hand",
}
POLICY = SitePolicy.from_document(DOCUMENT)


def asked(**changes):
    return Ask(**({"method": "matching", "protects": "outcome", "epsilon": "1"} | changes))


@pytest.mark.parametrize(
    ("changes", "spent", "code"),
    [
        ({"method": "stratified"}, 0, "CV-F002"),
        ({"protects": "record"}, 0, "CV-F002"),
        ({"measure": "ratio"}, 0, "CV-F002"),
        ({"epsilon": "0.49"}, 0, "CV-F003"),
        ({"epsilon": "2.01"}, 0, "CV-F003"),
        ({"epsilon": "1"}, Fraction(101, 100), "CV-F003"),
        ({"delta": "1e-5"}, 0, "CV-F003"),
        ({"epsilon": "-1"}, 0, "CV-F003"),
        ({"epsilon": "nan"}, 0, "CV-F003"),
        ({"epsilon": "1e999999999"}, 0, "CV-F003"),
    ],
)
def test_what_is_not_allowed_is_refused_with_its_code(changes, spent, code):
    with pytest.raises(RefusedError, match=code):
        POLICY.check(asked(**changes), Fraction(spent))


def test_a_measure_is_allowed_by_name():
    SitePolicy.from_document(DOCUMENT | {"measures": ["ratio"]}).check(asked(measure="ratio"), Fraction(1))


def test_a_policy_is_read_as_it_was_written():
    assert SitePolicy.from_document(POLICY.to_document()) == POLICY


@pytest.mark.parametrize(
    "changes",
    [
        {"approval": "perhaps"},
        {"measures": ["hazard"]},
        {"measures": "ratio"},
        {"estimator": ["matching"]},
        {"estimators": "matching"},
        {"min_rows": "many"},
        {"min_rows": True},
        {"study_epsilon": None},
        {"protects": ["everything"]},
        {"min_epsilon": "much"},
    ],
)
def test_a_policy_that_is_not_understood_is_not_guessed(changes):
    with pytest.raises(CounterveilError) as caught:
        SitePolicy.from_document(DOCUMENT | changes)
    assert isinstance(caught.value, ParameterError)
