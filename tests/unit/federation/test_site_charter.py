"""A site's account has a charter made of its declaration, and names who asked."""

import counterveil as cv


def account(site):
    with cv.open_ledger(site.file.ledger) as ledger:
        return ledger.account(site.file.dataset)


def test_what_is_public_follows_from_the_levels_that_the_policy_allows(new_site, trial):
    shown = {trial.study.treatment, *trial.study.covariates}
    assert set(account(new_site("North")).charter.public) == shown
    private = account(new_site("South", protects=["record"]))
    assert private.charter.public == ()
    assert private.charter.outcomes == (trial.study.outcome,)


def test_a_policy_that_is_widened_later_does_not_make_private_columns_public(new_site):
    site = new_site("South", protects=["record"])
    charter = account(site).charter
    assert [unit.value for unit in charter.protects] == ["record"]
