"""Decides what an account allows: a request is compared with the charter. Nothing else decides this.

Refusals depend on the charter and on the request, never on rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from counterveil.accounting.charter import DROP, Charter, Uses, quoted
from counterveil.errors import LedgerError
from counterveil.privacy import Budget, Unit, show

_STEWARD = "the charter was fixed at registration or by the first study, and never changes"


def check_request(charter: Charter, uses: Uses, face: Budget) -> None:
    """Raise the refusal of a request that the charter does not allow; `face` is what the request asks to spend."""
    check_study(charter, uses)
    if charter.methods is not None and uses.method not in charter.methods:
        raise _not_allowed(f"one of the methods {quoted(charter.methods)}", f"method={uses.method!r}")
    if charter.most_epsilon is not None and face.epsilon > charter.most_epsilon:
        raise _not_allowed(f"epsilon at most {show(charter.most_epsilon)} a request", str(face))
    if charter.most_delta is not None and face.delta > charter.most_delta:
        raise _not_allowed(f"delta at most {show(charter.most_delta)} a request", str(face))


def check_study(charter: Charter, uses: Uses) -> None:
    """Raise the refusal of a study that the charter does not allow at this level, whatever it would spend."""
    if uses.unit not in charter.protects:
        allowed = " or ".join(f"protects={unit.value!r}" for unit in charter.protects)
        raise _not_allowed(allowed, f"protects={uses.unit.value!r}")
    public = frozenset(charter.public)
    shown = uses.made_public if uses.order is None else (*uses.made_public, uses.order)
    private = [name for name in shown if name not in public]
    if private:
        raise _made_public(private, uses, charter)
    if uses.unit is Unit.OUTCOME:
        _check_outcome(charter, uses.outcome)
    check_missing(charter, uses.columns, uses.missing)
    if uses.unproved and not charter.unproved:
        raise LedgerError(
            "CV-L045",
            "this account refuses forms without a finite-sample guarantee",
            expected='a request without accept="unproved"',
            got=f"method={uses.method!r}, accepted as unproved",
            fix="use cv.ate or cv.cate, whose methods are proved, or ask without a persistent ledger; "
            "a steward allows such forms with unproved = true in the charter",
        )


def check_missing(charter: Charter, columns: tuple[str, ...], missing: Mapping[str, str]) -> None:
    """Raise CV-L043 where a study treats missing values of a private column in another way than the charter."""
    public = frozenset(charter.public)
    for name in columns:
        wanted, given = charter.missing.get(name), missing.get(name)
        if name not in public and given != wanted:
            raise LedgerError(
                "CV-L043",
                f"this study's rule for missing values of {name!r} differs from the account's",
                expected=_rule_words(wanted),
                got=_rule_words(given),
                fix=f"declare the account's rule: two rules for one private column would show how many of its "
                f"values are missing; {_STEWARD}",
            )


def check_same(dataset: str, registered: Charter | None, given: Charter) -> None:
    """Raise CV-L046 where another charter is given than the one that the account has."""
    if registered != given:
        raise LedgerError(
            "CV-L046",
            f"data set {dataset!r} has a different charter",
            expected="the registered charter, or none"
            + (f": digest {registered.digest()[:16]}" if registered is not None else "; none was registered"),
            got=f"a charter with digest {given.digest()[:16]}",
            fix=f"leave charter= out; {_STEWARD}",
        )


def _check_outcome(charter: Charter, outcome: str) -> None:
    if outcome in charter.public:
        got = f"the outcome {outcome!r}, which is public in this account"
    elif charter.outcomes is not None and outcome not in charter.outcomes:
        got = f"the outcome {outcome!r}"
    else:
        return
    allowed = "a private column" if charter.outcomes is None else f"one of {quoted(charter.outcomes)}"
    raise LedgerError(
        "CV-L042",
        "this account cannot protect this outcome at outcome level",
        expected=f"as outcome {allowed}",
        got=got,
        fix=f"ask about another outcome, or with protects='record'; {_STEWARD}",
    )


def _made_public(private: list[str], uses: Uses, charter: Charter) -> LedgerError:
    listed = quoted(private[:10]) + (", ..." if len(private) > 10 else "")
    ordered = uses.order in private
    level = "as the public order of rows" if ordered else f"with protects={uses.unit.value!r}"
    return LedgerError(
        "CV-L041",
        f"this study would make private columns public: {listed}",
        expected=f"treatment, covariates and order of rows among the account's public columns: "
        f"{quoted(charter.public[:20])}",
        got=f"{listed} used {level}, where exact values, counts and balance are shown",
        fix="leave these columns out, or protect whole records: protects='record'; a steward who wants them public "
        f"says so when the account is registered; {_STEWARD}",
    )


def _not_allowed(expected: str, got: str) -> LedgerError:
    return LedgerError(
        "CV-L044",
        "the charter of this account does not allow this request",
        expected=expected,
        got=got,
        fix=f"ask within these limits; nothing was spent; {_STEWARD}",
    )


def _rule_words(rule: str | None) -> str:
    if rule is None:
        return "no rule: no value may be missing"
    return (
        "Drop(): which rows have no value is public" if rule == DROP else "Fill(...): which rows is private"
    )
