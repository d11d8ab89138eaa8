"""A draft of a study file: every column placed, and every question that people have to answer marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from counterveil.bounded_reading import parse_toml
from counterveil.data import Study
from counterveil.data.checking import Finding, open_questions
from counterveil.data.documents import OPEN
from counterveil.data.sources.dispatch import columns_of
from counterveil.drafting import codebooks, names
from counterveil.drafting.codebooks import Codebook, read_codebook
from counterveil.drafting.placing import CANDIDATE, Placed, check_answers, is_open, placed_columns
from counterveil.drafting.writing import lines


@dataclass(frozen=True)
class Draft:
    """A drafted study: its text, where each column went, and what is still open.

    Attributes:
        columns: every column of the source, with the part it plays and what is known of it.
        answers: what people decided.
        origin: where the draft comes from, in words.
        estimated: columns whose range or labels were released from the data, and what that cost.
        simulated: whether the noise came from a seed and protects nobody.
    """

    columns: tuple[Placed, ...]
    answers: Mapping[str, Any]
    origin: str
    estimated: Mapping[str, str]
    simulated: bool = False

    @cached_property
    def toml(self) -> str:
        """The text of the study file; open questions are written as "?"."""
        return "\n".join(lines(self)) + "\n"

    @cached_property
    def document(self) -> dict[str, Any]:
        """The study file as a dictionary."""
        return parse_toml(self.toml)

    @cached_property
    def open_questions(self) -> tuple[Finding, ...]:
        """What people have to decide, each with the line that answers it."""
        return tuple(open_questions(self.document))

    @property
    def places(self) -> dict[str, str]:
        """The part that each column plays: a role of a codebook, or "candidate" while no covariates are chosen."""
        return {each.name: each.role for each in self.columns}

    @property
    def set_aside(self) -> dict[str, str]:
        """Unused columns that look like identifiers, dates, free text or measured after treatment, and as which."""
        return {each.name: each.aside for each in self.columns if each.role == "ignored" and each.aside}

    @property
    def template(self) -> str:
        """A codebook (CSV) to fill in a spreadsheet, with what is known of every column."""
        entries = {}
        for each in self.columns:
            unused = each.role in (CANDIDATE, "ignored")
            role = None if unused and not each.aside else each.role
            title = each.entry.title or (each.aside if unused else None)
            entries[each.name] = replace(each.entry, role=role, title=title)
        return codebooks.template(entries)

    def study(self) -> Study:
        """Return the study, or raise CV-S120 where questions are open."""
        return Study.from_dict(self.document)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the study file."""
        Path(path).write_text(self.toml, encoding="utf-8")

    def __str__(self) -> str:
        return self.toml

    def role(self, role: str) -> Placed | None:
        """Return the first column that plays a part, None where that is open."""
        return next(iter(self.all_of(role)), None)

    def all_of(self, role: str) -> list[Placed]:
        """Return all columns that play a part; outcomes in the order in which they were named."""
        found = [each for each in self.columns if each.role == role]
        named = list(self.answers.get("outcomes", ())) if role == "outcome" else []
        return sorted(found, key=lambda each: named.index(each.name) if each.name in named else len(named))


def draft(
    source: Any,
    codebook: str | PathLike[str] | Codebook | None = None,
    answers: Mapping[str, Any] | None = None,
) -> Draft:
    """Return a draft of a study file from the header and types of data, a codebook and answers; no row is read.

    Covariates are those that the codebook or the answers choose. A pattern chooses no column whose name looks like an
    identifier, a date, or a measurement after treatment; `Draft.set_aside` lists these.

    Args:
        source: data as for `counterveil.ate`, or a list of the names of columns.
        codebook: a REDCap data dictionary (.csv), a Table Schema or data package (.json), an SPSS, Stata or SAS file
            (with the extra `codebooks`), a .csv file with the columns that `Draft.template` writes; or entries.
        answers: what people decided, by the names of a study's declarations: treatment, treated, control, arms,
            reference, outcome, outcome_range, event, horizon, randomised, treated_share, score, where, missing;
            `person` and `cluster` (a name, or a table as in a study file); `outcomes`, `covariates` and `ignored`
            (lists of names and patterns such as "lab_*", or "all"); `columns`: what is known of columns, a mapping
            from names and patterns to domains, pairs of bounds or lists of labels.
    """
    columns = columns_of(source)
    known: Codebook = codebook if isinstance(codebook, Mapping) else {}
    if codebook is not None and not isinstance(codebook, Mapping):
        known = read_codebook(codebook)
    given = check_answers(answers, columns)
    name = Path(source).name if isinstance(source, str | PathLike) else "the data"
    said = (
        "a codebook" if isinstance(codebook, Mapping) else None if codebook is None else Path(codebook).name
    )
    origin = f"the columns of {name}" + ("" if said is None else f" and {said}")
    return Draft(tuple(placed_columns(columns, known, given)), given, origin, given.get("estimated", {}))


def answers_in(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers that a study file holds, to continue its draft; what is open is left out."""
    found = {key: value for key, value in document.items() if not is_open({"": value})}
    if "outcome" in found:
        found["outcomes"] = [found.pop("outcome")]
    described: dict[str, Any] = {}
    for key in ("covariates", "outcomes", "ignored"):
        table = found.get(key)
        if isinstance(table, Mapping):
            found[key] = list(table)
            described |= {
                name: {"range": told} if key == "outcomes" else told for name, told in table.items()
            }
    if isinstance(found.get("person"), Mapping):
        found["person"] = {key: told for key, told in found["person"].items() if told != OPEN}
    # Columns that names set aside can still be chosen.
    aside = names.suspected(found.get("ignored", ()))
    found["ignored"] = [name for name in found.get("ignored", ()) if name not in aside]
    return found | ({"columns": described} if described else {})
