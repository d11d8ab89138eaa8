"""The commands on the way to a study: draft, which writes the file, and check, which says what does not fit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterveil.cli.options import Given, option, shared
from counterveil.cli.requests import STOPPED, charging, check_target, say
from counterveil.errors import CounterveilError, DataError, refusal

if TYPE_CHECKING:
    from counterveil.data import Study
    from counterveil.data.checking import Checked
    from counterveil.drafting import Draft

ANSWERS, BUYING = "Answers", "Buying"


def _answer(metavar: str, text: str, *names: str) -> Any:
    return option(metavar, text, *names, section=ANSWERS)


CodebookFile = Annotated[
    Path | None,
    option(
        "FILE",
        "Codebook: REDCap dictionary or name,kind,low,high,labels (.csv), Table Schema (.json), .sav, .dta, .xpt.",
    ),
]
StudyOut = Annotated[Path | None, option("FILE", "Write the study file here; printed if omitted.", "--out")]
Overwrite = Annotated[bool, option("", "Replace a study file that exists.", "--overwrite")]
Treatment = Annotated[str | None, _answer("COLUMN", "Column of the treatment.")]
Treated = Annotated[str | None, _answer("LABEL", "Label that means treated.")]
Control = Annotated[str | None, _answer("LABEL", "Label that means control.")]
Outcome = Annotated[str | None, _answer("COLUMN", "Column of the outcome.")]
OutcomeRange = Annotated[str | None, _answer("LOW:HIGH", "Lowest and highest possible outcome.")]
Randomised = Annotated[
    bool | None, _answer("", "Whether treatment was assigned at random.", "--randomised/--observational")
]
Person = Annotated[str | None, _answer("COLUMN", "Column that says whose a row is, if people have several.")]
Covariate = Annotated[
    list[str] | None, _answer("COLUMN", "A covariate; if any are named, no other column is one.")
]
Ignore = Annotated[list[str] | None, _answer("COLUMN", "A column that plays no part.")]
Ranges = Annotated[list[str] | None, _answer("COLUMN=LOW:HIGH", "Public range of a covariate.", "--range")]
Labels = Annotated[list[str] | None, _answer("COLUMN=A,B", "Public labels of a covariate.", "--labels")]
WhereAnswer = Annotated[str | None, _answer("CONDITION", "Rows that belong to the study.", "--where")]
Buy = Annotated[
    bool, option("", "Release open ranges and labels privately, and charge them.", "--buy", section=BUYING)
]
BuyEpsilon = Annotated[
    str | None, option("NUMBER", "Privacy loss of all bought columns together.", "--epsilon", section=BUYING)
]
BuyDelta = Annotated[
    str, option("NUMBER", "Needed if labels are bought; far below 1 / n.", "--delta", section=BUYING)
]
Ask = Annotated[
    bool | None,
    option("", "Ask for what is open; by default if a person is at the terminal.", "--ask/--no-ask"),
]


_CHARGED = ("ledger", "dataset", "request_id", "anchor", "analyst")


@shared("data", *_CHARGED, "as_json")
def draft(
    charge: Given,
    codebook: CodebookFile = None,
    out: StudyOut = None,
    overwrite: Overwrite = False,
    ask: Ask = None,
    treatment: Treatment = None,
    treated: Treated = None,
    control: Control = None,
    outcome: Outcome = None,
    outcome_range: OutcomeRange = None,
    randomised: Randomised = None,
    person: Person = None,
    covariate: Covariate = None,
    ignore: Ignore = None,
    ranges: Ranges = None,
    labels: Labels = None,
    where: WhereAnswer = None,
    buy: Buy = False,
    epsilon: BuyEpsilon = None,
    delta: BuyDelta = "0",
) -> None:
    """Draft a study file: every column placed, every open question marked.

    Only the header and the types of the data are read, never a row. Ranges and labels come from the codebook and from
    answers; what nobody said is written as "?", and `counterveil check` lists it. With --buy, open ranges and labels
    are released from the rows with differential privacy for whole records; the study names what that cost.
    """
    from counterveil import drafting
    from counterveil.data.progress import Waiting

    data, as_json = charge["data"], charge["as_json"]
    given: dict[str, Any] = {
        "treatment": treatment,
        "treated": _label(treated),
        "control": _label(control),
        "outcome": outcome,
        "outcome_range": None if outcome_range is None else _bounds("--outcome-range", outcome_range),
        "randomised": randomised,
        "person": person,
        "where": where,
        "covariates": _covariates(covariate, ranges, labels),
        "ignored": ignore,
    }
    _check_new(out, overwrite)
    made = drafting.draft(data, codebook, given)
    if ask if ask is not None else sys.stdin.isatty() and sys.stdout.isatty() and not as_json:
        made = _asked(made, lambda answers: drafting.draft(data, codebook, given | answers))
    with charging(*(charge[name] for name in _CHARGED)) as charged:
        if buy:
            price = _epsilon(epsilon)
            with Waiting("buying ranges and labels", STOPPED):
                made = drafting.buy(
                    data, codebook, made.answers, epsilon=price, delta=delta, **charged.arguments
                )
        if out is not None:
            made.save(out)
        facts = {
            "study": made.toml,
            "places": made.places,
            "open_questions": [each.to_dict() for each in made.open_questions],
        }
        say(facts, _told(made, out, data), as_json, charged if buy else None)


def _check_new(out: Path | None, overwrite: bool) -> None:
    check_target(out)
    if out is not None and out.exists() and not overwrite:
        raise refusal("CV-P722", got=str(out))


def _epsilon(epsilon: str | None) -> str:
    if epsilon is not None:
        return epsilon
    raise refusal("CV-P723b")


def _told(made: Draft, out: Path | None, data: str) -> str:
    if out is None:
        return made.toml.rstrip()
    counts = {role: list(made.places.values()).count(role) for role in ("covariate", "ignored")}
    lines = [
        f"{out}: {counts['covariate']} covariates, {counts['ignored']} ignored, of {len(made.places)} columns"
    ]
    if made.open_questions:
        lines += [f"{len(made.open_questions)} open questions:", *_findings(made.open_questions)]
    lines.append(f"Next: counterveil check {data} --study {out}")
    return "\n".join(lines)


def _asked(made: Draft, again: Callable[[dict[str, Any]], Draft]) -> Draft:
    """Return the draft with the answers that a person typed to what was open; an empty answer leaves it so."""
    answers: dict[str, Any] = {}
    for key, (text, read) in _questions().items():
        while made.document.get(key) == "?":
            typed = _typed(f"{text} (Enter: leave open)")
            if not typed:
                break
            made = _tried(again, answers, made, key, read, typed)
    for name in [each.column for each in made.open_questions if each.column is not None]:
        while name in {each.column for each in made.open_questions}:
            typed = _typed(
                f"{name}: range as LOW:HIGH or labels as A,B (Enter: leave open, {_STOP}: leave all)"
            )
            if typed == _STOP:
                return made
            if not typed:
                break
            chosen = made.answers.get("covariates") or []
            told = dict(chosen) if isinstance(chosen, Mapping) else dict.fromkeys(chosen)
            made = _tried(again, answers, made, "covariates", partial(_with_domain, told, name), typed)
    return made


_STOP = "."


def _questions() -> dict[str, tuple[str, Callable[[str], Any]]]:
    """Return what is asked of a person, and how the answer is read."""
    return {
        "treatment": ("Column of the treatment", str),
        "treated": ("Label that means treated", _label),
        "outcome": ("Column of the outcome", str),
        "outcome_range": ("Lowest and highest possible outcome, as LOW:HIGH", partial(_bounds, "the range")),
        "randomised": ("Was treatment assigned at random (yes, no)", lambda text: text.lower() in _YES),
    }


_YES = ("y", "yes", "true")


def _typed(text: str) -> str:
    typed: str = typer.prompt(text, default="", show_default=False)
    return typed.strip()


def _with_domain(told: dict[str, Any], name: str, text: str) -> dict[str, Any]:
    """Return the covariates with the range or the labels of one more."""
    labels = [_label(part.strip()) for part in text.split(",")]
    return told | {name: _bounds("the range", text) if ":" in text else labels}


def _tried(
    again: Callable[[dict[str, Any]], Draft],
    answers: dict[str, Any],
    made: Draft,
    key: str,
    read: Callable[[str], Any],
    typed: str,
) -> Draft:
    """Return the draft with one more answer, or as it was where that does not fit."""
    try:
        more = answers | {key: read(typed)}
        tried = again(more)
        tried.toml  # noqa: B018 - written now, so that what does not fit shows
    except CounterveilError as error:
        print(f"{error.problem}: {error.got}; {error.fix}", file=sys.stderr)
        return made
    answers.update(more)
    return tried


def _label(text: str | None) -> Any:
    """Return a label from the command line: a number where it reads as one."""
    from counterveil.data.labels import number_of, plain_number

    number = None if text is None else number_of(text)
    return text if number is None else plain_number(number)


def _bounds(name: str, text: str) -> tuple[str, str]:
    low, sign, high = text.partition(":")
    if not sign:
        raise refusal("CV-P721", name=name, text=text)
    return low.strip(), high.strip()


def _covariates(chosen: list[str] | None, ranges: list[str] | None, labels: list[str] | None) -> Any:
    """Return the covariates that were named, and the domains of those that were described."""
    told: dict[str, Any] = {}
    for word in ranges or []:
        name, _, text = word.rpartition("=")
        told[name] = _bounds(f"--range {name}", text)
    for word in labels or []:
        name, _, text = word.rpartition("=")
        told[name] = [_label(part.strip()) for part in text.split(",")]
    if chosen:
        return {name: told.get(name) for name in (*chosen, *told)}
    return told or None


# Check.


_MOST_NAMES = 12
ShowLabels = Annotated[
    bool,
    option("", "List undeclared labels and their counts: for the holder of the data only.", "--show-labels"),
]


@shared("data", "study", "where", "table", "ledger", "dataset", "as_json")
def check(given: Given, show_labels: ShowLabels = False) -> None:
    """Check that the data fit the study file, and list everything that does not, with the lines that mend it.

    For the holder of the data: what is found depends on their rows. Whether the declared ranges suit the values is
    private and not said. With a ledger, the study is compared with the account's charter first. In a database only the
    columns are checked.
    """
    from counterveil.data import Study, open_table
    from counterveil.data.progress import Waiting
    from counterveil.drafting.check import checked

    source = open_table(given["data"], given["table"])
    narrowed = given["where"] is not None
    study = Study.from_toml(given["study"]).narrowed(given["where"]) if narrowed else given["study"]
    with Waiting("check"):
        found = checked(
            source, study, show_labels=show_labels, ledger=given["ledger"], dataset=given["dataset"]
        )
    facts = {
        "fits": found.fits,
        "rows": found.rows,
        "findings": [each.to_dict() for each in found.findings],
    }
    say(facts, "\n".join(_verdict(found)), given["as_json"])
    if not found.fits:
        raise typer.Exit(DataError.exit_code)


def _verdict(found: Checked) -> list[str]:
    from counterveil.report.text import wrapped

    blocking = [each for each in found.findings if each.blocking]
    advice = [each for each in found.findings if not each.blocking]
    lines: list[str] = []
    if blocking:
        count = "1 finding" if len(blocking) == 1 else f"{len(blocking)} findings"
        lines += [f"The data do not fit the study: {count}", *_findings(blocking)]
    elif found.study is not None:
        study = found.study
        names = [*study.covariates]
        listed = ", ".join([*names[:_MOST_NAMES], *(["..."] if len(names) > _MOST_NAMES else [])]) or "none"
        covariates = (
            f"covariates: {listed}" if len(names) <= _MOST_NAMES else f"{len(names)} covariates: {listed}"
        )
        lines += wrapped(
            f"The data fit the study: treatment {study.treatment}, outcome {study.outcome}, {covariates}"
        )
        where = "" if study.where is None else f" where {study.where.text}"
        lines += wrapped(
            "only the columns were checked" if found.rows is None else f"{found.rows} rows{where}"
        )
        lines += wrapped(_clusters(study)) if study.cluster is not None else []
    if advice:
        lines += ["Please consider:", *_findings(advice)]
    return lines


def _clusters(study: Study) -> str:
    assert study.cluster is not None
    column = study.cluster.column
    if study.cluster.whole:
        return f"each is a cluster by {column}, which is protected as a whole and becomes one row"
    return f"in clusters by {column}: intervals allow for dependence within them"


def _findings(listed: Any) -> list[str]:
    """Return the lines of findings, each followed by what would mend it."""
    from counterveil.errors import printable
    from counterveil.report.text import wrapped

    lines: list[str] = []
    for each in listed:
        lines += wrapped(printable(each.what), f"  {each.code}  ")
        lines += [f"      {part}" for part in (each.mend or "").splitlines()]
        lines += [f"      {printable(label)}: {count} rows" for label, count in (each.labels or {}).items()]
    return lines
