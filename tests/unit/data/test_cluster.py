"""Declarations of clusters: what fits together, study files, what is public, accounts, and whole clusters as rows."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.accounting import AccessPolicy
from counterveil.data import Table
from counterveil.errors import CounterveilError
from counterveil.privacy import Protected

AGES = cv.Range(0, 9)


def study(covariates=True, **more):
    known = {"age": AGES} if covariates else {}
    usual = {"cluster": "school", "outcome_range": (0, 9)}
    return study_of("arm", "y", covariates=known, control=0, randomised=True, **(usual | more))


def pupils(schools=12, seed=0):
    rng = np.random.default_rng(seed)
    school = rng.permutation(np.repeat(np.arange(schools), rng.integers(2, 7, schools)))
    return pd.DataFrame(
        {
            "school": school,
            "arm": school % 2,
            "y": rng.uniform(0, 9, len(school)),
            "age": rng.integers(0, 10, len(school)).astype(float),
            "day": np.arange(len(school)),
        }
    )


def code_of(call):
    with pytest.raises(CounterveilError) as refused:
        call()
    return refused.value.code


@pytest.mark.parametrize(
    "wrong",
    [
        {"cluster": "y"},
        {"cluster": " "},
        {"cluster": 7},
        {"cluster": "school", "protects_cluster": 1},
        {"cluster": "school", "assigned_by_cluster": "yes"},
        {"cluster": "school", "per_cluster": {"y": "sum"}},
        {"cluster": "school", "protects_cluster": True, "person": "id"},
        {"cluster": "id", "person": "id"},
    ],
)
def test_declarations_that_do_not_fit_together_are_refused(wrong):
    assert code_of(lambda: study(**wrong)) == "CV-S025"


def test_a_bare_name_in_a_study_file_is_the_column_and_other_keys_are_refused():
    document = {"treatment": "arm", "outcome": {"column": "y", "range": [0, 9]}, "clusters": "school"}
    assert cv.Study.from_dict(document).cluster.column == "school"
    wrongs = {"CV-S013": [{"column": "school", "rule": {}}, {"protected": True}], "CV-S025": [3]}
    wrongs["CV-S025"].append({"column": "school", "rules": {"y": "sum"}})
    for code, listed in wrongs.items():
        for wrong in listed:
            assert code_of(lambda wrong=wrong: cv.Study.from_dict(document | {"clusters": wrong})) == code


def test_clusters_are_numbered_by_their_names_whatever_the_source():
    frame = pupils()
    table = Table.attach(frame, study())
    assert (table.cluster == frame["school"]).all()
    texts = Table.attach(frame.assign(school=frame["school"].astype(str)), study())
    assert (texts.cluster == table.cluster).all()
    kept = frame.assign(y=frame["y"].where(frame["school"] != 3))
    dropped = Table.attach(kept, study(missing={"y": cv.Drop()}))
    assert len(set(dropped.cluster.tolist())) == 11
    assert len(dropped.cluster) == dropped.rows
    assert not table.cluster.flags.writeable


def test_rows_without_a_cluster_and_divided_clusters_are_refused():
    frame = pupils()
    nowhere = frame.assign(school=frame["school"].astype(float).where(frame.index > 0))
    assert code_of(lambda: Table.attach(nowhere, study())) == "CV-D019"
    divided = frame.assign(arm=np.where(frame.index == 0, 1 - frame["arm"], frame["arm"]))
    assert Table.attach(divided, study()).rows == len(frame)
    assert code_of(lambda: Table.attach(divided, study(assigned_by_cluster=True))) == "CV-D020"
    assert code_of(lambda: Table.attach(divided, study(protects_cluster=True))) == "CV-D020"


def test_whole_clusters_become_rows_by_their_rules():
    frame = pupils()
    table = Table.attach(frame, study(protects_cluster=True))
    own = frame.groupby("school")
    assert table.rows == 12
    assert table.cluster is None
    unit = float(table.outcome_unit)
    np.testing.assert_allclose(unit * table.outcome, own["y"].mean(), atol=2 * unit)
    np.testing.assert_allclose(table.covariates["age"], own["age"].mean())
    first = Table.attach(frame, study(protects_cluster=True, order="day", max_rows_per_person=1))
    np.testing.assert_allclose(unit * first.outcome, own["y"].first(), atol=2 * unit)


def test_one_cluster_changes_one_row_whatever_happens_to_its_rows():
    schools = [rows for size in (1, 2) for rows in product((0.0, 4.0, 9.0), repeat=size)]
    other = [("b", 0, 3.0), ("b", 0, 5.0), ("c", 1, 2.0), ("d", 0, 1.0), ("e", 1, 1.0)]
    declared = study(False, protects_cluster=True)

    def attached(rows):
        mixed = [*other[:2], *(("a", 1, y) for y in rows), *other[2:]]
        school, arm, y = zip(*mixed, strict=True)
        return Table.attach({"school": school, "arm": np.array(arm), "y": np.array(y)}, declared)

    tables = [attached(rows) for rows in schools]
    for one, two in product(tables, repeat=2):
        assert one.rows == two.rows == 5
        assert (one.outcome != two.outcome).sum() <= 1
        assert (one.arm == two.arm).all()


def test_few_whole_clusters_are_refused():
    frame = pupils(12)
    declared = study(protects_cluster=True)
    asked = {"protects": "outcome", "epsilon": 4}
    assert code_of(lambda: cv.ate(frame, declared, method="weighting", **asked)) == "CV-S066"
    assert code_of(lambda: cv.ate(pupils(5), declared, method="difference_in_means", **asked)) == "CV-S066"
    assert cv.ate(frame, declared, method="difference_in_means", **asked).details["rows"] == 12


def half(schools):
    """Pupils of schools of two kinds, half of either in each arm."""
    frame = pupils(schools).assign(kind=lambda rows: rows.school // 2 % 2)
    return frame.assign(y0=frame.y, y1=frame.y, arms=frame.school % 3)


def whole(treatment="arm", covariates=None, **more):
    known = {"age": AGES} if covariates is None else covariates
    usual = {"control": 0} if treatment == "arm" else {"arms": (0, 1, 2), "reference": 0}
    usual |= {"randomised": True, "cluster": "school", "protects_cluster": True}
    return study_of(treatment, "y", (0, 9), known, **(usual | more))


KINDS = {"kind": cv.Categories([0, 1])}
# Questions with normal intervals: their study and other arguments, and the fewest clusters they need.
NORMAL = [
    (cv.ate, whole(), {"protects": "outcome", "method": "weighting"}, 20),
    (cv.arms, whole("arms", {}), {"protects": "outcome"}, 20),
    (cv.groups, whole(covariates=KINDS), {"protects": "outcome", "by": "kind"}, 40),
    (cv.groups, whole(covariates=KINDS), {"protects": "record", "by": "kind"}, 40),
    (cv.event_study, whole(covariates={}, before=("y0", "y1")), {"protects": "outcome"}, 20),
    (cv.event_study, whole(covariates={}, before=("y0", "y1")), {"protects": "record"}, 20),
    (cv.cate, whole(), {"protects": "record"}, 20),
    (cv.policy_value, whole(), {"protects": "record", "policy": cv.Policy.where(age=(3, 9))}, 20),
    (cv.published.outcome_matching, whole(), {"accept": "unproved"}, 20),
]


@pytest.mark.parametrize(("question", "declared", "asked", "fewest"), NORMAL)
def test_normal_intervals_need_twenty_whole_clusters(question, declared, asked, fewest):
    def code(schools):
        try:
            question(half(schools), declared, epsilon=50, noise=cv.SeededNoise(1), **asked)
        except CounterveilError as refused:
            return refused.code
        return None

    assert code(fewest - 2) == "CV-S066"
    assert code(fewest) != "CV-S066"


def test_an_account_has_one_unit(tmp_path):
    frame = pupils(40)
    place = tmp_path / "ledger.db"
    with cv.Session(
        frame, study(protects_cluster=True), budget=cv.Budget(9), ledger=cv.open_ledger(place, create=True)
    ) as session:
        session.ate(protects="record", epsilon=1, method="trial")
    for other in (
        study(),
        cv.Study(
            cv.Treatment("arm", control=0),
            cv.Outcome("y", (0, 9)),
            {"age": AGES},
            assignment=cv.Trial(),
        ),
    ):
        asked = {"protects": "record", "epsilon": 1, "method": "trial", "ledger": place}
        assert code_of(lambda other=other, asked=asked: cv.ate(frame, other, **asked)) == "CV-L049"


def test_access_policies_name_the_protected_cluster_and_public_columns():
    access_policy = AccessPolicy(public=["arm"], cluster="school")
    assert AccessPolicy.from_dict(access_policy.to_dict()) == access_policy
    assert "unit: one cluster, by 'school', with all its rows" in access_policy.lines()
    assert code_of(lambda: AccessPolicy(person="id", cluster="school")) == "CV-L040"
    listed = AccessPolicy(public=["arm", "age"], clusters=["school"])
    assert "public: which 'school' there are, not who is in which" in listed.lines()
    with cv.Session(pupils(40), study(), budget=cv.Budget(9), access_policy=listed) as session:
        # At outcome level who is in which cluster becomes public, which this account does not allow.
        assert code_of(lambda: session.ate(protects="outcome", epsilon=1)) == "CV-L041"
        assert session.ate(protects="record", epsilon=8, method="trial").details["clusters"] == 40


def test_changes_and_subsets_have_clusters_and_ratios_do_not():
    frame = pupils(40)
    frame["y0"] = np.clip(frame["y"] - 1, 0, 9)
    frame["visits"] = 1.0
    asked = {"protects": "outcome", "epsilon": 8, "method": "difference_in_means"}
    changes = cv.ate(frame, study(False, before="y0"), **asked)
    assert "clustered by school, 40 clusters" in changes.method
    assert "the outcomes of one row" in changes.guarantee.sentence()
    some = cv.ate(frame, study(False, where="age > 2"), **asked)
    assert some.details["clusters"] == frame.loc[frame["age"] > 2, "school"].nunique()
    ratio = study(False, denominator="visits", denominator_range=(0, 5))
    assert code_of(lambda: cv.ate(frame, ratio, **asked)) == "CV-S026"
    whole = study(
        False, denominator="visits", denominator_range=(0, 40), protects_cluster=True, outcome_range=(0, 90)
    )
    assert cv.ate(frame, whole, **asked).guarantee.whose is Protected.CLUSTER
