"""Accounts of a ledger: refusals, the chain of entries, and what each account allows and has spent."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import Any

from counterveil.accounting.access_policy import DROP, AccessPolicy, Looks, Uses, quoted, rules_of
from counterveil.accounting.composition import Cost, Levels, Remaining, SumRule, Totals, shorten_up
from counterveil.accounting.records import Account, Posting, Row
from counterveil.accounting.sql_store import Store
from counterveil.errors import (
    BudgetError,
    CounterveilError,
    LedgerError,
    filled,
    refusal,
)
from counterveil.privacy import Budget, Charge, Unit, read_written, show, written


def differences(registered: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """Return what two registrations of a data set differ in; empty where they are the same.

    Limits follow from budget and rule, and who asked is no term.
    """
    found = [
        f"{name} {Budget.from_dict(asked[name])}, registered {Budget.from_dict(registered[name])}"
        for name in ("budget", "record_budget")
        if Budget.from_dict(asked[name]) != Budget.from_dict(registered[name])
    ]
    found += [
        f"{name} {asked[name]!r}, registered {registered[name]!r}"
        for name in ("rule", "note")
        if asked[name] != registered[name]
    ]
    before, after = (
        {} if facts["access_policy"] is None else AccessPolicy.from_dict(facts["access_policy"]).to_dict()
        for facts in (registered, asked)
    )
    names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    return found + ([f"access policy: another {', '.join(names)}"] if names else [])


class OverBudgetError(BudgetError):
    """The request costs more than the remaining budget (code CV-B001); nothing was spent.

    Parameters
    ----------
    dataset : str
        Name of the account.
    requested : Budget
        What the request asked for.
    remaining : Remaining
        What remains.
    total : Budget
        The account's total.
    rule : {"sum", "gaussian"}
        How costs add up.
    level : Unit, default Unit.OUTCOME
        Which total is exceeded: that of all answers, or that of answers which protect whole records
        (Unit.RECORD).

    Attributes
    ----------
    dataset : str
        Name of the account.
    requested : Budget
        What the request asked for.
    remaining : Remaining
        What remains.
    total : Budget
        The account's total.
    rule : {"sum", "gaussian"}
        How costs add up.
    level : Unit
        Which total is exceeded.
    difference : (Fraction, Fraction)
        By how much epsilon and delta exceed what remains.

    Examples
    --------
    >>> import counterveil as cv
    >>> from counterveil.accounting import OverBudgetError
    >>> data = cv.datasets.simulated_trial(n=200, effect=0.3)
    >>> with cv.open_ledger(":memory:") as ledger:
    ...     account = ledger.register("trial", cv.Budget(epsilon=1))
    ...     try:
    ...         cv.ate(data.frame, data.study, protects="outcome", epsilon=2, ledger=ledger, dataset="trial")
    ...     except OverBudgetError as error:
    ...         print(error.code, error.difference[0])
    CV-B001 1
    """

    def __init__(
        self,
        dataset: str,
        requested: Budget,
        remaining: Remaining,
        total: Budget,
        rule: str,
        level: Unit = Unit.OUTCOME,
    ) -> None:
        self.dataset = dataset
        self.requested = requested
        self.remaining = remaining
        self.total = total
        self.rule = rule
        self.level = level
        missing = max(requested.epsilon - remaining.epsilon, Fraction(0))
        missing_delta = max(requested.delta - remaining.delta, Fraction(0))
        self.difference = (missing, missing_delta)
        texts = filled(
            "CV-B001",
            dataset=dataset,
            level=" for answers that protect records" if level is Unit.RECORD else "",
            remaining=remaining,
            total=total,
            rule=rule,
            requested=requested,
            gap=_gap(missing, missing_delta),
            fix=_fix(remaining),
        )
        super().__init__("CV-B001", **texts)

    def to_dict(self) -> dict[str, str]:
        """Return the facts for programs.

        Returns
        -------
        dict
            Code and texts, with the requested, remaining and missing amounts as exact rationals in text.
        """
        return super().to_dict() | {
            "dataset": self.dataset,
            "requested_epsilon": str(self.requested.epsilon),
            "requested_delta": str(self.requested.delta),
            "remaining_epsilon": str(self.remaining.epsilon),
            "remaining_delta": str(self.remaining.delta),
            "difference_epsilon": str(self.difference[0]),
            "difference_delta": str(self.difference[1]),
        }

    def __reduce__(self) -> tuple[object, ...]:
        facts = (self.dataset, self.requested, self.remaining, self.total, self.rule, self.level)
        return (type(self), facts)


def _gap(epsilon: Fraction, delta: Fraction) -> str:
    parts = [f"epsilon {show(epsilon)}"] if epsilon else []
    parts += [f"delta {show(delta)}"] if delta else []
    # Under the Gaussian rule a request can fail although its face value looks small enough.
    return " and ".join(parts) or "in squared mu"


def _fix(remaining: Remaining) -> str:
    if remaining.epsilon > 0:
        return f"ask for epsilon {show(remaining.epsilon)} or less; this request spent nothing"
    return "the budget is exhausted: use the answers already released, or ask the data steward"


def unknown_dataset(dataset: str, known: list[str]) -> CounterveilError:
    """Return the refusal for a data set that was never registered."""
    listed = ", ".join(repr(name) for name in known[:10]) or "none yet"
    return refusal("CV-L004", dataset=dataset, listed=listed)


def not_kept(request_id: str, why: LedgerError) -> CounterveilError:
    """Return the refusal for a release or an answer that could not be stored after its budget was spent."""
    return refusal("CV-L065", request_id=request_id, what=why.code, got=why.got)


def cut_off(seq: int, expected: str) -> CounterveilError:
    """Return the refusal for a ledger that lacks an entry which it had earlier."""
    return refusal("CV-L060", seq=seq, expected=expected[:16])


def other_ledger(found: str, expected: str) -> CounterveilError:
    """Return the refusal for a ledger that stands in the place of another."""
    return refusal("CV-L061", expected=expected, found=found)


def checkpoint_failed(place: str, problem: str) -> CounterveilError:
    """Return the refusal for a checkpoint that cannot be read or moved forward."""
    return refusal("CV-L063", problem=problem, place=place)


def check_name(name: str, value: object) -> None:
    """Raise CV-L011 for the name of a data set, a request or an analyst that could be mistaken for another."""
    if not isinstance(value, str) or not 0 < len(value) <= 200:
        raise refusal("CV-L011", name=name, value=value)
    # Control characters and stray spaces would make two names look alike.
    if not value.isprintable() or value != value.strip():
        raise refusal("CV-L011", name=name, value=value)


def read_json(answer: str) -> Any:
    """Return an answer as it was written, or raise CV-L014."""
    try:
        return json.loads(answer)
    except (TypeError, ValueError, RecursionError) as error:
        raise refusal("CV-L014", problem=str(error)) from None


# The hash before the first entry; it names the format, so another format cannot be mistaken for it.
GENESIS = hashlib.sha256(b"counterveil ledger 4").hexdigest()
# What one entry may hold, in characters. Releases and answers are bounded by what databases and readers can hold;
# everything else is known before a budget is reserved and has no reason to be long.
LONGEST_ANSWER = 64 * 2**20
LONGEST_ENTRY = 4 * 2**20
_LONGEST = {"release": 512 * 2**20, "settle": LONGEST_ANSWER}
# Levels of lists and dictionaries within each other that every reader can follow.
DEEPEST = 100


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
# What has nothing inside.
_PLAIN = frozenset({str, int, float, bool, type(None)})


def canonical(facts: dict[str, object]) -> str:
    """Return `facts` as JSON with sorted keys, no spaces, ASCII only: same facts, same text."""
    try:
        return _CANONICAL.encode(facts)
    except (TypeError, ValueError, RecursionError) as error:
        raise _unwritable(str(error)) from None


def _unwritable(got: str) -> CounterveilError:
    return refusal("CV-L014b", deepest=DEEPEST, got=got)


def digest(previous: str, body: str) -> str:
    """Return the SHA-256 of the previous hash, a line feed and the entry's canonical JSON."""
    return hashlib.sha256(f"{previous}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()


def seal(
    seq: int,
    previous: str,
    kind: str,
    dataset: str,
    request_id: str,
    facts: dict[str, object],
    name: str = "",
) -> Row:
    """Return the entry that follows the one whose hash is `previous`."""
    whole = {**facts, "seq": seq, "kind": kind, "dataset": dataset, "request": request_id, "name": name}
    _check_names(whole)
    body = canonical(whole)
    longest = _LONGEST.get(kind, LONGEST_ENTRY)
    if len(body) > longest:
        raise refusal("CV-L066", kind=kind, longest=longest, length=len(body))
    row = Row(seq, kind, dataset, request_id, name, body, previous, digest(previous, body))
    if kind not in _LONGEST:
        _keep(row, whole)
    return row


@dataclass(slots=True)
class ChainEnd:
    """Where the chain of entries ends within one write transaction: nobody else appends before that is over."""

    store: Store
    newest: Row

    def append(
        self, kind: str, dataset: str, request_id: str, facts: dict[str, object], name: str = ""
    ) -> Row:
        """Append an entry with the day, and with the role that the database knows the writer by."""
        stamp = {"at": datetime.now(UTC).date().isoformat()}
        stamp |= {"role": self.store.role} if self.store.role else {}
        row = seal(self.newest.seq + 1, self.newest.hash, kind, dataset, request_id, stamp | facts, name)
        self.store.append(row)
        self.newest = row
        return row


def unseal(row: Row) -> dict[str, Any]:
    """Return the content of an entry after checking its own hash, or raise CV-L016."""
    facts = _read(row)
    if isinstance(facts, str):
        raise damaged(f"entry {row.seq} of the ledger is damaged", facts)
    return facts


# The content of the newest entries that were written or checked, which a request looks at several times.
_KNOWN: dict[Row, Mapping[str, Any]] = {}
_MOST_KNOWN = 16
_TURN = threading.Lock()


def read_entry(row: Row) -> Mapping[str, Any]:
    """Return the same, not to be written to; an entry that equals one written or checked here is not checked again."""
    known = _KNOWN.get(row)
    if known is None:
        known = unseal(row)
        _keep(row, known)
    return known


def _keep(row: Row, facts: Mapping[str, Any]) -> None:
    with _TURN:
        _KNOWN[row] = facts
        if len(_KNOWN) > _MOST_KNOWN:
            del _KNOWN[next(iter(_KNOWN))]


def opening_entry(checkpoint: str | None) -> Row:
    """Return entry 0 of a new ledger: a random id, and the place of a further checkpoint if one is named."""
    return seal(0, GENESIS, "open", "", "", {"ledger": uuid.uuid4().hex, "checkpoint": checkpoint})


def study_of(request_id: str) -> str:
    """Return what stands before the "@" of a request id; requests of one study have one running total."""
    study, sign, _ = request_id.partition("@")
    return study if sign else ""


def fault(row: Row) -> str | None:
    """Return what is wrong with one entry taken by itself, None if nothing is."""
    found = _read(row)
    return found if isinstance(found, str) else None


def _read(row: Row) -> dict[str, Any] | str:
    """Return the content of an entry, or what is wrong with it."""
    if digest(row.previous, row.body) != row.hash:
        return "its hash does not match its content"
    try:
        facts: dict[str, Any] = json.loads(row.body)
        written = canonical(facts) if isinstance(facts, dict) else ""
    except (ValueError, RecursionError):
        return "its content is not JSON"
    except LedgerError:
        return "its content is not in canonical form"
    if written != row.body:
        return "its content is not in canonical form"
    columns = (row.seq, row.kind, row.dataset, row.request_id, row.name)
    if columns != tuple(facts.get(name) for name in ("seq", "kind", "dataset", "request", "name")):
        return "its columns do not match its content"
    return facts


def _check_names(value: object, depth: int = 0) -> None:
    """Refuse names that JSON would turn into texts, and depths that a reader may not follow."""
    if depth > DEEPEST:
        raise _unwritable(f"more than {DEEPEST} levels")
    inside: Iterable[object] = ()
    if isinstance(value, dict):
        strange = next((name for name in value if type(name) is not str), None)
        if strange is not None:
            raise _unwritable(f"a dictionary with a name of type {type(strange).__name__}")
        inside = value.values()
    elif isinstance(value, list | tuple):
        inside = value
    for each in inside:
        if type(each) not in _PLAIN:
            _check_names(each, depth + 1)


# What the entries of a store say about one account, and what its access policy allows a request to use.
#
# A fixed number of lookups, however many entries there are.


def registration_of(store: Store, dataset: str) -> Row:
    """Return the entry that registered a data set, or raise CV-L004."""
    row = store.registration(dataset)
    if row is None:
        raise unknown_dataset(dataset, [each.dataset for each in store.registrations()])
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
    def published(self) -> tuple[str, ...]:
        """The columns that were made public before the first request."""
        rows = self._store.published(self.row.dataset)
        return tuple(sorted({name for row in rows for name in read_entry(row)["public"]}))

    def unpublished(self, columns: Iterable[str]) -> tuple[str, ...]:
        """Return those of the columns that the first request would make public without their being published before.

        None where an access policy says what is public, or where the ledger ends with the process.
        """
        if self.access_policy is not None or not self._store.lasting:
            return ()
        return tuple(name for name in columns if name not in self.published)

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
            raise damaged("the ledger is damaged", f"entry {self.row.seq} was replaced")
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


def account_of(known: Standing) -> Account:
    """Return what a data set was granted, what is spent and what is left."""
    levels, totals = known.levels, known.totals
    return Account(
        dataset=known.row.dataset,
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
        policy_registered=known.registration["access_policy"] is not None,
        published=known.published,
        note=str(known.registration["note"]),
    )


def account_remarks(known: Standing, unit: Unit, treatment: str) -> tuple[str, ...]:
    """Return what the guarantee of an answer that protects `unit` must say about its account."""
    dataset, said = known.row.dataset, []
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


def check_request(
    access_policy: AccessPolicy | None,
    uses: Uses,
    face: Budget,
    request_id: str = "",
    lasting: bool = True,
    published: tuple[str, ...] = (),
) -> None:
    """Raise the refusal of a request that the access policy does not allow; `face` is what it asks to spend."""
    check_study(access_policy, uses, lasting, published)
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
    if rows < access_policy.min_rows:
        raise _not_allowed(f"at least {access_policy.min_rows:,} rows", f"{rows:,} rows")


def check_arm(access_policy: AccessPolicy, smallest: int | None) -> None:
    """Raise the refusal of a request with a smaller arm than the access policy allows, or one of no public size."""
    least = access_policy.min_arm
    if smallest is None:
        raise refusal("CV-L070", least=least)
    if smallest < least:
        raise _not_allowed(f"at least {least:,} rows in each arm", f"an arm of {smallest:,}")


def check_offer(known: Standing, uses: Uses, face: Budget, request_id: str, lasting: bool) -> None:
    """Raise what a request would be refused for, as far as its draws are not needed to tell.

    Where losses do not simply add up, only the draws say what a request costs, and the budget is left to `reserve`.
    """
    check_request(known.access_policy, uses, face, request_id, lasting, known.published)
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
            raise _not_planned("another request id: this is the name of a planned look", repr(request_id))
        return
    planned, own = looks.planned[uses.look - 1].budget, looks.request_id(uses.look)
    if request_id != own:
        raise _not_planned(f"look {uses.look} with the request id {own!r}", repr(request_id))
    if face != planned:
        raise _not_planned(f"look {uses.look} with {planned}", str(face))


def check_study(
    access_policy: AccessPolicy | None, uses: Uses, lasting: bool = True, published: tuple[str, ...] = ()
) -> None:
    """Raise the refusal of a study that the access policy does not allow at this level, whatever it would spend.

    Without an access policy all goes but a free choice of private rows, which only a ledger that does not last allows;
    columns that were published are not private.
    """
    if access_policy is None:
        if lasting:
            check_shown(AccessPolicy(public=published) if published else None, uses)
        return
    if uses.unit not in access_policy.protects:
        allowed = " or ".join(f"protects={unit.value!r}" for unit in access_policy.protects)
        raise _not_allowed(allowed, f"protects={uses.unit.value!r}")
    if (uses.person, uses.protected_cluster) != (access_policy.person, access_policy.cluster):
        raise refusal(
            "CV-L049",
            expected=_unit_words(access_policy.person, access_policy.cluster),
            got=_unit_words(uses.person, uses.protected_cluster),
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
        )


def _check_subsets(access_policy: AccessPolicy | None, uses: Uses, public: frozenset[str]) -> None:
    listed = frozenset(() if access_policy is None else access_policy.subsets)
    # How many people or clusters a subset has shows too, so the columns that name them have to be public as well.
    free = public.issuperset({*uses.read} - {uses.outcome})
    for subset in uses.subsets:
        if subset not in listed and not free:
            raise refusal("CV-L080", listed=quoted(sorted(listed)), subset=subset, unit=uses.unit.value)


def _check_look(looks: Looks | None, uses: Uses) -> None:
    """Raise CV-L083 for a look that the policy does not plan, and for other requests that read an outcome with looks.

    As a covariate the outcome is looked at too: balance, moments and models compare it between the arms.
    """
    if uses.look is None:
        if looks is not None and looks.outcome in uses.read:
            role = "about" if looks.outcome in uses.outcomes else "beside"
            raise _not_planned(
                f"the planned looks at {looks.outcome!r}", f"{uses.question} {role} {looks.outcome!r}"
            )
    elif looks is None or looks.outcome not in uses.outcomes:
        plan = "no looks" if looks is None else f"looks at {looks.outcome!r} alone"
        raise _not_planned(
            f"an account whose access policy plans this look; it plans {plan}", f"look {uses.look}"
        )
    elif not 1 <= uses.look <= len(looks.planned):
        raise _not_planned(f"look 1 to {len(looks.planned)}", f"look {uses.look}")


def check_order(
    store: Store, dataset: str, looks: Looks | None, uses: Uses, asked: Mapping[str, object]
) -> None:
    """Raise CV-L083 for a look whose predecessor was not asked, or asked about another study."""
    if looks is None or uses.look in (None, 1):
        return
    assert uses.look is not None
    before = store.of_request(dataset, looks.request_id(uses.look - 1), "reserve")
    if before is None:
        raise _not_planned(f"look {uses.look - 1} first", f"look {uses.look}")
    known = unseal(before)["description"]
    changed = [name for name in ("study", "protects", "estimand") if known.get(name) != asked.get(name)]
    if changed:
        raise _not_planned("the question of the earlier looks", f"another {quoted(changed)}")


def check_missing(access_policy: AccessPolicy, columns: tuple[str, ...], missing: Mapping[str, str]) -> None:
    """Raise CV-L043 where a study treats missing values of a private column in another way than the access policy.

    `columns` starts with the treatment. Rows that a public column leaves out are a subset: attaching them tells whether
    their arms are too small, so where the treatment is private the access policy lists these columns too.
    """
    listed = rules_of(columns[0], missing, access_policy.public)
    for name in columns:
        wanted, given = access_policy.missing.get(name), listed.get(name)
        if given != wanted and (given is not None or name not in access_policy.public):
            raise refusal("CV-L043", name=name, expected=_rule_words(wanted), got=_rule_words(given))


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
    raise refusal("CV-L042", allowed=allowed, got=got)


def _made_public(private: list[str], uses: Uses, access_policy: AccessPolicy) -> CounterveilError:
    listed = quoted(private[:10]) + (", ..." if len(private) > 10 else "")
    return refusal("CV-L041", listed=listed, public=quoted(access_policy.public[:20]), unit=uses.unit.value)


def _not_allowed(expected: str, got: str) -> CounterveilError:
    return refusal("CV-L044", expected=expected, got=got)


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


def _not_planned(expected: str, got: str) -> CounterveilError:
    return refusal("CV-L083", expected=expected, got=got)


def damaged(problem: str, got: str) -> CounterveilError:
    """Return CV-L016."""
    return refusal("CV-L016", problem=problem, got=got)
