"""The text of a drafted study file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from counterveil.data.documents import OPEN, toml_key, toml_value
from counterveil.data.domains import Range
from counterveil.data.labels import Label, LabelIndex, number_of, plain_number
from counterveil.drafting import codebooks, names
from counterveil.drafting.placing import CANDIDATE, Placed, declared_domain
from counterveil.errors import printable, refusal
from counterveil.privacy import SIMULATED, exact

if TYPE_CHECKING:
    from counterveil.drafting.draft import Draft

_MOST_CANDIDATES = 6
# Meanings of labels by which a codebook says which arm others are compared with.
_CONTROL = ("control", "reference")


def lines(made: Draft) -> Iterator[str]:
    """Yield the lines of the study file; open questions are written as "?"."""
    count = Counter(made.places.values())
    read = (
        "Ranges and labels under [estimated] were released privately."
        if made.estimated
        else "No row was read."
    )
    if made.simulated:
        yield f"# {SIMULATED}"
    yield f"# Drafted from {_safe(made.origin)}. {read}"
    yield f'# Answer every "{OPEN}", then run: counterveil check DATA --study FILE'
    yield ""
    yield from _treatment(made)
    yield ""
    if len(made.all_of("outcome")) < 2:
        yield from _outcome(made)
        yield ""
    yield _said(
        "randomised",
        made.answers.get("randomised", OPEN),
        "true for a trial, false for an observational study",
    )
    if "treated_share" in made.answers:
        yield _said("treated_share", _number(made.answers["treated_share"], "treated_share"))
    for key in ("score", "where"):
        if key in made.answers:
            yield _said(key, made.answers[key])
    yield from _units(made)
    if isinstance(made.answers.get("missing"), str):
        yield _said("missing", made.answers["missing"])
    yield ""
    yield f"# {count['ignored']} unused columns."
    for reason in dict.fromkeys(made.set_aside.values()):
        listed = ", ".join(name for name, why in made.set_aside.items() if why == reason)
        yield f"# Set aside ({reason}): {_safe(listed)}"
    yield _said("ignored", [each.name for each in made.columns if each.role == "ignored"])
    if count[CANDIDATE]:
        yield ""
        yield f"# Candidates: {_safe(', '.join(each.name for each in made.all_of(CANDIDATE)))}"
        yield _said("covariates", OPEN, 'choose them: --covariate NAME, --covariate "lab_*", --covariate all')
    yield from _tables(made)


def _tables(made: Draft) -> Iterator[str]:
    several = made.all_of("outcome")
    if len(several) > 1:
        yield ""
        yield "[outcomes]"
        yield from (_said(each.name, _range(each, made), _about(each)) for each in several)
    if CANDIDATE not in made.places.values():
        covariates = made.all_of("covariate")
        yield ""
        yield f"# {len(covariates)} covariates. All must be measured before treatment began."
        yield "[covariates]"
        yield from map(_covariate, covariates)
    yield ""
    yield "# Rules for missing values; without one, a missing value is refused."
    yield '# age = { fill = 50 }   or   age = "drop"'
    missing = made.answers.get("missing", {})
    if isinstance(missing, Mapping):
        yield "[missing]"
        yield from (_said(name, rule) for name, rule in missing.items())
    if made.estimated:
        yield ""
        yield "# Released from these data and charged apart, not known beforehand."
        yield "[estimated]"
        yield from (_said(name, cost) for name, cost in made.estimated.items())


def _treatment(made: Draft) -> Iterator[str]:
    given, placed = made.answers, made.role("treatment")
    if placed is None:
        yield _said("treatment", OPEN, _candidates(made, (codebooks.BINARY, codebooks.CATEGORIES, None)))
        yield _said("treated", given.get("treated", OPEN), "the label that means treated")
        return
    yield _said("treatment", placed.name, _about(placed))
    labels: list[Label] = [label for label, _ in placed.entry.labels]
    treated, control = given.get("treated"), given.get("control", given.get("reference"))
    marked = [label for label, said in placed.entry.labels if said.lower() in _CONTROL]
    if control is None and treated is None and len(marked) == 1:
        control = marked[0]
    if "arms" in given or (len(labels) > 2 and treated is None):
        yield _said("arms", list(given.get("arms", labels)))
        yield _said(
            "reference", OPEN if control is None else control, "the arm that others are compared with"
        )
        return
    numbers: dict[Any, Label] = {number_of(label): label for label in labels}
    zero_one = set(numbers) == {0, 1} or (placed.entry.kind == codebooks.BINARY and not labels)
    if treated is None and control is None and zero_one:
        treated, control = numbers.get(1, 1), numbers.get(0, 0)
    if len(labels) == 2:
        control = _other(labels, treated) if control is None and treated is not None else control
        treated = _other(labels, control) if treated is None and control is not None else treated
    yield _said("treated", OPEN if treated is None else treated, _listed_labels(placed))
    if control is not None:
        yield _said("control", control)
    # Some labels of the codebook are neither: their rows are left out.
    if "others" in given or (control is not None and len(labels) > 2):
        yield _said("others", given.get("others", "leave out"), "rows of the other arms")


def _other(labels: list[Label], one: Any) -> Label | None:
    """Return the other of two labels, None where this is neither."""
    place = LabelIndex(labels).code(one)
    return None if place is None else labels[1 - place]


def _outcome(made: Draft) -> Iterator[str]:
    placed, event = made.role("outcome"), made.role("event")
    if placed is None:
        yield _said("outcome", OPEN, _candidates(made, (codebooks.RANGE, codebooks.BINARY, None)))
    else:
        yield _said("outcome", placed.name, _about(placed))
    if event is None:
        comment = "lowest and highest possible value; beyond, it is clamped"
        yield _said("outcome_range", _range(placed, made), comment)
        return
    yield _said("event", event.name, "1 where the event ended follow-up, 0 where not")
    grid, known = made.answers.get("grid"), None if placed is None else placed.entry.high
    horizon = made.answers.get("horizon", known)
    if horizon is not None or grid is None or isinstance(grid, int):
        yield _said("horizon", OPEN if horizon is None else _number(horizon, "horizon"), "end of follow-up")
    if grid is not None:
        yield _said("grid", grid)


def _range(placed: Placed | None, made: Draft) -> Any:
    """Return the range of an outcome: of its own, else that of all, else an open question."""
    entry, given = None if placed is None else placed.entry, made.answers.get("outcome_range")
    told = placed is not None and placed.told is not None
    if (given is None or told) and entry is not None:
        if entry.kind == codebooks.BINARY:
            given = (0, 1)
        elif entry.low is not None and entry.high is not None:
            given = (entry.low, entry.high)
    return OPEN if given is None else [plain_number(bound) for bound in _bounds(given)]


def _bounds(given: Any) -> tuple[Any, Any]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise refusal("CV-P721b", kind=type(given).__name__)
    bounds = Range(given[0], given[1], "the outcome")
    return bounds.lo, bounds.hi


def _units(made: Draft) -> Iterator[str]:
    """Yield whose rows are, and the clusters of people."""
    person, order, cluster = (made.role(role) for role in ("person", "order", "cluster"))
    if person is not None:
        told = made.answers.get("person")
        table = dict(told) if isinstance(told, Mapping) else {"column": person.name}
        if order is not None:
            table["order"] = order.name
        if person.entry.high is not None:
            table.setdefault("max_rows_per_person", person.entry.high)
        if "max_rows_per_person" in table:
            table.setdefault("order", OPEN)
        yield _said(
            "person",
            person.name if set(table) == {"column"} else table,
            "a person with all their rows is protected",
        )
    if cluster is not None:
        told = made.answers.get("cluster")
        yield _said("cluster", dict(told) if isinstance(told, Mapping) else cluster.name)


def _covariate(placed: Placed) -> str:
    comment, entry = _about(placed), placed.entry
    told = declared_domain(placed)
    if told == {"range": OPEN} and (entry.low is not None or entry.high is not None):
        low, high = ("?" if bound is None else bound for bound in (entry.low, entry.high))
        comment = "; ".join(filter(None, (comment, f"the codebook says {low} to {high}")))
    return _said(placed.name, told, comment)


def _about(placed: Placed) -> str:
    """Return what is known of a column, for the comment behind its line."""
    said = [] if placed.entry.title is None else [placed.entry.title]
    meanings = [f"{label} = {meaning}" for label, meaning in placed.entry.labels if meaning]
    said += [", ".join(meanings[:8]) + (", ..." if len(meanings) > 8 else "")] if meanings else []
    said += ["kind guessed from its name"] if placed.guessed else []
    said += [f"its name suggests: {placed.aside}"] if placed.role == "covariate" and placed.aside else []
    return "; ".join(said)


def _listed_labels(placed: Placed) -> str:
    listed = ", ".join(toml_value(label) for label, _ in placed.entry.labels[:_MOST_CANDIDATES])
    return f"one of {listed}" if listed else "the label that means treated"


def _candidates(made: Draft, kinds: tuple[str | None, ...]) -> str:
    """Return columns that could play an open part; for an outcome, first those measured after treatment by name."""
    after = made.columns if codebooks.RANGE in kinds else ()
    fit = [each for each in after if each.aside == names.AFTER and each.role == "ignored"]
    fit += [each for each in made.columns if each.role == CANDIDATE and each.entry.kind in kinds]
    listed = ", ".join(each.name for each in fit[:_MOST_CANDIDATES])
    return f"one of: {listed}{', ...' * (len(fit) > _MOST_CANDIDATES)}" if fit else "name the column"


def _said(key: str, value: Any, comment: str = "") -> str:
    return f"{toml_key(key)} = {toml_value(value)}" + (f"  # {_safe(comment)}" if comment else "")


def _safe(comment: str) -> str:
    """Return a comment as one line without control characters."""
    return " ".join(printable(comment).split())


def _number(value: Any, name: str) -> Any:
    return plain_number(exact(value, name))
