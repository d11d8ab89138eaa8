"""What the entries of a store say about one account, and what its access policy allows a request to use.

A fixed number of lookups, however many entries there are."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import Any

from counterveil.accounting import refusals
from counterveil.accounting.access_policy import DROP, AccessPolicy, Looks, Uses, quoted, rules_of
from counterveil.accounting.chain import canonical, read_entry, study_of, unseal
from counterveil.accounting.composition import shorten_up
from counterveil.accounting.filters import Cost, Levels, SumRule, Totals
from counterveil.accounting.records import Account, Posting, Row, Store
from counterveil.accounting.refusals import OverBudgetError
from counterveil.errors import CounterveilError, refusal
from counterveil.privacy import Budget, Charge, Unit, read_written, show, written


def registration_of(store: Store, dataset: str) -> Row:
    """Return the entry that registered a data set, or raise CV-L004."""
    row = store.registration(dataset)
    if row is None:
        raise refusals.unknown_dataset(dataset, [each.dataset for each in store.registrations()])
    return row


class Standing:
    """Where an account stands, by its registration and its newest request; each is read once, when it is first needed.

    For as long as nobody can write to the store.
    """

    def __init__(self, store: Store, dataset: str) -> None:
        self.row = registration_of(store, dataset)
        self._store = store

    @cached_property
    def registration(self) -> Mapping[str, Any]:
        """What was registered."""
        return read_entry(self.row)

    @cached_property
    def levels(self) -> Levels:
        """What was granted, and how losses add up."""
        return Levels.from_dict(self.registration)

    @cached_property
    def _latest(self) -> Mapping[str, Any] | None:
        row = self._store.latest_reserve(self.row.dataset)
        return None if row is None else read_entry(row)

    @cached_property
    def access_policy(self) -> AccessPolicy | None:
        """The access policy that was registered, or that the first request fixed; None before the first."""
        own = read_access_policy(self.registration)
        return own if own is not None or self._latest is None else read_access_policy(self._latest)

    @cached_property
    def totals(self) -> Totals:
        """What all requests so far cost and how many they were."""
        latest = self._vouching()
        return self.levels.nothing() if latest is None else Totals.from_dict(latest)

    @property
    def counted(self) -> tuple[int, int]:
        """How many requests there were, and how many of them in a form that is not proved."""
        latest = self._vouching()
        return (0, 0) if latest is None else (int(latest["requests"]), int(latest["unproved"]))

    def _vouching(self) -> Mapping[str, Any] | None:
        """Return the newest request; it vouches for the registration, which may lie far behind it."""
        if self._latest is not None and self._latest["registered"] != self.row.hash:
            raise refusal(
                "CV-L016", problem="the ledger is damaged", got=f"entry {self.row.seq} was replaced"
            )
        return self._latest


def read_access_policy(facts: Mapping[str, Any]) -> AccessPolicy | None:
    """Return the access policy in an entry, None where it has none."""
    return (
        None if facts["access_policy"] is None else _written_access_policy(canonical(facts["access_policy"]))
    )


@lru_cache(maxsize=64)
def _written_access_policy(text: str) -> AccessPolicy:
    """Return an access policy by its text: every request of an account repeats it."""
    return AccessPolicy.from_dict(json.loads(text))


def account_of(store: Store, dataset: str) -> Account:
    """Return what a data set was granted, what is spent and what is left."""
    known = Standing(store, dataset)
    levels, totals = known.levels, known.totals
    return Account(
        dataset=dataset,
        budget=levels.outcome.budget,
        record_budget=levels.record.budget,
        rule=levels.outcome.name,
        spent=levels.outcome.spent(totals.outcome),
        record_spent=levels.record.spent(totals.record),
        remaining=levels.remaining(totals, Unit.OUTCOME),
        record_remaining=levels.remaining(totals, Unit.RECORD),
        requests=totals.requests,
        unproved=totals.unproved,
        access_policy=known.access_policy,
        access_policyed=known.registration["access_policy"] is not None,
        note=str(known.registration["note"]),
    )


def account_remarks(store: Store, dataset: str, unit: Unit, treatment: str) -> tuple[str, ...]:
    """Return what the guarantee of an answer that protects `unit` must say about its account."""
    known, said = Standing(store, dataset), []
    requests, unproved = known.counted
    if unproved:
        said.append(
            f"the account {dataset!r} has run {unproved} of {requests} requests in a form without "
            "a finite-sample guarantee: its total is not proved"
        )
    public = () if known.access_policy is None or unit.treatment_public else known.access_policy.public
    shown = [name for name in public if name == treatment or not unit.covariates_public]
    if shown:
        said.append(
            f"other answers of the account {dataset!r} may show its public columns exactly, whatever this "
            f"one protects: {quoted(shown)}"
        )
    return tuple(said)


def entry_of(row: Row) -> Posting:
    """Return a stored entry with its content, or raise CV-L016."""
    return Posting(row.seq, row.kind, row.dataset, row.request_id, unseal(row), row.hash)


def newest_requests(store: Store, dataset: str, most: int, before: int | None) -> list[Posting]:
    """Return at most so many reserve entries of a data set, newest first; those before a number if one is given."""
    found: list[Posting] = []
    while len(found) < most and (row := store.latest_reserve(dataset, before)) is not None:
        found.append(entry_of(row))
        before = row.seq
    return found


# Who asks: the name that every entry of a ledger carries.


def system_user() -> str:
    """Return the operating system's name for the user who runs this process, or its number."""
    if not hasattr(os, "getuid"):
        return os.environ.get("USERNAME", "unknown")[:200] or "unknown"
    # Environment variables are the user's to set; the real user id is not.
    return _user_name(os.getuid())


@cache
def _user_name(user: int) -> str:
    import pwd

    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = ""
    return name if name.isprintable() and 0 < len(name) <= 200 and name == name.strip() else f"uid {user}"


# Running totals of studies: what the requests called `study@...` cost together, by face value.
#
# A site of a federation limits what one study may spend. The newest reserve entry of a study carries the sum, so that
# looking it up costs the same however many requests there were.


def study_spent(
    store: Store, dataset: str, study: str, before: int | None = None
) -> tuple[Fraction, Fraction]:
    """Return the epsilon and delta that a study was charged, or was charged before an entry."""
    row = store.latest_of_study(dataset, study, before) if study else None
    return (Fraction(0), Fraction(0)) if row is None else read_total(unseal(row)["study"])


def read_total(facts: dict[str, Any]) -> tuple[Fraction, Fraction]:
    """Return the two sums of a written total."""
    return read_written(facts["epsilon"]), read_written(facts["delta"])


def study_total(spent: tuple[Fraction, Fraction], request_id: str, charge: Charge) -> dict[str, str] | None:
    """Return the total after one more charge as facts, None for a request that belongs to no study."""
    if not study_of(request_id):
        return None
    epsilon, delta = spent[0] + charge.face.epsilon, spent[1] + charge.face.delta
    return {"epsilon": written(shorten_up(epsilon)), "delta": written(shorten_up(delta))}


def study_after(store: Store, dataset: str, request_id: str, charge: Charge) -> dict[str, str] | None:
    """Return the total of a request's study with its own charge."""
    return study_total(study_spent(store, dataset, study_of(request_id)), request_id, charge)


# Decides what an account allows: a request is compared with the access policy. Nothing else decides this.
#
# Refusals depend on the access policy and on the request, never on rows.


_STEWARD = "the access policy was fixed at registration or by the first study, and never changes"


def check_request(
    access_policy: AccessPolicy | None, uses: Uses, face: Budget, request_id: str = "", lasting: bool = True
) -> None:
    """Raise the refusal of a request that the access policy does not allow; `face` is what it asks to spend."""
    check_study(access_policy, uses, lasting)
    if access_policy is None:
        return
    if access_policy.methods is not None and uses.method not in access_policy.methods:
        raise _not_allowed(f"one of the methods {quoted(access_policy.methods)}", f"method={uses.method!r}")
    if access_policy.max_epsilon is not None and face.epsilon > access_policy.max_epsilon:
        raise _not_allowed(f"epsilon at most {show(access_policy.max_epsilon)} a request", str(face))
    if access_policy.max_delta is not None and face.delta > access_policy.max_delta:
        raise _not_allowed(f"delta at most {show(access_policy.max_delta)} a request", str(face))
    if access_policy.looks is not None:
        _check_planned(access_policy.looks, uses, face, request_id)


def check_rows(access_policy: AccessPolicy, rows: int) -> None:
    """Raise the refusal of a request about fewer rows than the access policy allows; their number is public."""
    if rows < access_policy.least_rows:
        raise _not_allowed(f"at least {access_policy.least_rows:,} rows", f"{rows:,} rows")


def check_offer(known: Standing, uses: Uses, face: Budget, request_id: str, lasting: bool) -> None:
    """Raise what a request would be refused for, as far as its draws are not needed to tell.

    Where losses do not simply add up, only the draws say what a request costs, and the budget is left to `reserve`.
    """
    check_request(known.access_policy, uses, face, request_id, lasting)
    rule = known.levels.outcome
    if isinstance(rule, SumRule):
        totals_after(known, uses, rule.cost(Charge(face, ())), face)


def totals_after(known: Standing, uses: Uses, cost: Cost, face: Budget) -> Totals:
    """Return the totals with one request more, or raise CV-B001 where they exceed the budget."""
    levels, before = known.levels, known.totals
    after = before.after(uses.unit, cost, uses.unproved)
    full = levels.exceeded(after)
    if full is not None:
        left = levels.remaining(before, uses.unit)
        rule = levels.outcome if full is Unit.OUTCOME else levels.record
        raise OverBudgetError(known.row.dataset, face, left, rule.budget, rule.name, full)
    return after


def _check_planned(looks: Looks, uses: Uses, face: Budget, request_id: str) -> None:
    """Raise CV-L083 for a look at another price, or where its request has another name; a name is asked for once."""
    if uses.look is None:
        if request_id in looks.request_ids:
            raise refusal(
                "CV-L083",
                expected="another request id: this is the name of a planned look",
                got=repr(request_id),
            )
        return
    planned, own = looks.planned[uses.look - 1].budget, looks.request_id(uses.look)
    if request_id != own:
        raise refusal(
            "CV-L083", expected=f"look {uses.look} with the request id {own!r}", got=repr(request_id)
        )
    if face != planned:
        raise refusal("CV-L083", expected=f"look {uses.look} with {planned}", got=str(face))


def check_study(access_policy: AccessPolicy | None, uses: Uses, lasting: bool = True) -> None:
    """Raise the refusal of a study that the access policy does not allow at this level, whatever it would spend.

    Without an access policy all goes but a free choice of private rows, which only a ledger that does not last allows.
    """
    if access_policy is None:
        if lasting:
            check_shown(None, uses)
        return
    if uses.unit not in access_policy.protects:
        allowed = " or ".join(f"protects={unit.value!r}" for unit in access_policy.protects)
        raise _not_allowed(allowed, f"protects={uses.unit.value!r}")
    if (uses.person, uses.protected_cluster) != (access_policy.person, access_policy.cluster):
        raise refusal(
            "CV-L049",
            expected=_unit_words(access_policy.person, access_policy.cluster),
            got=_unit_words(uses.person, uses.protected_cluster),
            steward=_STEWARD,
        )
    check_shown(access_policy, uses)
    _check_look(access_policy.looks, uses)
    public = frozenset(access_policy.public)
    private = [name for name in uses.made_public if name not in public]
    if private:
        raise _made_public(private, uses, access_policy)
    if uses.unit.covariates_public:
        for name in uses.outcomes:
            _check_outcome(access_policy, name)
    check_missing(access_policy, uses.columns, uses.missing)
    if uses.unproved and not access_policy.unproved:
        raise refusal("CV-L045", method=uses.method)


def check_shown(access_policy: AccessPolicy | None, uses: Uses) -> None:
    """Raise the refusal of a study that shows what is private: who is chosen, or which clusters there are.

    Whether the rows of a subset, and each arm of it, fit a study can be asked for nothing, and the clusters are counted
    for nothing, so private columns must not be taken freely. Without a policy every column is private, at all levels.
    """
    public = frozenset(() if access_policy is None else access_policy.public)
    if uses.unit.treatment_public and access_policy is not None:
        return
    _check_subsets(access_policy, uses, public)
    if uses.named_cluster is None:
        return
    named = frozenset(() if access_policy is None else access_policy.clusters)
    assigned = frozenset(() if access_policy is None else access_policy.assigned_clusters)
    free = {uses.named_cluster, uses.treatment} if uses.assigned_cluster else {uses.named_cluster}
    listed = assigned if uses.assigned_cluster else named | assigned
    if uses.named_cluster not in listed and not public.issuperset(free):
        field = "assigned_clusters" if uses.assigned_cluster else "clusters"
        raise refusal(
            "CV-L082",
            field=field,
            listed=quoted(sorted(listed)),
            named_cluster=uses.named_cluster,
            unit=uses.unit.value,
            steward=_STEWARD,
        )


def _check_subsets(access_policy: AccessPolicy | None, uses: Uses, public: frozenset[str]) -> None:
    listed = frozenset(() if access_policy is None else access_policy.subsets)
    # How many people or clusters a subset has shows too, so the columns that name them have to be public as well.
    free = public.issuperset({*uses.read} - {uses.outcome})
    for subset in uses.subsets:
        if subset not in listed and not free:
            raise refusal(
                "CV-L080",
                listed=quoted(sorted(listed)),
                subset=subset,
                unit=uses.unit.value,
                steward=_STEWARD,
            )


def _check_look(looks: Looks | None, uses: Uses) -> None:
    """Raise CV-L083 for a look that the policy does not plan, and for other requests that read an outcome with looks.

    As a covariate the outcome is looked at too: balance, moments and models compare it between the arms.
    """
    if uses.look is None:
        if looks is not None and looks.outcome in uses.read:
            role = "about" if looks.outcome in uses.outcomes else "beside"
            raise refusal(
                "CV-L083",
                expected=f"the planned looks at {looks.outcome!r}",
                got=f"{uses.question} {role} {looks.outcome!r}",
            )
    elif looks is None or looks.outcome not in uses.outcomes:
        plan = "no looks" if looks is None else f"looks at {looks.outcome!r} alone"
        raise refusal(
            "CV-L083",
            expected=f"an account whose access policy plans this look; it plans {plan}",
            got=f"look {uses.look}",
        )
    elif not 1 <= uses.look <= len(looks.planned):
        raise refusal("CV-L083", expected=f"look 1 to {len(looks.planned)}", got=f"look {uses.look}")


def check_order(
    store: Store, dataset: str, looks: Looks | None, uses: Uses, asked: Mapping[str, object]
) -> None:
    """Raise CV-L083 for a look whose predecessor was not asked, or asked about another study."""
    if looks is None or uses.look in (None, 1):
        return
    assert uses.look is not None
    before = store.of_request(dataset, looks.request_id(uses.look - 1), "reserve")
    if before is None:
        raise refusal("CV-L083", expected=f"look {uses.look - 1} first", got=f"look {uses.look}")
    known = unseal(before)["description"]
    changed = [name for name in ("study", "protects", "estimand") if known.get(name) != asked.get(name)]
    if changed:
        raise refusal(
            "CV-L083", expected="the question of the earlier looks", got=f"another {quoted(changed)}"
        )


def check_missing(access_policy: AccessPolicy, columns: tuple[str, ...], missing: Mapping[str, str]) -> None:
    """Raise CV-L043 where a study treats missing values of a private column in another way than the access policy.

    `columns` starts with the treatment. Rows that a public column leaves out are a subset: attaching them tells whether
    their arms are too small, so where the treatment is private the access policy lists these columns too.
    """
    listed = rules_of(columns[0], missing, access_policy.public)
    for name in columns:
        wanted, given = access_policy.missing.get(name), listed.get(name)
        if given != wanted and (given is not None or name not in access_policy.public):
            raise refusal(
                "CV-L043", name=name, expected=_rule_words(wanted), got=_rule_words(given), steward=_STEWARD
            )


def check_same(dataset: str, registered: AccessPolicy | None, given: AccessPolicy) -> None:
    """Raise CV-L046 where another access policy is given than the one that the account has."""
    if registered != given:
        raise refusal(
            "CV-L046",
            dataset=dataset,
            expected=f": digest {registered.digest()[:16]}"
            if registered is not None
            else "; none was registered",
            given=given.digest()[:16],
            steward=_STEWARD,
        )


def _check_outcome(access_policy: AccessPolicy, outcome: str) -> None:
    if outcome in access_policy.public:
        got = f"the outcome {outcome!r}, which is public in this account"
    elif access_policy.outcomes is not None and outcome not in access_policy.outcomes:
        got = f"the outcome {outcome!r}"
    else:
        return
    allowed = (
        "a private column" if access_policy.outcomes is None else f"one of {quoted(access_policy.outcomes)}"
    )
    raise refusal("CV-L042", allowed=allowed, got=got, steward=_STEWARD)


def _made_public(private: list[str], uses: Uses, access_policy: AccessPolicy) -> CounterveilError:
    listed = quoted(private[:10]) + (", ..." if len(private) > 10 else "")
    return refusal(
        "CV-L041",
        listed=listed,
        public=quoted(access_policy.public[:20]),
        unit=uses.unit.value,
        steward=_STEWARD,
    )


def _not_allowed(expected: str, got: str) -> CounterveilError:
    return refusal("CV-L044", expected=expected, got=got, steward=_STEWARD)


def _unit_words(person: str | None, cluster: str | None) -> str:
    if cluster is not None:
        return f"cluster={cluster!r}, protects_cluster=True: one cluster with all its rows"
    return "no person=: one row" if person is None else f"person={person!r}: one person with all their rows"


def _rule_words(rule: str | None) -> str:
    if rule is None:
        return "no rule: no value may be missing"
    return (
        "Drop(): which rows have no value is public" if rule == DROP else "Fill(...): which rows is private"
    )
