"""A site's account has an access policy made of its declaration, and names who asked."""

from dataclasses import replace

import counterveil as cv
from counterveil.federation import messages as refusals
from counterveil.federation.messages import Ask, Reply, SiteRequest
from counterveil.federation.site import Site


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
