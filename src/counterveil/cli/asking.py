"""The questions of a draft in the terminal: few, about groups of columns, and left without loss."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from counterveil.errors import CounterveilError, refusal, shown

if TYPE_CHECKING:
    from counterveil.drafting import Draft

_QUIT, _IGNORE, _NONE, _BUT = "quit", ("ignore", "ignored"), ("none", "no", "n"), r"all\s+but\s+"
# Groups of covariates by their kind, in the order in which they are asked about.
_GROUPS = {"range": "Numeric", "categories": "Categorical", "binary": "Categorical", "": "Other"}
_TRUTH = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
_SURVIVAL = re.compile(r"surv\s*\(\s*(.+?)\s*,\s*(.+?)\s*\)", re.I)
# A column or a pattern before what is said of it.
_SAID = re.compile(r"(?:^|(?<=[,;\s]))\s*([^\s,;=|]+)\s*=")
_PEOPLE = ("column", "order", "max_rows")
_FORMS = "LOW:HIGH, binary, A|B|C or ignore; for all of these, or as NAME=..., lab_*=..."


class Dialogue:
    """Asks for what a draft leaves open. Every answer is written to the file before the next question.

    `left` is whether a person left before the last question.
    """

    def __init__(self, made: Draft, again: Callable[[Mapping[str, Any]], Draft], out: Path) -> None:
        self.made, self.left, self._again, self._out, self._number = made, False, again, out, 0

    def held(self) -> Draft:
        """Return the draft with what was answered until the end, `quit` or Ctrl-C."""
        from counterveil.data.codebooks import folded
        from counterveil.report.text import wrapped

        print("\n".join(wrapped(folded(self.made.places), f"{len(self.made.places)} columns: ")))
        print(f'Enter leaves a question open; "quit" leaves all. Answers are kept in {self._out}.')
        try:
            for text, still, read in self._questions():
                self._ask(text, still, read)
        except (typer.Abort, KeyboardInterrupt):
            self.left = True
            print()
        return self.made

    def _questions(
        self,
    ) -> Iterator[tuple[str, Callable[[], Any], Callable[[str], Mapping[str, Any] | None]]]:
        """Yield each question, whether it is open still, and how its answer is read."""
        yield "Treatment column", lambda: self._open("treatment"), lambda typed: {"treatment": typed}
        placed = self.made.role("treatment")
        known = [] if placed is None else [told for told, _ in placed.entry.labels]
        text = f"Control arm ({', '.join(map(str, known))})" if known else "Labels of the arms, control first"
        yield text, lambda: placed and self._open("treated", "reference"), lambda typed: _arms(typed, known)
        yield (
            "Outcome column; several as a, b or metric_*; a time to an event as Surv(TIME, EVENT)",
            lambda: self._open("outcome", "time"),
            self._outcomes,
        )
        yield "End of follow-up", lambda: self._open("horizon"), lambda typed: {"horizon": typed}
        yield from self._grouped("Outcomes", self._open_outcomes())
        from counterveil.data.row_units import identifiers

        people = [name for name in identifiers(self.made.places) if self.made.places[name] == "ignored"]
        if people and self._open("assignment") and self.made.role("person") is None:
            text = (
                "Person ID if people have several rows, as ID or as ID, VISIT, 10 (the order of rows, and how many of "
                "a person count); no if every row is another person"
            )
            yield text, lambda: self.made.role("person") is None, self._person
        yield "Was treatment assigned at random (yes, no)", lambda: self._open("assignment"), _assigned
        yield self._covariates_text(), lambda: self._open("covariates"), self._covariates
        open_ones = {each.column for each in self.made.open_questions}
        groups: dict[str, list[str]] = {title: [] for title in _GROUPS.values()}
        for each in self.made.all_of("covariate"):
            if each.name in open_ones:
                groups[_GROUPS.get(each.entry.kind or "", _GROUPS[""])].append(each.name)
        for title, group in groups.items():
            yield from self._grouped(f"{title} covariates", group)

    def _grouped(
        self, title: str, group: list[str]
    ) -> Iterator[tuple[str, Callable[[], Any], Callable[[str], Mapping[str, Any] | None]]]:
        def left() -> list[str]:
            found = {*self._open_outcomes(), *(each.column for each in self.made.open_questions)}
            return [name for name in group if name in found]

        if group:
            text = f"{title}: {{names}}\n{_FORMS}"
            yield text, left, lambda typed: self._described(typed, left())

    def _open(self, *keys: str) -> bool:
        return any(
            (key,) in self._places() or key in (place[-1] for place in self._in_tables()) for key in keys
        )

    def _places(self) -> list[tuple[str, ...]]:
        from counterveil.data.study_documents import open_places

        return open_places(self.made.document)

    def _in_tables(self) -> list[tuple[str, ...]]:
        """Return the open places of treatment and outcome."""
        return [place for place in self._places() if len(place) == 2 and place[0] in ("treatment", "outcome")]

    def _open_outcomes(self) -> list[str]:
        several = [
            place[2] for place in self._places() if place[:2] == ("outcome", "ranges") and len(place) == 3
        ]
        one = (
            [each.name for each in self.made.all_of("outcome")]
            if ("outcome", "range") in self._places()
            else []
        )
        return several or one

    def _ask(
        self, text: str, still: Callable[[], Any], read: Callable[[str], Mapping[str, Any] | None]
    ) -> None:
        """Ask until the question is no longer open, or stays so; what does not fit is said, and asked again."""
        from counterveil.data.codebooks import folded

        while found := still():
            self._number += 1
            asked = text.replace("{names}", folded(found)) if isinstance(found, list) else text
            typed: str = typer.prompt(f"[{self._number}] {asked}", default="", show_default=False).strip()
            if typed.lower() == _QUIT and _QUIT not in self.made.places:
                raise typer.Abort
            if not typed:
                return
            try:
                answered = read(typed)
                if answered is None:
                    return
                tried = self._again(joined(self.made.answers, answered))
                tried.save(self._out)
            except CounterveilError as error:
                print(
                    f"Not taken: {error.got}. Expected: {error.expected}. To fix: {error.fix}",
                    file=sys.stderr,
                )
            else:
                self.made = tried
                if still() == found:
                    print(f"Not enough: {shown(typed)} leaves this question open", file=sys.stderr)

    def _names(self, typed: str) -> list[str]:
        """Return the names and patterns in a text; names of columns may hold blanks."""
        places = self.made.places
        if typed in places:
            return [typed]
        parts = [part.strip() for part in re.split(r"[,;]", typed) if part.strip()]
        return [name for part in parts for name in ([part] if part in places else part.split())]

    def _outcomes(self, typed: str) -> Mapping[str, Any]:
        survival = _SURVIVAL.fullmatch(typed)
        if survival is not None:
            return {"outcomes": [survival[1]], "event": survival[2]}
        return {"outcomes": self._names(typed)}

    def _person(self, typed: str) -> Mapping[str, Any] | None:
        """Return what is said of people with several rows, None where every row is another person."""
        places = self.made.places
        if typed.lower() in _NONE and typed not in places:
            return None
        parts = [part.strip() for part in typed.split(",")]
        for name in parts[:2]:
            if name not in places:
                raise _unusable("a column that says whose a row is", f"{shown(name)}, which is no column")
        if len(parts) == 1:
            return {"people": {"column": parts[0]}}
        most = label(parts[2]) if len(parts) == 3 else None
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            said = f"{shown(parts[2])} as the number of rows" if len(parts) > 2 else "no number of rows"
            more = f", and {len(parts) - 3} more" if len(parts) > 3 else ""
            raise _unusable("ID, or ID, VISIT, 10; covariates are asked for later", f"{said}{more}")
        return {"people": dict(zip(_PEOPLE, (*parts[:2], most), strict=True))}

    def _covariates_text(self) -> str:
        aside = [f"{name} ({why})" for name, why in self.made.set_aside.items()]
        said = f"Set aside unless you name them: {', '.join(aside)}\n" if aside else ""
        return (
            said + "Covariates, all measured before treatment: names and patterns, all, all but ..., or none"
        )

    def _covariates(self, typed: str) -> Mapping[str, Any]:
        if typed.lower() in _NONE and typed not in self.made.places:
            return {"covariates": []}
        but = re.match(_BUT, typed, re.I)
        if but is not None:
            return {"covariates": ["all"], "ignored": self._names(typed[but.end() :])}
        return {"covariates": self._names(typed)}

    def _described(self, typed: str, group: list[str]) -> Mapping[str, Any]:
        told = described(typed, group, list(self.made.places))
        ignored = [name for name, said in told.items() if said in _IGNORE]
        return {
            "columns": {name: said for name, said in told.items() if name not in ignored},
            "ignored": ignored,
        }


def joined(answers: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return answers with further ones; what was said of columns adds up, and a column has the part it got last."""
    both = {**answers, **more}
    both["columns"] = {**answers.get("columns", {}), **more.get("columns", {})}
    both["ignored"] = [*answers.get("ignored", ()), *more.get("ignored", ())]
    both["covariates"] = [*(answers.get("covariates") or ()), *(more.get("covariates") or ())]
    for key in ("covariates", "outcomes"):
        if key in both:
            both[key] = [name for name in both[key] if name not in more.get("ignored", ())]
    both["ignored"] = [name for name in both["ignored"] if name not in more.get("covariates", ())]
    if "covariates" not in answers and "covariates" not in more:
        del both["covariates"]
    return both


def described(text: str, group: list[str], columns: list[str]) -> dict[str, Any]:
    """Return what a line such as "age=18:90, lab_*=0:10, sex=f|m" says of columns; without names, of the group."""
    from counterveil.data.codebooks import matching

    starts = [found for found in _SAID.finditer(text) if matching(found[1], columns)]
    first = _SAID.search(text)
    if text[: starts[0].start()].strip() if starts else first is not None and label(first[1]) == first[1]:
        raise _unusable("columns of the data before =", shown(text))
    if not starts:
        return dict.fromkeys(group, _meant(text))
    ends = [*(found.start() for found in starts[1:]), len(text)]
    parts = [text[found.end() : end].strip(" ,;") for found, end in zip(starts, ends, strict=True)]
    return {
        name: _meant(part)
        for found, part in zip(starts, parts, strict=True)
        for name in matching(found[1], columns)
    }


def _meant(text: str) -> Any:
    """Return what is said of a column: "binary", "ignore", two bounds, or labels."""
    from counterveil.data.codebooks import choices

    word = text.strip().lower()
    if word == "binary" or word in _IGNORE:
        return word
    low, _, high = text.partition(":")
    if isinstance(label(low.strip()), int | float) and isinstance(label(high.strip()), int | float):
        return low.strip(), high.strip()
    listed = choices(text)
    labels = [told for told, _ in listed]
    # A sign after some labels and not after others is a column that does not exist.
    if len(labels) < 2 or len({bool(said) for _, said in listed}) > 1:
        raise _unusable(_FORMS, shown(text))
    return "binary" if set(labels) == {0, 1} else labels


def _arms(typed: str, known: list[Any]) -> Mapping[str, Any]:
    from counterveil.data.codebooks import choices

    labels = [told for told, _ in choices(typed)]
    if known:
        if len(labels) != 1 or labels[0] not in known:
            raise _unusable(f"one of {', '.join(map(str, known))}", shown(typed))
        return {"control": labels[0]}
    if len(labels) < 2:
        raise _unusable("the labels of all arms, control first, such as 0, 1", shown(typed))
    if len(labels) > 2:
        return {"arms": labels, "reference": labels[0]}
    return dict(zip(("treated", "control"), reversed(labels), strict=True))


def _assigned(typed: str) -> Mapping[str, Any]:
    from counterveil.data.study_documents import OBSERVATIONAL, TRIAL

    if typed.lower() not in _TRUTH:
        raise _unusable("yes or no", shown(typed))
    return {"assignment": TRIAL if _TRUTH[typed.lower()] else OBSERVATIONAL}


def _unusable(expected: str, got: str) -> CounterveilError:
    return refusal("CV-P721c", expected=expected, got=got, fix="write that, or Enter to leave it open")


def label(text: str | None) -> Any:
    """Return a label from the command line: a number where it reads as one."""
    from counterveil.data.domains import number_of, plain_number

    number = None if text is None else number_of(text)
    return text if number is None else plain_number(number)


def bounds(name: str, text: str) -> tuple[str, str]:
    """Return the two numbers of LOW:HIGH, or raise CV-P721."""
    low, sign, high = text.partition(":")
    if not sign:
        raise refusal("CV-P721", name=name, text=text)
    return low.strip(), high.strip()
