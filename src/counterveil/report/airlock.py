"""What leaves through an output check: all answers about the same people, with their guarantee, as files.

Folders follow what the SACRO viewer reads (`outputs.json`, version 0.4, and `checksums/`), entries the schema of
OpenDP's registry of deployments. Fields that a ledger does not know are marked to be filled in.

In: `Holdings`, an account with its released answers. Out: texts by the name of their file. All of it copies released
answers, so that nothing more is spent; where an access policy rounds, errors and intervals are only widened. The odds
of any statement about what is protected change by a factor of at most exp(epsilon), where delta is 0, as the
definition of differential privacy says; the factor is printed rounded up.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from hashlib import sha256
from math import exp, isfinite
from typing import Any

from counterveil.bounded_reading import UnreadableError, written_number
from counterveil.privacy import Budget, Guarantee, Proof
from counterveil.report.words import rounded_up

# What is rounded up: upper ends of intervals and errors. What was declared or charged is no finding, and stays.
_UPWARDS = ("conf_high", "std_error", "se_")
_DECLARED = ("epsilon", "delta", "level", "share", "prob", "horizon", "threshold", "cost")
_VIEWER_VERSION = "0.4.8"
_FILL_IN = "FILL IN"


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """One answered request of an account: what was asked, by whom, at what price, and the files that show it."""

    name: str
    asked: dict[str, Any]
    by: str
    at: str
    spent: Budget
    guarantee: Guarantee
    line: str
    mechanisms: str
    files: dict[str, str]

    @property
    def proved(self) -> bool:
        """Whether its guarantee is proved in finite samples."""
        return self.guarantee.proof is Proof.FINITE_SAMPLE


@dataclass(frozen=True, slots=True)
class Holdings:
    """An account of a ledger: its totals in words and numbers, its answers, and requests that have none."""

    dataset: str
    note: str
    guarantee: str
    total: Budget
    spent: Budget
    remaining: str
    head_hash: str
    answers: tuple[StoredAnswer, ...]
    unanswered: int


# What makes a spreadsheet take a text for a formula, in the full width of East Asian scripts too.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")


def no_formula(cell: Any) -> Any:
    """Return a cell of a table as a spreadsheet shows it: a text that begins like a formula is marked as a text."""
    if not isinstance(cell, str) or not cell.startswith(_FORMULA):
        return cell
    try:
        written_number(cell)
    except UnreadableError:
        return f"'{cell}"
    return cell


def csv_of(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as CSV; columns are those of all rows, in the order in which they first occur."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names)
    writer.writeheader()
    writer.writerows({name: no_formula(cell) for name, cell in row.items()} for row in rows)
    return text.getvalue()


def rounded(row: dict[str, Any], digits: int) -> dict[str, Any]:
    """Return a row of effects with so many significant digits: intervals, errors and p-values are never too small."""
    return {name: _rounded(name, value, digits) for name, value in row.items()}


def _rounded(name: str, value: Any, digits: int) -> Any:
    if not isinstance(value, float) or not isfinite(value) or value == 0 or name in _DECLARED:
        return value
    up = name.startswith(_UPWARDS) or name.endswith("p_value")
    way = ROUND_FLOOR if name.startswith("conf_low") else ROUND_CEILING if up else ROUND_HALF_EVEN
    return float(Context(prec=digits, rounding=way).create_decimal(repr(value)))


def tables(held: Holdings) -> dict[str, str]:
    """Return one table of effects an answer, and one of all releases."""
    return {name: text for name, text in _files(held).items() if name.endswith(".csv")}


def sacro(held: Holdings) -> dict[str, str]:
    """Return a folder for the SACRO viewer: the files, their checksums and what a checker should know of each.

    Every output is for review: whether an effect may leave is a person's decision. Unproved forms fail.
    """
    files = _files(held)
    results = {
        f"output_{place}": _output(
            f"output_{place}",
            [_file(answer, place, name) for name in answer.files],
            "review" if answer.proved else "fail",
            " ".join(
                str(answer.asked[key]) for key in ("question", "method", "estimand") if key in answer.asked
            ),
            answer.line,
            answer.at,
            [answer.guarantee.sentence(), *(f"Not protected: {fact}" for fact in answer.guarantee.public)],
        )
        for place, answer in enumerate(held.answers)
    }
    place = f"output_{len(held.answers)}"
    results[place] = _output(
        place,
        ["releases.csv", "data-protection.md"],
        "review",
        "ledger",
        f"answers about the people of {held.dataset!r}: {len(held.answers)}; {held.guarantee}",
        max((answer.at for answer in held.answers), default=""),
        [f"The ledger ends with entry {held.head_hash}."],
    )
    sums = {f"checksums/{name}.txt": sha256(text.encode()).hexdigest() for name, text in files.items()}
    outputs = json.dumps({"version": _VIEWER_VERSION, "results": results}, indent=2) + "\n"
    return files | sums | {"outputs.json": outputs, "config.json": "{}\n"}


def registry(held: Holdings) -> dict[str, str]:
    """Return an entry for the registry of deployments; what a ledger does not know is marked."""
    public = dict.fromkeys(fact for answer in held.answers for fact in answer.guarantee.public)
    mechanisms = dict.fromkeys(answer.mechanisms for answer in held.answers)
    entry = {
        "url_slug": f"{_FILL_IN}: a short name with the year",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": held.note or held.dataset,
                "data_curators": [f"{_FILL_IN}: who publishes"],
                "intended_use": f"{_FILL_IN}: what the effects are for",
                "data_product_type": "Summary statistics",
                "data_product_region": f"{_FILL_IN}: region",
                "description": "Effects of treatments with confidence intervals that include the noise: "
                + "; ".join(answer.line for answer in held.answers),
                "publication_date": min((answer.at for answer in held.answers), default=_FILL_IN),
            },
            "dp_variant": {
                "variant_name": "Pure DP" if held.spent.delta == 0 else "Approximate DP",
                "data_domain": "all data sets of the same number of rows that fit the declared study",
                "unprotected_quantities": _listed(public),
            },
            "privacy_loss": _loss(held),
            "deployment_model": {
                "model_name": "Central",
                "release_type": "Many releases" if len(held.answers) > 1 else "One release",
                "data_source_type": "Static",
                "access_type": "Interactive",
                "access_type_details": "analysts share one budget, which a ledger keeps; collusion gains nothing",
            },
            "accounting": {
                "post_processing": "intervals, p values and reports are computed from the noisy numbers",
                "composition": "adaptive composition of all requests; answers are stored and never drawn again",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "bounds, labels and settings are declared beforehand",
                "mechanisms": f"Counterveil; {_listed(mechanisms)}; noise is drawn exactly, on a grid of rationals",
            },
            "administrative": {"registry_authors": [f"{_FILL_IN}: who wrote this entry"]},
        },
    }
    return {"registry.yaml": "\n".join(_yaml(entry)) + "\n"}


def _loss(held: Holdings) -> dict[str, Any]:
    """Return whose data all answers together protect, and how far."""
    units = dict.fromkeys(answer.guarantee.adjacency for answer in held.answers)
    unproved = not all(answer.proved for answer in held.answers)
    return {
        "privacy_unit": _listed(dict.fromkeys(answer.guarantee.unit.value for answer in held.answers)),
        "privacy_unit_details": _listed(unit.sentence for unit in units),
        "privacy_parameters": {"epsilon": float(held.spent.epsilon), "delta": float(held.spent.delta)},
        "privacy_parameters_details": held.guarantee + "; some forms have no finite-sample proof" * unproved,
    }


def data_protection(held: Holdings) -> dict[str, str]:
    """Return a summary in plain words for the steward's file."""
    left = f" {held.unanswered} more were charged and have no answer yet." if held.unanswered else ""
    lines = [
        f"# Data-protection summary: {held.note or held.dataset}",
        "",
        f"**What left.** Answers about the same people: {len(held.answers)}.{left} "
        "No row and no exact figure of a private column is among them; each number has random noise.",
        "",
        f"**What it can tell about one person.** {_sentence(held.guarantee)} Used so far: {held.spent}. "
        f"Still to be asked for: {held.remaining}.",
        "",
        "Whatever else somebody knows, all answers together change the odds of any statement about one person's "
        f"private values by a factor of at most {_factor(held.spent)}"
        + ("." if held.spent.delta == 0 else f", but for a chance of about {float(held.spent.delta):.2g}."),
        "",
        "**What is not protected.**",
        "",
        *(f"- {fact}" for fact in dict.fromkeys(f for one in held.answers for f in one.guarantee.public)),
        "",
        "**What remains a risk.** An effect that holds for a group says something about everybody in it, also "
        "about people who are not in the data. Answers that were released without this ledger are not counted.",
        "",
        "| request | asked | by | on | price | guarantee |",
        "|---|---|---|---|---|---|",
        *(
            f"| {_cell(one.name)} | {_cell(one.line)} | {_cell(one.by)} | {one.at} | {one.spent} | "
            f"{one.guarantee.proof.value} |"
            for one in held.answers
        ),
        "",
        f"Ledger entry at the time of writing: `{held.head_hash}`. `counterveil ledger verify --head-hash` checks it.",
        "",
    ]
    return {"data-protection.md": "\n".join(lines)}


FORMATS = {"sacro": sacro, "registry": registry, "dpia": data_protection, "csv": tables}


def _files(held: Holdings) -> dict[str, str]:
    """Return the files that show the answers, and two about all of them."""
    files = {
        _file(answer, place, name): text
        for place, answer in enumerate(held.answers)
        for name, text in answer.files.items()
    }
    rows = [
        {
            "request": answer.name,
            **{key: answer.asked.get(key, "") for key in ("question", "method", "protects")},
            "epsilon": float(answer.spent.epsilon),
            "delta": float(answer.spent.delta),
            "asked_by": answer.by,
            "on": answer.at,
            "proof": answer.guarantee.proof.value,
        }
        for answer in held.answers
    ]
    return files | {"releases.csv": csv_of(rows)} | data_protection(held)


def _file(answer: StoredAnswer, place: int, name: str) -> str:
    """Return the name of an answer's file in the folder: names of requests may hold any character."""
    plain = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in answer.name)[:40].strip(
        "-"
    )
    return f"{place:03d}-{plain or 'request'}-{name}"


def _output(
    uid: str, files: list[str], status: str, command: str, summary: str, at: str, comments: list[str]
) -> dict[str, Any]:
    return {
        "uid": uid,
        "status": status,
        "type": "custom",
        "properties": {"method": "differential privacy"},
        "files": [{"name": name} for name in files],
        "outcome": {},
        "command": command,
        "summary": summary,
        "timestamp": at,
        "comments": comments,
        "exception": "",
    }


def _listed(texts: Iterable[str]) -> str:
    return "; ".join(texts)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _factor(spent: Budget) -> str:
    epsilon = float(spent.epsilon)
    return f"{rounded_up(exp(epsilon)):,.3g}" if epsilon < 20 else "more than 400,000,000"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _yaml(value: Any, indent: str = "") -> Iterable[str]:
    """Yield the lines of nested dictionaries and lists; scalars are written as JSON, which YAML reads."""
    for key, inside in value.items():
        if isinstance(inside, dict):
            yield f"{indent}{key}:"
            yield from _yaml(inside, indent + "  ")
        elif isinstance(inside, list):
            yield f"{indent}{key}:"
            yield from (f"{indent}  - {json.dumps(one, ensure_ascii=False)}" for one in inside)
        else:
            yield f"{indent}{key}: {json.dumps(inside, ensure_ascii=False)}"
