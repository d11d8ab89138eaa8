"""Forms of questions under the auditor: sound ones pass with power, planted leaks and too little noise do not."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.unit.repository.test_growth import forms

from counterveil.data import cells
from counterveil.data import domains as encoding
from counterveil.data import domains as labels
from counterveil.errors import ParameterError
from counterveil.mechanisms import SeededNoise
from counterveil.numerics.gaussian_profile import epsilon_of
from counterveil.privacy import Budget
from counterveil.questions import asking
from counterveil.questions.table_one import table_one
from counterveil.results import Result
from counterveil_lab.attacks.asking import Watch, WatchedCurator, WatchedGate
from counterveil_lab.attacks.catalogue import CATALOGUE
from counterveil_lab.attacks.command import chosen, examine_form
from counterveil_lab.attacks.release import Loss, LossTester, ReplayTester, gaussian_epsilon, worst_pair
from counterveil_lab.audit import Verdict


def test_every_form_of_every_question_is_audited():
    assert (
        set(forms()) - {(one.question, one.method or "auto", one.protects) for one in CATALOGUE.values()}
        == set()
    )


def test_every_unit_is_audited():
    units = {one.unit for one in CATALOGUE.values()}
    levels = {"outcome", "treatment and outcome", "record"}
    assert units == levels | {"person", "person, outcomes", "cluster", "cluster, outcomes"}


def found(name, tester, places=(0, 1)):
    """Return what one tester finds on the worst pair of some data sets of a form's first pool."""
    one = CATALOGUE[name]
    pool = next(one.pools())
    release, _ = worst_pair(one.asked(one.budget), [[pool[place] for place in places]], 1)
    return tester.examine(release, (0, 1), one.budget, error=0.001, rng=np.random.default_rng(1))


def test_a_form_passes_every_tester_and_a_third_of_its_noise_none():
    report = examine_form(replace(CATALOGUE["ate/difference_in_means/outcome"], places=(0,)), samples=160)
    assert report.passed, str(report)
    assert [row.tester for row in report.rows] == ["exact", "likelihood ratio", "replay"]
    assert report.rows[0].ours.found == pytest.approx(1)


def test_a_sensitivity_of_half_is_found(monkeypatch):
    true = WatchedGate.release
    monkeypatch.setattr(
        WatchedGate, "release", lambda gate, name, value, size: true(gate, name, value, size / 2)
    )
    name = "ate/difference_in_means/outcome"
    assert found(name, LossTester()).found == 2
    assert "moved beyond its sensitivity" in found(name, ReplayTester()).witness


def test_a_scale_that_follows_private_rows_is_found(monkeypatch):
    """A bound that is read off the data: the noise would do, but its size tells about the rows."""
    true = WatchedGate.release

    def scaled(gate, name, value, sensitivity):
        return true(gate, name, value, sensitivity * (1 + abs(value)))

    monkeypatch.setattr(WatchedGate, "release", scaled)
    assert "scale of effect" in found("ate/difference_in_means/outcome", ReplayTester()).witness


def test_a_nan_spelled_in_text_is_found(monkeypatch):
    """Finding A1: texts such as "NAN" passed for a number, and poisoned every sum they entered."""
    name = "ate/trial/record/spelled cells"
    assert not found(name, ReplayTester(), (0, 3, 4)).violated
    assert cells.double_of("NAN") is None

    def any_float(cell):
        try:
            return float(cell)
        except (TypeError, ValueError):
            return None

    monkeypatch.setattr(encoding, "double_of", any_float)
    monkeypatch.setattr(labels, "says_nothing", lambda text: text in ("", "nan", "NaN", "NA", "null", "None"))
    monkeypatch.setattr(encoding, "_between", lambda values, low, high: np.clip(values, low, high))
    assert "moved beyond its sensitivity" in found(name, ReplayTester(), (0, 3, 4)).witness


def test_an_answer_that_shows_a_private_number_is_found(monkeypatch):
    true = Result.to_dict
    one = CATALOGUE["ate/difference_in_means/outcome"]
    release, _ = worst_pair(one.asked(one.budget), list(one.pools())[:1], 1)
    sums = iter(range(100))
    monkeypatch.setattr(Result, "to_dict", lambda result: true(result) | {"a total": next(sums)})
    finding = ReplayTester().examine(release, (0, 1), one.budget, error=0.001, rng=np.random.default_rng(1))
    assert finding.violated
    assert "a total" in finding.witness


def test_a_report_that_shows_private_covariates_is_found(monkeypatch):
    """A Table 1 is in no stored answer, only on pages."""
    name, true = "ate/trial/record/pooled", asking._for_reports
    assert not found(name, ReplayTester(), (0, 3)).violated
    shown = []

    def with_table(answer, session, arguments):
        shown.append(table_one(session.table))
        return replace(true(answer, session, arguments), by_arm=shown[-1])

    monkeypatch.setattr(asking, "_for_reports", with_table)
    finding = found(name, ReplayTester(), (0, 3))
    assert shown[0]["covariates"]
    assert finding.violated
    assert "table_one" in finding.witness or "means" in finding.witness


# Each draws noise of several kinds.
SEVERAL_KINDS = [
    "outcomes/difference_in_means/outcome/earlier",
    "outcomes/trial/record/earlier",
    "survival/kaplan_meier/record/running sums",
    "moments/record",
    "moments/outcome",
    "ate/doubly_robust/record",
]


@pytest.mark.parametrize("name", SEVERAL_KINDS)
def test_an_answer_names_the_noise_that_was_drawn_and_its_proofs(name):
    one, watch = CATALOGUE[name], Watch()
    question, data = one.asked(one.budget), next(one.pools())[0]
    with WatchedCurator(data, question.study, budget=Budget(10), noise=SeededNoise(1)) as session:
        answer = question.ask(session.watch(watch), epsilon=one.budget.epsilon, delta=one.budget.delta)
    drawn = {f"mechanisms/{passed.law.to_dict()['mechanism']}.proof.md" for passed in watch.passed}
    assert {page for page in answer.guarantee.pages if page.startswith("mechanisms/")} == drawn
    assert f"mechanisms/{answer.details['mechanism']}.proof.md" in drawn


def test_losses_of_gaussian_noise_add_up_in_squares():
    total = Loss(mu=0.3) + Loss(mu=0.4) + Loss(epsilon=0.5)
    exact = float(epsilon_of(Fraction(1, 2), Fraction(1, 10**6)))
    assert total.at(1e-6) == pytest.approx(0.5 + exact, rel=1e-9)
    assert gaussian_epsilon(0.5, 0.0) == np.inf


def test_an_unknown_name_is_refused():
    with pytest.raises(ParameterError, match="CV-A009"):
        chosen(["wieghting"], False)
    assert set(chosen(["weighting"], False)) >= {"ate/weighting/outcome", "groups/weighting/outcome"}


def test_another_budget_is_audited_as_asked():
    one = replace(CATALOGUE["ate/difference_in_means/outcome"], places=(0,))
    report = examine_form(one, Budget(2), samples=8)
    assert report.rows[0].ours.found == pytest.approx(2)
    assert report.rows[1].verdict is Verdict.INCONCLUSIVE
