"""The page of a request and its files: what was released, read back from the ledger; nothing is computed from rows."""

from __future__ import annotations

import shlex
from typing import Any

from counterveil.accounting import Posting
from counterveil.console.datasets import request_line
from counterveil.console.visit import Download, Page, Visit
from counterveil.console.workspace import DataSet
from counterveil.errors import CounterveilError, refusal
from counterveil.report.page import section_html
from counterveil.report.sections import diagnostic_sections, picture
from counterveil.report.text import from_to, percent, rounded
from counterveil.report.words import answer_words
from counterveil.results.kept import answer_of, files_of
from counterveil.results.regression import Moments

_LONGEST_FORMULA = 2_000
# The level of an interval that nobody chose.
_LEVEL = 0.95


def request(visit: Visit) -> Page:
    """Return the page of a request: the answer with its picture and what is guaranteed, or why there is none."""
    data, entries = _entries(visit)
    line = request_line(entries[0], len(entries) > 1)
    facts: dict[str, Any] = {
        "dataset": data,
        "request": line,
        "result": None,
        "command": _command(data, entries),
    }
    if len(entries) == 1:
        return Page("result.html", facts)
    result = _answer_of(entries)
    if result is None:
        return Page("result.html", facts | {"raw": str(entries[1].facts["answer"])[:20_000]})
    if isinstance(result, Moments):
        facts |= _regressed(visit, result)
    return Page("result.html", facts | {"result": _shown(result), "files": list(files_of(result))})


def _regressed(visit: Visit, released: Moments) -> dict[str, Any]:
    """Return the regression of a formula in the address, which costs nothing, or why there is none."""
    formula = visit.word("formula", longest=_LONGEST_FORMULA) or f"{released.outcome} ~ {released.treatment}"
    facts: dict[str, Any] = {
        "formula": formula,
        "columns": released.columns,
        "regression": None,
        "wrong": None,
    }
    try:
        return facts | {"regression": released.regress(formula).view()}
    except CounterveilError as error:
        return facts | {"wrong": error}


def download(visit: Visit) -> Download:
    """Return one of the files of an answered request."""
    _, entries = _entries(visit)
    result = _answer_of(entries) if len(entries) > 1 else None
    files = {} if result is None else files_of(result)
    name = visit.path["file"]
    if name not in files:
        raise refusal("CV-W007", expected=f"one of {', '.join(files) or 'no files'}", got="another name")
    kind, write = files[name]
    return Download(name, kind, write())


def _entries(visit: Visit) -> tuple[DataSet, list[Posting]]:
    """Return the data set and the entries of a request, by the number of its reservation."""
    data = visit.workspace.dataset(visit.path["key"])
    text = visit.path["seq"]
    seq = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
    with visit.workspace.opened(data.ledger) as book:
        first = book.between(seq, seq)
        if not first or first[0].kind != "reserve" or first[0].dataset != data.account.dataset:
            raise refusal("CV-W007", expected="a request of this data set", got="another number")
        return data, book.of_request(data.account.dataset, first[0].request_id)


def _answer_of(entries: list[Posting]) -> Any:
    """Return the released result of an answered request, None where it is of a kind that is not shown here."""
    return answer_of(entries[0].facts, str(entries[1].facts["answer"]))


def _shown(result: Any) -> dict[str, Any]:
    """Return what a page shows of a result: the short view first, the rest to unfold."""
    facts = result.page_facts() if hasattr(result, "page_facts") else {}
    effects = bool(facts.get("effects"))
    return {
        "view": result.view(),
        "headline": _headline(facts),
        "answer": answer_words(facts) if effects else [],
        "full": result.view(full=True),
        "picture": picture(facts) if effects else "",
        "sections": _sections(facts) if facts else "",
        "write_up": result.write_up() if hasattr(result, "write_up") else "",
    }


def _sections(facts: dict[str, Any]) -> str:
    """Return the diagnostics of a result, which fold out."""
    return "".join(map(section_html, diagnostic_sections(facts)))


def _headline(facts: dict[str, Any]) -> str:
    """Return one effect with its interval in words; nothing where there are several, or no interval for the effect."""
    effects = facts.get("effects", [])
    if len(effects) != 1 or facts.get("interval_target"):
        return ""
    error, ends = effects[0]["std_error"]["total"], effects[0]["interval"]
    return f"{rounded(effects[0]['estimate'], error)} ({percent(facts['level'])} interval {from_to(ends, error)})"


def _command(data: DataSet, entries: list[Posting]) -> str:
    """Return the command that returns this answer again at no cost, where one can be written; else nothing.

    What ran is repeated, not what was asked: "auto" is recorded by the method that it chose. Settings and groups are
    recorded in a form that no option takes.
    """
    asked: Any = entries[0].facts["description"]
    named = {"ate": "estimate", "arms": "arms", "overlap": "overlap", "survival": "survival"}
    name = named.get(asked.get("question"))
    if name is None or asked.get("settings") is not None:
        return ""
    usual = "staircase" if asked["delta"] == "0" else "gaussian"
    options = {
        "protects": asked["protects"],
        "epsilon": asked["epsilon"],
        "delta": asked["delta"] if asked["delta"] != "0" else None,
        "method": asked["method"] if name != "overlap" else None,
        "estimand": asked["estimand"] if name == "estimate" else None,
        "level": str(asked["level"]) if asked["level"] != _LEVEL else None,
        "mechanism": asked["mechanism"] if asked["mechanism"] != usual else None,
        "trim": str(asked["trim"]) if "trim" in asked else None,
        "measure": asked.get("measure"),
        "ledger": data.ledger.name,
        "dataset": data.account.dataset,
        "request-id": entries[0].request_id,
    }
    words = [word for key, value in options.items() if value is not None for word in (f"--{key}", value)]
    return shlex.join(["counterveil", name, "DATA", "--study", "STUDY", *words])
