"""A result as Markdown: the same parts as its page, without the pictures; other programs make DOCX or PDF of it."""

from __future__ import annotations

import re
from typing import Any

from counterveil.privacy import Budget
from counterveil.report.balance import balance_cells, overlap_rows, overlap_sentence
from counterveil.report.caveats import caveat_words
from counterveil.report.confounding import benchmark_cells, sensitivity_items
from counterveil.report.confounding import effect_cells as withstood_cells
from counterveil.report.document import Cells, Item, View
from counterveil.report.figures import details_sentence
from counterveil.report.table_one import bought_cells, table_one_cells, table_one_words
from counterveil.report.view import (
    effect_cells,
    interval_sentence,
    lead_sentence,
    mean_cells,
    title,
    unit_word,
)
from counterveil.report.words import answer_words, protection_words, question_words, write_up

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$&!])")


def escaped(text: str) -> str:
    """Return a text on one line in which nothing is taken for Markdown or HTML."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def markdown_page(facts: dict[str, Any]) -> str:
    """Return the report of a result as Markdown."""
    means = mean_cells(facts)
    numbers = [
        ("Estimated", lead_sentence(facts)),
        ("Method", facts["method"]),
        ("Interval", interval_sentence(facts)),
        *facts.get("notes", []),
        ("Details", details_sentence(facts["details"], unit_word(facts))),
    ]
    first = [facts[key] for key in ("warning", "caution") if facts.get(key)]
    parts = [
        *(f"> **{escaped(text)}**" for text in first),
        f"# {escaped(title(facts))}",
        escaped(question_words(facts)),
        "## Answer",
        *map(escaped, answer_words(facts)),
        _table(effect_cells(facts)),
        "## What is protected",
        *map(escaped, protection_words(facts)),
        "## All numbers",
        *([_table(means)] if means else []),
        _items(numbers),
        *_diagnostics(facts),
        "## What the intervals do not cover",
        _list(caveat_words(facts)),
        *_guarantee(facts),
        "## For a paper",
        escaped(write_up(facts)),
        *_repeated(facts),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_view(view: View) -> str:
    """Return a view as Markdown: warnings, title, tables and named lines."""
    parts = [
        *(f"> **{escaped(text)}**" for text in view.first),
        f"# {escaped(view.title)}",
        escaped(view.lead),
        *map(_table, view.tables),
        *map(escaped, view.more),
        _items(view.items),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _diagnostics(facts: dict[str, Any]) -> list[str]:
    found: list[str] = []
    said, cells = table_one_words(facts), table_one_cells(facts)
    if said:
        tables = [cells] if cells is not None else bought_cells(facts)
        found += ["## Who was compared", escaped(said), *map(_table, tables)]
    balance = balance_cells(facts)
    if balance is not None:
        found += ["## Balance of the covariates", _table(balance)]
    scores = overlap_rows(facts)
    if scores is not None:
        found += ["## Overlap of the arms", escaped(overlap_sentence(scores))]
    confounding = facts.get("confounding")
    if confounding:
        strengths = [withstood_cells(confounding), benchmark_cells(confounding)]
        found += ["## Unmeasured confounding", *(_table(one) for one in strengths if one is not None)]
        found.append(_items(sensitivity_items(confounding)))
    return found


def _guarantee(facts: dict[str, Any]) -> list[str]:
    guarantee, spent = facts["guarantee"], Budget.from_dict(facts["spent"])
    rows = [
        ("Guarantee", guarantee["sentence"]),
        ("Proofs", ", ".join(guarantee["pages"])),
        *(("Remark", remark) for remark in guarantee["remarks"]),
    ]
    return [
        "## What is guaranteed",
        _items(rows),
        "Taken as public:",
        _list(guarantee["public"]),
        "## What was released, and what it cost",
        f"Spent: {escaped(str(spent))}",
        _list([f"{name}: {text}" for name, text in facts["releases"]]),
    ]


def _repeated(facts: dict[str, Any]) -> list[str]:
    known = facts.get("repeat")
    if not known:
        return []
    parts = ["## How to repeat it", escaped(known["remark"])]
    for heading, key, language in (
        ("The study, study.toml", "study", "toml"),
        ("Python", "python", "python"),
        ("Command line", "command", "sh"),
    ):
        if known.get(key):
            parts += [f"### {heading}", _code(known[key], language)]
    return parts


def _code(text: str, language: str) -> str:
    # Longer than every run of backticks inside, so that none of them ends it.
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _items(items: list[Item]) -> str:
    return "\n".join(f"- **{escaped(name)}**: {escaped(text)}" for name, text in items if text)


def _list(texts: list[str]) -> str:
    return "\n".join(f"- {escaped(text)}" for text in texts)


def _table(cells: Cells) -> str:
    def line(row: list[str]) -> str:
        return f"| {' | '.join(map(escaped, row))} |"

    rule = f"|:---|{'---:|' * (len(cells.headings) - 1)}"
    return "\n".join([line(cells.headings), rule, *map(line, cells.rows)])
