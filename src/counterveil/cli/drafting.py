"""The commands on the way to a study: draft, which writes the file, and check, which says what does not fit."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterveil.cli.asking import Dialogue, bounds, joined, label
from counterveil.cli.requests import STOPPED, Given, charging, check_target, option, say, shared
from counterveil.errors import DataError, refusal

if TYPE_CHECKING:
    from counterveil.data import Study
    from counterveil.data.checking import Checked
    from counterveil.drafting import Draft

ANSWERS, ESTIMATING = "Answers", "Estimated ranges"


def _answer(metavar: str, text: str, *names: str) -> Any:
    return option(metavar, text, *names, section=ANSWERS)


CodebookFile = Annotated[
    Path | None,
    option(
        "FILE",
        "Codebook: a filled-in template or REDCap dictionary (.csv), Table Schema (.json), .sav, .dta, .xpt.",
    ),
]
Template = Annotated[
    Path | None, option("FILE", "Write a blank codebook (CSV) to fill in a spreadsheet, and stop.")
]
StudyOut = Annotated[
    Path | None,
    option("FILE", "Study file to write; one with open questions is continued. Printed if omitted.", "--out"),
]
Overwrite = Annotated[bool, option("", "Replace a file that exists.", "--overwrite")]
Treatment = Annotated[str | None, _answer("COLUMN", "Column of the treatment.")]
Treated = Annotated[str | None, _answer("LABEL", "Label that means treated.")]
Control = Annotated[str | None, _answer("LABEL", "Label that means control; the reference of several arms.")]
Outcome = Annotated[list[str] | None, _answer("COLUMN", "Column of an outcome, or a pattern.")]
OutcomeRange = Annotated[str | None, _answer("LOW:HIGH", "Lowest and highest possible outcome.")]
Event = Annotated[str | None, _answer("COLUMN", "1 where the event ended follow-up; the outcome is a time.")]
Horizon = Annotated[str | None, _answer("NUMBER", "End of follow-up, for times to an event.")]
Randomised = Annotated[
    bool | None, _answer("", "Whether treatment was assigned at random.", "--randomised/--observational")
]
Person = Annotated[str | None, _answer("COLUMN", "Person ID, if people have several rows.")]
Order = Annotated[str | None, _answer("COLUMN", "Column that puts a person's rows in order.")]
MostRows = Annotated[int | None, _answer("INTEGER", "Count only a person's first rows, with --order.")]
Cluster = Annotated[str | None, _answer("COLUMN", "Column of clusters: schools, clinics, villages.")]
Covariate = Annotated[
    list[str] | None,
    _answer("COLUMN", 'A covariate, or a pattern such as "lab_*"; "all" for all candidates.'),
]
Ignore = Annotated[list[str] | None, _answer("COLUMN", "An unused column, or a pattern.")]
Ranges = Annotated[list[str] | None, _answer("COLUMN=LOW:HIGH", "Public range of a column.", "--range")]
Labels = Annotated[list[str] | None, _answer("COLUMN=A;B", "Public labels of a column.", "--labels")]
WhereAnswer = Annotated[str | None, _answer("CONDITION", "Rows that belong to the study.", "--where")]
EstimateRanges = Annotated[
    bool,
    option(
        "",
        "Release open ranges and labels privately, and charge them.",
        "--estimate-ranges",
        section=ESTIMATING,
    ),
]
RangesEpsilon = Annotated[
    str | None,
    option("NUMBER", "Privacy loss of all estimated columns together.", "--epsilon", section=ESTIMATING),
]
RangesDelta = Annotated[
    str,
    option("NUMBER", "Needed if labels are estimated; far below 1 / n.", "--delta", section=ESTIMATING),
]
Ask = Annotated[
    bool | None,
    option("", "Ask for what is open; by default if a person is at the terminal.", "--ask/--no-ask"),
]


_CHARGED = ("ledger", "dataset", "request_id", "anchor", "analyst")
# Where answers are kept that are typed without --out.
_KEPT = Path("study.toml")


@shared("data", *_CHARGED, "as_json")
def draft(
    charge: Given,
    codebook: CodebookFile = None,
    template: Template = None,
    out: StudyOut = None,
    overwrite: Overwrite = False,
    ask: Ask = None,
    treatment: Treatment = None,
    treated: Treated = None,
    control: Control = None,
    outcome: Outcome = None,
    outcome_range: OutcomeRange = None,
    event: Event = None,
    horizon: Horizon = None,
    randomised: Randomised = None,
    person: Person = None,
    order: Order = None,
    max_rows_per_person: MostRows = None,
    cluster: Cluster = None,
    covariate: Covariate = None,
    ignore: Ignore = None,
    ranges: Ranges = None,
    labels: Labels = None,
    where: WhereAnswer = None,
    estimate_ranges: EstimateRanges = False,
    epsilon: RangesEpsilon = None,
    delta: RangesDelta = "0",
) -> None:
    """Draft a study file: every column placed, every open question marked.

    Only the header and the types of the data are read, never a row. Ranges and labels come from the codebook and from
    answers; what nobody said is written as "?", and `counterveil check` lists it. Covariates are chosen, never assumed.
    Questions can be left with Ctrl-C or "quit": the same command continues the file. With --estimate-ranges, open
    ranges and labels are released from the rows with differential privacy for whole records, and charged.
    """
    from counterveil import drafting
    from counterveil.data.passes import Waiting

    data, as_json = charge["data"], charge["as_json"]
    people = {"column": person, "order": order, "max_rows_per_person": max_rows_per_person}
    told: dict[str, Any] = {
        "treatment": treatment,
        "treated": label(treated),
        "control": label(control),
        "outcomes": outcome,
        "outcome_range": None if outcome_range is None else bounds("--outcome-range", outcome_range),
        "event": event,
        "horizon": horizon,
        "randomised": randomised,
        "person": {key: value for key, value in people.items() if value is not None} or None,
        "cluster": cluster,
        "where": where,
        "covariates": covariate,
        "columns": _described(ranges, labels) or None,
        "ignored": ignore,
    }
    given = {key: value for key, value in told.items() if value is not None}
    if template is not None:
        _check_new(template, overwrite)
        template.write_text(drafting.draft(data, codebook, given).template, encoding="utf-8")
        print(_TEMPLATE.format(template=template, data=data))
        return
    asking = ask if ask is not None else sys.stdin.isatty() and sys.stdout.isatty() and not as_json
    out = _KEPT if out is None and asking else out
    given = _continued(out, overwrite, given)
    made = drafting.draft(data, codebook, given)
    if asking and out is not None:
        dialogue = Dialogue(made, lambda answers: drafting.draft(data, codebook, answers), out)
        made = dialogue.held()
        # Who leaves has not agreed to spend anything.
        estimate_ranges = estimate_ranges and not dialogue.left
    with charging(*(charge[name] for name in _CHARGED)) as charged:
        if estimate_ranges:
            price = _epsilon(epsilon)
            with Waiting("estimating ranges and labels", STOPPED):
                made = drafting.estimate_ranges(
                    data, codebook, made.answers, epsilon=price, delta=delta, **charged.arguments
                )
        if out is not None:
            made.save(out)
        say(_facts(made), _told(made, out, data), as_json, charged if estimate_ranges else None)


_TEMPLATE = """\
{template}: fill in one line a column, then run: counterveil draft {data} --codebook {template}
  role    treatment, outcome (several if you like), event, covariate, person, order, cluster or ignored
  kind    numeric, binary or categorical
  high    with an event, the end of follow-up; of a person, the most rows that count
  labels  A; B; C or 0=no; 1=yes; write placebo=control for the arm that others are compared with"""


def _check_new(out: Path, overwrite: bool) -> None:
    check_target(out)
    if out.exists() and not overwrite:
        raise refusal("CV-P722", got=str(out))


def _continued(out: Path | None, overwrite: bool, given: dict[str, Any]) -> dict[str, Any]:
    """Return the answers with those of a study file that has open questions; another file that exists is refused."""
    from counterveil.data.study import open_places, read_toml
    from counterveil.drafting import answers_in

    check_target(out)
    if out is None or overwrite or not out.exists():
        return given
    document = read_toml(out)
    if not open_places(document):
        raise refusal("CV-P722", got=str(out))
    return joined(answers_in(document), given)


def _epsilon(epsilon: str | None) -> str:
    if epsilon is not None:
        return epsilon
    raise refusal("CV-P723b")


def _told(made: Draft, out: Path | None, data: str) -> str:
    from counterveil.report.text import wrapped

    if out is None:
        return made.toml.rstrip()
    count = Counter(made.places.values())
    lines = [
        f"{out}: {count['covariate']} covariates, {count['ignored']} unused, of {len(made.places)} columns"
    ]
    aside = [f"{name} ({why})" for name, why in made.set_aside.items()]
    lines += wrapped(f"Set aside by name or kind: {', '.join(aside)}") if aside else []
    if not made.open_questions:
        return "\n".join([*lines, f"Next: counterveil check {data} --study {out}"])
    columns = [each.column for each in made.open_questions if each.column is not None]
    lines += [f"{len(made.open_questions)} open questions:"]
    lines += [f"  {each.what}" for each in made.open_questions if each.column is None]
    lines += wrapped(", ".join(columns), "  ranges or labels of ") if columns else []
    return "\n".join([*lines, f"Continue: counterveil draft {data} --out {out} (or edit the file)"])


def _facts(made: Any) -> dict[str, Any]:
    """Return a draft as JSON-ready facts."""
    asked = [each.to_dict() for each in made.open_questions]
    return {"study": made.toml, "places": made.places, "set_aside": made.set_aside, "open_questions": asked}


def _described(ranges: list[str] | None, labels: list[str] | None) -> dict[str, Any]:
    """Return the ranges and labels that were said of columns, by their names or patterns."""
    from counterveil.drafting.codebooks import choices

    told: dict[str, Any] = {}
    for word in ranges or []:
        name, _, text = word.rpartition("=")
        told[name] = bounds(f"--range {name}", text)
    for word in labels or []:
        name, _, text = word.partition("=")
        told[name] = [label for label, _ in choices(text)]
    return told


# Check.


_MOST_NAMES = 12
ShowLabels = Annotated[
    bool,
    option("", "List undeclared labels and their counts: for the holder of the data only.", "--show-labels"),
]


@shared("data", "study", "where", "table", "ledger", "dataset", "as_json")
def check(given: Given, show_labels: ShowLabels = False) -> None:
    """Check that the data fit the study file, and list everything that does not, with the lines that fix it.

    For the holder of the data: what is found depends on their rows. Whether the declared ranges suit the values is
    private and not said. With a ledger, the study is compared with its access policy first. In a database only the
    columns are checked.
    """
    from counterveil.data import Study, open_table
    from counterveil.data.passes import Waiting
    from counterveil.drafting.draft import checked

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
