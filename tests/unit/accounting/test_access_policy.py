"""Access policies: what is written is read back, what is wrong is refused, and what each rule allows."""

import pickle
from dataclasses import replace
from fractions import Fraction

import pytest

import counterveil as cv
from counterveil.accounting import AccessPolicy, Uses, open_ledger
from counterveil.accounting.access_policy import MOST_NAMES
from counterveil.accounting.accounts import check_request, check_study
from counterveil.errors import BudgetError, LedgerError
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.privacy import Budget, Charge, GaussianEvent, PureEvent, Unit

FULL = AccessPolicy(
    public=["treated", "age"],
    outcomes=["relapse", "cost"],
    missing={"relapse": "fill", "cost": "drop"},
    protects=["outcome"],
    methods=["weighting"],
    max_epsilon="1/3",
    max_delta=1e-6,
    unproved=True,
)
ASKED = Uses(Unit.OUTCOME, "ate", "weighting", "treated", "relapse", ("age",), {"relapse": "fill"})
SMALL = Budget("0.1")


def refused(code):
    return pytest.raises(LedgerError, match=code)


def file(tmp_path, text):
    path = tmp_path / "access-policy.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "access_policy", [FULL, AccessPolicy(), AccessPolicy(public=['a "quoted"\tname', "ü.x"], methods=[])]
)
def test_what_is_written_is_read_back(tmp_path, access_policy):
    assert AccessPolicy.from_dict(access_policy.to_dict()) == access_policy
    assert AccessPolicy.from_toml(file(tmp_path, access_policy.to_toml())) == access_policy
    assert pickle.loads(pickle.dumps(access_policy)) == access_policy
    assert AccessPolicy.from_dict(access_policy.to_dict()).digest() == access_policy.digest()


def test_numbers_are_exact_and_order_does_not_matter(tmp_path):
    read = AccessPolicy.from_toml(
        file(tmp_path, 'public = ["b", "a", "b"]\nmax_epsilon = 0.1\nmax_delta = 1e-6\n')
    )
    assert (read.max_epsilon, read.max_delta) == (Fraction(1, 10), Fraction(1, 10**6))
    assert read == AccessPolicy(public=["a", "b"], max_epsilon="0.1", max_delta="1e-6")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("publik = []", "publik"),
        ('public = "age"', "a list of names"),
        ("public = [1]", "texts of"),
        ('public = [" "]', "texts of"),
        (f'public = ["{"x" * 201}"]', "texts of"),
        ('protects = ["people"]', "outcome"),
        ("protects = []", "empty"),
        ("max_epsilon = 0", "max_epsilon"),
        ("max_epsilon = inf", "max_epsilon"),
        ("max_epsilon = true", "max_epsilon"),
        (f"max_epsilon = 1{'0' * 300}", "max_epsilon"),
        ("max_delta = 1", "max_delta"),
        ("unproved = 1", "unproved"),
        ('[missing]\nage = "keep"', "drop"),
        ('missing = "drop"', "a table"),
        ('public = ["age"]\noutcomes = ["age"]', "public or private"),
        ('public = ["age"]\n[missing]\nage = "fill"', "public or private"),
        ("public = [", "TOML"),
        ("a" + ".a" * 3000 + " = 1", "dotted parts"),
        ("public = " + "[" * 5000, "levels of brackets"),
        ("# " + "x" * 300_000, "characters"),
    ],
)
def test_what_is_wrong_is_refused_with_its_name(tmp_path, text, said):
    with refused("CV-L040") as error:
        AccessPolicy.from_toml(file(tmp_path, text))
    assert said in str(error.value)
    assert len(str(error.value)) < 1500


def test_a_file_that_is_not_there_or_is_not_text(tmp_path):
    with refused("CV-L040"):
        AccessPolicy.from_toml(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with refused("CV-L040"):
        AccessPolicy.from_toml(tmp_path / "bytes.toml")
    with refused("CV-L040"):
        AccessPolicy(public=[f"x{i}" for i in range(MOST_NAMES + 1)])


def test_columns_of_a_study_are_bounded_too():
    with refused("CV-L048"):
        replace(ASKED, covariates=("x" * 201,))
    with refused("CV-L048"):
        replace(ASKED, covariates=tuple(f"x{i}" for i in range(MOST_NAMES)))
    assert Uses.from_dict(ASKED.to_dict()) == ASKED == pickle.loads(pickle.dumps(ASKED))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, None),
        ({"unit": Unit.RECORD}, "CV-L044"),
        ({"method": "matching"}, "CV-L044"),
        ({"covariates": ("age", "hiv")}, "CV-L041"),
        ({"treatment": "hiv"}, "CV-L041"),
        ({"outcome": "age", "covariates": ()}, "CV-L042"),
        ({"outcome": "hiv", "missing": {}}, "CV-L042"),
        ({"outcome": "cost", "missing": {"cost": "drop"}}, None),
        ({"missing": {"relapse": "drop"}}, "CV-L043"),
        ({"missing": {}}, "CV-L043"),
        ({"missing": {"relapse": "fill", "age": "drop"}}, None),  # public columns may have any rule
        ({"unproved": True}, None),
    ],
)
def test_each_rule_of_an_access_policy(changes, code):
    uses = replace(ASKED, **changes)
    if code is None:
        check_request(FULL, uses, SMALL)
        return
    with refused(code):
        check_request(FULL, uses, SMALL)


def test_one_request_has_its_limits():
    for face in (Budget("0.34"), Budget("0.1", "1e-5")):
        with refused("CV-L044"):
            check_request(FULL, ASKED, face)
        check_study(FULL, ASKED)
    with refused("CV-L045"):
        check_request(
            AccessPolicy(public=["treated", "age"], missing={"relapse": "fill"}),
            replace(ASKED, unproved=True),
            SMALL,
        )


def test_at_record_level_every_column_may_be_used_and_none_is_shown():
    records = AccessPolicy(protects=["record"], missing={"relapse": "fill"})
    check_request(records, replace(ASKED, unit=Unit.RECORD, covariates=("age", "hiv")), SMALL)
    with refused("CV-L043"):
        check_request(
            records, replace(ASKED, unit=Unit.RECORD, missing={"relapse": "fill", "age": "drop"}), SMALL
        )


@pytest.mark.parametrize(("changes", "public"), [({}, ("age", "treated")), ({"unit": Unit.RECORD}, ())])
def test_a_first_request_fixes_what_is_public(changes, public):
    uses = replace(ASKED, **changes)
    fixed = AccessPolicy.of_study(uses)
    assert fixed.public == public
    assert fixed.missing == {"relapse": "fill"}
    assert not fixed.unproved
    check_request(fixed, uses, Budget(1000))


def charge(epsilon):
    return Charge(Budget(epsilon), (PureEvent(Budget(epsilon).epsilon),))


def test_a_refused_first_request_fixes_nothing(tmp_path):
    with open_ledger(tmp_path / "book.db", create=True) as ledger:
        ledger.register("people", Budget(1))
        with pytest.raises(BudgetError):
            ledger.reserve("people", "r1", charge(2), uses=ASKED, fingerprint="f", description={})
        assert ledger.account("people").access_policy is None
        assert "the first request fixes it" in str(ledger.account("people"))
        ledger.reserve("people", "r1", charge(1), uses=ASKED, fingerprint="f", description={})
        assert ledger.account("people").access_policy == AccessPolicy.of_study(ASKED)
        assert "fixed by the first request" in str(ledger.account("people"))


def test_an_access_policy_is_part_of_the_registration(tmp_path):
    heads = []
    for number, access_policy in enumerate((None, FULL, replace_public(FULL))):
        with open_ledger(tmp_path / f"{number}.db", create=True) as ledger:
            ledger.register("people", Budget(1), access_policy=access_policy)
            heads.append(ledger.head())
            assert ledger.account("people").access_policy == access_policy
            assert ledger.verify().ok
    assert len(set(heads)) == 3


def replace_public(access_policy):
    return AccessPolicy.from_dict(access_policy.to_dict() | {"public": ["age"]})


def test_a_session_registers_an_access_policy_and_refuses_another(tmp_path):
    data = {"treated": [0, 1] * 10, "relapse": [0, 1, 1, 0] * 5}
    study = cv.Study("treated", cv.Outcome("relapse", (0, 1)), assignment=cv.Trial())
    access_policy = AccessPolicy(public=["treated"])
    open_ledger(tmp_path / "book.db", create=True).close()
    given = {"ledger": tmp_path / "book.db", "budget": Budget(1)}
    with cv.Session(data, study, access_policy=access_policy, **given) as session:
        assert session.account().access_policy == access_policy
    with refused("CV-L046"):
        cv.Session(data, study, access_policy=FULL, **given)
    with cv.Session(data, study, access_policy=access_policy, **given):
        pass


@pytest.mark.parametrize("record", [Budget(2), Budget(1, "1e-6")])
def test_records_get_at_most_the_total(record):
    with open_ledger(":memory:") as ledger, refused("CV-L047"):
        ledger.register("people", Budget(1), record_budget=record)


def test_both_totals_follow_the_gaussian_rule():
    total, part = Budget(3, "1e-6"), Budget(1, "1e-6")
    one = Charge(Budget("0.5", "1e-6"), (GaussianEvent(mu_of(Fraction(1, 2), Fraction(1, 10**6))),))
    with open_ledger(":memory:") as ledger:
        ledger.register("people", total, record_budget=part, rule="gaussian")
        asked = replace(ASKED, unit=Unit.RECORD)
        for number in range(3):
            ledger.reserve("people", f"r{number}", one, uses=asked, fingerprint="f", description={})
        with pytest.raises(BudgetError, match="protect records"):
            ledger.reserve("people", "r3", one, uses=asked, fingerprint="f", description={})
        account = ledger.account("people")
        assert account.record_remaining.mu < account.remaining.mu
        assert ledger.verify().ok


def test_unproved_forms_run_where_nothing_lasts():
    with open_ledger(":memory:") as ledger:
        ledger.register("people", Budget(1))
        ledger.reserve(
            "people", "r1", charge("0.5"), uses=replace(ASKED, unproved=True), fingerprint="f", description={}
        )
        assert ledger.account("people").statement().startswith("NO FINITE-SAMPLE GUARANTEE: 1 of 1")
