"""The commands on the way to a study: draft, which writes the file, and check, which says what does not fit."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterveil.cli.asking import Dialogue, bounds, joined, label
from counterveil.cli.requests import STOPPED, Given, charging, check_target, options, say, shared
from counterveil.errors import DataError, refusal

if TYPE_CHECKING:
    from counterveil.data import Study
    from counterveil.data.checking import Checked
    from counterveil.drafting import Draft
    from counterveil.drafting.estimating import PricePerColumn

ANSWERS, ESTIMATING = "Answers", "Estimated ranges"
_CODEBOOK = (
    "Codebook: a filled-in template or REDCap dictionary (.csv), Table Schema (.json), .sav, .dta, .xpt."
)
_OUT = "Study file to write; one with open questions is continued. Printed if omitted."
_ASK = "Ask for what is open; by default if a person is at the terminal."
_ASSIGNMENT = '"trial" if treatment was assigned at random, else "observational".'
_OWN = [
    *options(
        Path | None,
        "FILE",
        codebook=_CODEBOOK,
        template="Write a blank codebook (CSV) to fill in a spreadsheet, and stop.",
        out=_OUT,
    ),
    *options(bool, "", False, overwrite="Replace a file that exists."),
    *options(bool | None, "", ask=("--ask/--no-ask", _ASK)),
    *options(
        bool,
        "",
        False,
        ESTIMATING,
        estimate_ranges="Release open ranges and labels privately, and charge them.",
    ),
    *options(
        str | None, "NUMBER", None, ESTIMATING, epsilon="Privacy loss of all estimated columns together."
    ),
    *options(str, "NUMBER", "0", ESTIMATING, delta="Needed if labels are estimated; far below 1 / n."),
]
# What is said of the study, by the names that a draft gives it.
_TOLD = [
    *options(str | None, "COLUMN", section=ANSWERS, treatment="Column of the treatment."),
    *options(
        str | None,
        "LABEL",
        section=ANSWERS,
        treated="Label that means treated.",
        control="Label that means control; the reference of several arms.",
    ),
    *options(
        list[str] | None,
        "COLUMN",
        section=ANSWERS,
        outcomes=("--outcome", "Column of an outcome, or a pattern."),
    ),
    *options(str | None, "LOW:HIGH", section=ANSWERS, outcome_range="Lowest and highest possible outcome."),
    *options(
        str | None,
        "COLUMN",
        section=ANSWERS,
        event="1 where the event ended follow-up; the outcome is a time.",
    ),
    *options(str | None, "NUMBER", section=ANSWERS, horizon="End of follow-up, for times to an event."),
    *options(str | None, "HOW", section=ANSWERS, assignment=_ASSIGNMENT),
    *options(
        str | None,
        "COLUMN",
        section=ANSWERS,
        people="Person ID, if people have several rows.",
        order="Column that puts a person's rows in order.",
    ),
    *options(
        int | None,
        "INTEGER",
        section=ANSWERS,
        max_rows="Count only a person's first rows, with --order.",
    ),
    *options(
        str | None, "COLUMN", section=ANSWERS, clusters="Column of clusters: schools, clinics, villages."
    ),
    *options(
        list[str] | None,
        "COLUMN",
        section=ANSWERS,
        covariates=("--covariate", 'A covariate, or a pattern such as "lab_*"; "all" for all candidates.'),
        ignored=("--ignore", "An unused column, or a pattern."),
    ),
    *options(
        list[str] | None, "COLUMN=LOW:HIGH", section=ANSWERS, ranges=("--range", "Public range of a column.")
    ),
    *options(list[str] | None, "COLUMN=A;B", section=ANSWERS, labels="Public labels of a column."),
    *options(str | None, "CONDITION", section=ANSWERS, where="Rows that belong to the study."),
]
_CHARGED = ("ledger", "dataset", "request_id", "checkpoint", "analyst")
# The roles that --publish makes public: what later answers show where outcomes are protected.
_SHOWN = ("treatment", "covariate")
# Where answers are kept that are typed without --out.
_KEPT = Path("study.toml")


@shared("data", *_CHARGED, "publish", "as_json", more=[*_OWN, *_TOLD])
def draft(given: Given) -> None:
    """Draft a study file: every column placed, every open question marked.

    Only the header and the types of the data are read, never a row. Ranges and labels come from the codebook and from
    answers; what nobody said is written as "?", and `counterveil check` lists it. Covariates are chosen, never assumed.
    Questions can be left with Ctrl-C or "quit": the same command continues the file. With --estimate-ranges, open
    ranges and labels are released from the rows with differential privacy for whole records, and charged.
    """
    from counterveil import drafting
    from counterveil.data.progress import Waiting
    from counterveil.drafting.estimating import price_per_column

    data, codebook, out, overwrite = (given[name] for name in ("data", "codebook", "out", "overwrite"))
    told = _answers({each.name: given[each.name] for each in _TOLD})
    if given["template"] is not None:
        _check_new(given["template"], overwrite)
        given["template"].write_text(drafting.draft(data, codebook, told).template, encoding="utf-8")
        print(_TEMPLATE.format(template=given["template"], data=data))
        return
    asking = given["ask"]
    if asking is None:
        asking = sys.stdin.isatty() and sys.stdout.isatty() and not given["as_json"]
    out = _KEPT if out is None and asking else out
    made = drafting.draft(data, codebook, _continued(out, overwrite, told))
    estimating = given["estimate_ranges"]
    if asking and out is not None:
        dialogue = Dialogue(made, lambda answers: drafting.draft(data, codebook, answers), out)
        made = dialogue.held()
        # Who leaves has not agreed to spend anything.
        estimating = estimating and not dialogue.left
    with charging(*(given[name] for name in _CHARGED)) as charged:
        if estimating:
            if given["epsilon"] is None:
                raise refusal("CV-P723b")
            price = {name: given[name] for name in ("epsilon", "delta")}
            print(_priced(price_per_column(made, **price)), file=sys.stderr)
            if given["publish"] and charged.ledger is not None:
                names = (
                    [charged.dataset]
                    if charged.dataset
                    else [one.dataset for one in charged.ledger.datasets()]
                )
                charged.ledger.publish(names[0], [each.name for each in made.columns if each.role in _SHOWN])
            with Waiting("estimating ranges and labels", STOPPED):
                made = drafting.estimate_ranges(data, codebook, made.answers, **price, **charged.arguments)
        if out is not None:
            made.save(out)
        say(_facts(made), _told(made, out, data), given["as_json"], charged if estimating else None)


def _priced(price: PricePerColumn) -> str:
    """Return what each column gets, before it is spent."""
    from counterveil.data.codebooks import folded
    from counterveil.report.text import wrapped

    said = []
    if price.ranges:
        said.append(
            f"epsilon {float(price.epsilon):.3g} for each range ({folded(price.ranges)}): an end is found with "
            f"probability 0.95 if {price.range_rows:,} rows lie there, and what lies beyond is clamped"
        )
    if price.labels:
        said.append(
            f"epsilon {float(price.epsilon):.3g} and delta {float(price.delta):.3g} for the labels of each column "
            f"({folded(price.labels)}): a label is found with probability 0.95 if {price.label_rows:,} rows have it"
        )
    return "\n".join(line for one in said for line in wrapped(one, "To spend: "))


def _answers(told: dict[str, Any]) -> dict[str, Any]:
    """Return what was said of a study as a draft takes it."""
    people = {"column": told["people"]} | {name: told.pop(name) for name in ("order", "max_rows")}
    ends = told["outcome_range"]
    told |= {
        "treated": label(told["treated"]),
        "control": label(told["control"]),
        "outcome_range": None if ends is None else bounds("--outcome-range", ends),
        "people": {key: value for key, value in people.items() if value is not None} or None,
        "columns": _described(told.pop("ranges"), told.pop("labels")) or None,
    }
    return {key: value for key, value in told.items() if value is not None}


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
    from counterveil.data.study_documents import open_places, read_toml
    from counterveil.drafting import answers_in

    check_target(out)
    if out is None or overwrite or not out.exists():
        return given
    document = read_toml(out)
    if not open_places(document):
        raise refusal("CV-P722", got=str(out))
    return joined(answers_in(document), given)


def _told(made: Draft, out: Path | None, data: str) -> str:
    from counterveil.report.text import wrapped

    if out is None:
        return made.toml.rstrip()
    count = Counter(made.places.values())
    lines = [
        f"{out}: {_some(count['covariate'], 'covariate')}, {count['ignored']} unused, of {len(made.places)} columns"
    ]
    aside = [f"{name} ({why})" for name, why in made.set_aside.items()]
    lines += wrapped(f"Set aside by name or kind: {', '.join(aside)}") if aside else []
    if not made.open_questions:
        return "\n".join([*lines, f"Next: counterveil check {data} --study {out}"])
    columns = [each.column for each in made.open_questions if each.column is not None]
    lines += [f"{_some(len(made.open_questions), 'open question')}:"]
    lines += [f"  {each.what}" for each in made.open_questions if each.column is None]
    lines += wrapped(", ".join(columns), "  ranges or labels of ") if columns else []
    return "\n".join([*lines, f"Continue: counterveil draft {data} --out {out} (or edit the file)"])


def _some(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _facts(made: Any) -> dict[str, Any]:
    """Return a draft as JSON-ready facts."""
    asked = [each.to_dict() for each in made.open_questions]
    return {"study": made.toml, "places": made.places, "set_aside": made.set_aside, "open_questions": asked}


def _described(ranges: list[str] | None, labels: list[str] | None) -> dict[str, Any]:
    """Return the ranges and labels that were said of columns, by their names or patterns."""
    from counterveil.data.codebooks import choices

    told: dict[str, Any] = {}
    for word in ranges or []:
        name, _, text = word.rpartition("=")
        told[name] = bounds(f"--range {name}", text)
    for word in labels or []:
        name, _, text = word.partition("=")
        told[name] = [label for label, _ in choices(text)]
    return told


_MOST_NAMES = 12
_LABELS = options(
    bool, "", False, show_labels="List undeclared labels and their counts: for the holder of the data only."
)


@shared("data", "study", "where", "table", "ledger", "dataset", "as_json", more=_LABELS)
def check(given: Given) -> None:
    """Check that the data fit the study file, and list everything that does not, with the lines that fix it.

    For the holder of the data: what is found depends on their rows. Whether the declared ranges suit the values is
    private and not said. With a ledger, the study is compared with its access policy first. In a database only the
    columns are checked.
    """
    from counterveil.data import Study, open_table
    from counterveil.data.progress import Waiting
    from counterveil.drafting.draft import checked

    source = open_table(given["data"], given["table"])
    narrowed = given["where"] is not None
    study = Study.from_toml(given["study"]).narrowed(given["where"]) if narrowed else given["study"]
    with Waiting("check"):
        found = checked(source, study, **{name: given[name] for name in ("show_labels", "ledger", "dataset")})
    facts = {
        "fits": found.fits,
        "rows": found.rows,
        "findings": [each.to_dict() for each in found.findings],
    }
    say(facts, "\n".join(_verdict(found)), given["as_json"])
    if not found.fits:
        raise SystemExit(DataError.exit_code)


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
    """Return the lines of findings, each followed by what would fix it."""
    from counterveil.errors import printable
    from counterveil.report.text import wrapped

    lines: list[str] = []
    for each in listed:
        lines += wrapped(printable(each.what), f"  {each.code}  ")
        lines += [f"      {part}" for part in (each.fix or "").splitlines()]
        lines += [f"      {printable(label)}: {count} rows" for label, count in (each.labels or {}).items()]
        counts = each.counts or {}
        lines += [
            f"      {printable(name)}: {count:,} rows without a value" for name, count in counts.items()
        ]
        if each.rows is not None and len(counts) != 1:
            lines.append(
                f"      {each.rows:,} rows without a value{' in one of them or more' if counts else ''}"
            )
    return lines
