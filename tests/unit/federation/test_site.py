"""A site: what it checks, answers, charges and refuses, its access policy and its setup."""

import json
import logging
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

import counterveil as cv
from counterveil.data import batches
from counterveil.errors import CounterveilError, ParameterError
from counterveil.federation import keys
from counterveil.federation import messages as refusals
from counterveil.federation.files import check_address, check_name
from counterveil.federation.judging import judged
from counterveil.federation.messages import Ask, Reply, SiteRequest
from counterveil.federation.site import Site, check_site
from counterveil.federation.site_files import APPROVED, REJECTED

ASK = Ask(method="difference_in_means", protects="outcome", epsilon="1")
SECRET = "MRN 12345 has outcome 7.1"


@pytest.fixture
def request_to(trial):
    def make(
        request_id="r1",
        study_id="s1",
        deadline=2000.0,
        declaration=None,
        site="North",
        checkpoint=None,
        **changes,
    ):
        declared = trial.study.to_dict() if declaration is None else declaration
        return SiteRequest(
            study_id, request_id, site, declared, replace(ASK, **changes), deadline, checkpoint
        )

    return make


def reply_of(site, request):
    return Reply.from_text(site.answer(addressed(site, request).to_text()))


def addressed(site, request):
    return replace(request, site=site.file.name)


def test_a_request_is_answered_with_a_result_and_paid_once(new_site, request_to, budget_spent, trial):
    site = new_site()
    reply = reply_of(site, request_to())
    result = cv.results.Result.from_dict(reply.result)
    assert abs(result.estimate - trial.true_effect) < 5 * result.std_error.total
    assert budget_spent(site).spent.epsilon == 1


def test_a_retry_gets_the_same_answer_and_pays_nothing(new_site, request_to, budget_spent):
    site = new_site()
    first = site.answer(request_to().to_text())
    # Another process, after the deadline, under a policy that has changed since.
    again = Site(replace(site.file, policy=replace(site.file.policy, estimators=())), clock=lambda: 9e9)
    assert again.answer(request_to(deadline=1.0).to_text()) == first
    assert budget_spent(site).requests == 1


def test_an_answer_that_was_paid_for_and_not_kept_is_found_in_the_ledger(new_site, request_to, budget_spent):
    site = new_site()
    first = reply_of(site, request_to())
    for path in site.file.answers.glob("*.json"):
        path.unlink()
    late = Site(site.file, clock=lambda: 9e9)
    again = reply_of(late, request_to())
    assert again.result["estimate"] == first.result["estimate"]
    assert again.result["interval"] == first.result["interval"]
    assert budget_spent(site).requests == 1


def test_an_id_stands_for_one_question(new_site, request_to, budget_spent):
    site = new_site()
    assert reply_of(site, request_to(epsilon="1/2")).ok
    assert reply_of(site, request_to(epsilon="1")).refusal == "CV-F008"
    assert budget_spent(site).requests == 1


def test_a_death_between_payment_and_answer_costs_nothing_more(
    new_site, request_to, monkeypatch, budget_spent
):
    site = new_site()

    def dies(*_):
        raise RuntimeError(SECRET)

    with monkeypatch.context() as patched:
        patched.setattr("counterveil.accounting.ledger.Ledger.settle", dies)
        assert reply_of(site, request_to()).refusal == "CV-F009"
    # Its releases were stored: the same request goes on with them and is charged once.
    assert reply_of(site, request_to()).ok
    assert budget_spent(site).spent.epsilon == 1


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"method": "matching"}, "CV-F002"),
        ({"protects": "record"}, "CV-F002"),
        ({"epsilon": "2.5"}, "CV-F003"),
        ({"deadline": 999.0}, "CV-F011"),
        ({"declaration": {"treatment": "treated"}}, "CV-F012"),
        ({"mechanism": "gaussian"}, "CV-F013"),
        ({"settings": {"neighbours": 3}}, "CV-F013"),
        ({"level": 95.0}, "CV-F001"),
    ],
)
def test_a_refusal_costs_nothing(new_site, request_to, budget_spent, changes, code):
    site = new_site()
    assert reply_of(site, request_to(**changes)).refusal == code
    assert budget_spent(site).requests == 0


def test_bounds_are_the_stewards_to_set(new_site, request_to, trial):
    narrower = trial.study._changed(outcome_range=(Fraction(0), Fraction(1, 2))).to_dict()
    assert reply_of(new_site(), request_to(declaration=narrower)).refusal == "CV-F012"


def test_a_study_ends_at_its_ceiling_and_the_site_at_its_budget(new_site, request_to, budget_spent):
    site = new_site(epsilon="2.5", study_epsilon="2")
    assert reply_of(site, request_to("a")).ok
    assert reply_of(site, request_to("b")).ok
    assert reply_of(site, request_to("c")).refusal == "CV-F003"
    # Another study, or the same under another name, still meets the total of the people.
    assert reply_of(site, request_to("a", study_id="s2")).refusal == "CV-F004"
    assert reply_of(site, request_to("b", study_id="s2", epsilon="1/2")).ok
    assert budget_spent(site).spent.epsilon == 2.5


def test_too_few_rows_are_refused_by_the_public_number(new_site, request_to, budget_spent):
    assert reply_of(new_site("many", min_rows=400), request_to()).ok
    few = new_site("few", min_rows=401)
    assert reply_of(few, request_to()).refusal == "CV-F005"
    assert budget_spent(few).requests == 0


def test_a_small_arm_is_refused_where_its_size_is_public(new_site, request_to, trial, budget_spent):
    smaller = min(np.bincount(trial.frame["treated"].astype(int)))
    assert reply_of(new_site("enough", min_arm=int(smaller)), request_to()).ok
    few = new_site("few", min_arm=int(smaller) + 1)
    assert reply_of(few, request_to()).refusal == "CV-F005"
    record = {"protects": ["record"], "estimators": ["trial"]}
    asked = {"method": "trial", "protects": "record"}
    # The design plans 200 in each arm.
    assert reply_of(new_site("planned", min_arm=200, **record), request_to(**asked)).ok
    assert reply_of(new_site("plans fewer", min_arm=201, **record), request_to(**asked)).refusal == "CV-F005"
    unplanned = trial.study._changed(treated_share=None)
    private = new_site("private", min_arm=1, study=unplanned, **record)
    declared = request_to(declaration=unplanned.to_dict(), **asked)
    assert reply_of(private, declared).refusal == "CV-F002"
    assert budget_spent(few).requests == budget_spent(private).requests == 0


def test_people_with_several_rows_count_as_people(new_site, request_to, trial, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "STREAM_FROM", 0)
    visits = {name: np.tile(values, 3) for name, values in trial.frame.items()}
    pyarrow.parquet.write_table(
        pa.table(visits | {"id": np.tile(np.arange(400), 3)}), tmp_path / "visits.parquet"
    )
    study = cv.Study.from_dict(trial.study.to_dict() | {"people": "id"})
    for least, refusal in ((400, None), (401, "CV-F005")):
        site = new_site(f"least {least}", data=tmp_path / "visits.parquet", study=study, min_rows=least)
        reply = reply_of(site, request_to(declaration=study.to_dict()))
        assert reply.refusal == refusal
        assert refusal or reply.result["details"]["rows"] == 400


def test_a_steward_decides_by_hand(new_site, request_to, budget_spent):
    site = new_site(approval="by hand")
    assert reply_of(site, request_to("a")).refusal == "CV-F006"
    assert reply_of(site, request_to("b")).refusal == "CV-F006"
    waiting = site.records.waiting()
    assert [each.key for each in waiting] == ["s1@a", "s1@b"]
    assert waiting[0].request["question"]["epsilon"] == "1"
    site.records.decide("s1@a", APPROVED)
    site.records.decide("s1@b", REJECTED)
    assert reply_of(site, request_to("b")).refusal == "CV-F007"
    # What was approved is the question, not the id.
    assert reply_of(site, request_to("a", epsilon="2")).refusal == "CV-F008"
    assert reply_of(site, request_to("a")).ok
    assert budget_spent(site).requests == 1


def test_nothing_of_an_exception_leaves(new_site, request_to, monkeypatch, caplog, capsys):
    def fails(*_):
        raise ValueError(SECRET)

    monkeypatch.setattr("counterveil.federation.site.ask_of", fails)
    site = new_site()
    with caplog.at_level(logging.DEBUG):
        text = site.answer(request_to().to_text())
    assert json.loads(text)["refusal"] == "CV-F009"
    seen = text + caplog.text + "".join(capsys.readouterr())
    assert SECRET not in seen
    assert "ValueError" in caplog.text
    kept = b"".join(path.read_bytes() for path in site.file.folder.rglob("*") if path.is_file())
    assert SECRET.encode() not in kept


def test_balance_tables_stay_unless_the_policy_sends_them(new_site, request_to):
    arguments = {"method": "weighting", "estimators": ["weighting"]}
    method, estimators = arguments["method"], arguments["estimators"]
    assert (
        reply_of(new_site("shy", estimators=estimators), request_to(method=method)).result["diagnostics"]
        == {}
    )
    open_site = new_site("open", estimators=estimators, diagnostics=True)
    assert reply_of(open_site, request_to(method=method)).result["diagnostics"]


@pytest.mark.parametrize(
    ("method", "protects", "epsilon"),
    [
        ("difference_in_means", "outcome", "1"),
        ("trial", "record", "2"),
        ("matching", "outcome", "1"),
        ("stratified", "outcome", "1"),
        ("weighting", "outcome", "1"),
        ("doubly_robust", "record", "2"),
        ("trial", "treatment and outcome", "1"),
    ],
)
def test_every_estimator_with_an_estimate_and_a_variance_answers_and_pools(
    new_site, request_to, method, protects, epsilon, trial
):
    cut = cv.Study.from_dict(
        trial.study.to_dict() | {"covariates": {"x": {"range": [0, 1], "cuts": [0.3, 0.6]}}}
    )
    replies = {}
    for name in ("North", "South"):
        site = new_site(name, study=cut, estimators=[method], protects=[protects])
        request = request_to(declaration=cut.to_dict(), method=method, protects=protects, epsilon=epsilon)
        reply = reply_of(site, request)
        result = judged(addressed(site, request), reply, 400, None)
        assert result.guarantee.unit.value == protects
        replies[name] = result.to_dict()
    low, high = cv.pool(replies).untruncated_interval()
    assert low < high


def test_a_new_folder_with_the_old_ledger_forgets_nothing(new_site, request_to, budget_spent, tmp_path):
    first = reply_of(new_site("old"), request_to())
    site = new_site("new", epsilon=50, ledger=str(tmp_path / "old" / "ledger.db"))
    assert reply_of(site, request_to()).result["estimate"] == first.result["estimate"]
    assert budget_spent(site).budget.epsilon == 3
    assert budget_spent(site).requests == 1


def account(site):
    with cv.open_ledger(site.file.ledger) as ledger:
        return ledger.account(site.file.dataset)


def test_what_is_public_follows_from_the_levels_that_the_policy_allows(new_site, trial):
    shown = {trial.study.treatment, *trial.study.covariates}
    assert set(account(new_site("North")).access_policy.public) == shown
    private = account(new_site("South", protects=["record"]))
    assert private.access_policy.public == ()
    assert private.access_policy.outcomes == (trial.study.outcome,)


def test_a_policy_that_is_widened_later_does_not_make_private_columns_public(new_site, trial):
    site = new_site("South", protects=["record"])
    wider = replace(site.file, policy=replace(site.file.policy, protects=("outcome", "record")))
    ask = Ask(method="difference_in_means", protects="outcome", epsilon="1")
    request = SiteRequest("s1", "r1", "South", trial.study.to_dict(), ask, 2000.0)
    reply = Reply.from_text(Site(wider, clock=lambda: 1000.0).answer(request.to_text()))
    assert reply.refusal == refusals.NOT_ALLOWED
    assert account(site).spent.epsilon == 0


def test_entries_name_the_coordinator(new_site, trial):
    site = new_site()
    ask = Ask(method="difference_in_means", protects="outcome", epsilon="1")
    site.answer(SiteRequest("s1", "r1", "North", trial.study.to_dict(), ask, 2000.0).to_text())
    with cv.open_ledger(site.file.ledger) as ledger:
        askers = [entry.facts["asked_by"] for entry in ledger.entries()]
    assert askers[1:] == ["coordinator at 127.0.0.1:9092"] * 4


STUDY = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), {"sex": cv.Binary()})


@pytest.fixture
def two_strata(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [f"{k % 2},{(k * 7 % 10) / 10},{k % 4 // 2},{k}" for k in range(200)]
    path.write_text("t,y,sex,id\n" + "\n".join(rows) + "\n")
    return path


def reply(site, study_id, ask):
    request = SiteRequest(study_id, "r1", "North", STUDY.to_dict(), ask, 2000.0)
    return Reply.from_text(site.answer(request.to_text()))


def test_an_order_is_refused_where_the_rest_of_the_question_is_not(new_site, two_strata):
    site = new_site(data=two_strata, study=STUDY, estimators=["stratified"])
    ordered = Ask("stratified", "outcome", "1/2", settings={"order": "id"})
    assert reply(site, "a", ordered).refusal == "CV-F013"
    assert reply(site, "a", Ask("stratified", "outcome", "1/2")).ok


def test_what_a_study_spent_is_not_counted_for_one_whose_name_it_begins_with(new_site, two_strata):
    site = new_site(data=two_strata, study=STUDY, epsilon=10)
    whole = Ask("difference_in_means", "outcome", "2")
    assert reply(site, "heart-2", whole).ok
    assert reply(site, "heart", whole).ok
    assert reply(site, "heart-2", Ask("difference_in_means", "outcome", "1/100")).refusal == "CV-F008"
    later = SiteRequest("heart", "r2", "North", STUDY.to_dict(), whole, 2000.0)
    assert Reply.from_text(site.answer(later.to_text())).refusal == "CV-F003"


def test_a_new_site_passes_its_check(new_site):
    site = new_site()
    facts = check_site(site.file.folder)
    assert facts["rows"] == 400
    assert facts["ledger"] == "sound"
    assert facts["left"].startswith("epsilon 3")


def test_nothing_is_made_twice(new_site, new_study):
    new_site()
    with pytest.raises(ParameterError, match="CV-P604"):
        new_site()
    new_study("North", "South")
    with pytest.raises(ParameterError, match="CV-P604"):
        new_study("North", "South")


def test_a_missing_key_is_found_by_the_check(new_site):
    site = new_site()
    (site.file.keys / "secret").unlink()
    with pytest.raises(ParameterError, match="CV-P607"):
        check_site(site.file.folder)


def test_a_certificate_names_its_hosts_and_is_signed_by_its_authority(tmp_path):
    keys.make_server_keys(tmp_path, ("study.example.org", "10.0.0.7"), "coordinator")
    authority, server = (
        x509.load_pem_x509_certificate((tmp_path / name).read_bytes())
        for name in (keys.AUTHORITY, keys.CERTIFICATE)
    )
    server.verify_directly_issued_by(authority)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "study.example.org"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "10.0.0.7"]
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not server.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_a_public_key_is_read_and_other_files_are_not(tmp_path, authority):
    assert isinstance(keys.read_public_key(keys.make_node_key(tmp_path)), ec.EllipticCurvePublicKey)
    for path in (authority, tmp_path / "none"):
        with pytest.raises(ParameterError, match="CV-P603"):
            keys.read_public_key(path)


@pytest.mark.parametrize("name", ["", " a", "a/b", "..", "a" * 41, "a\n", "é"])
def test_names_that_could_be_paths_are_refused(name):
    with pytest.raises(ParameterError, match="CV-P601"):
        check_name(name)


@pytest.mark.parametrize("address", ["", "host", "host:0", "host:70000", ":80", "a b:80", "host:8x"])
def test_addresses_need_host_and_port(address):
    with pytest.raises(ParameterError, match="CV-P602"):
        check_address(address)


def test_the_certificate_of_the_coordinator_is_looked_at(new_site, authority):
    authority.write_text("hello")
    with pytest.raises(CounterveilError, match="CV-P606"):
        new_site()
