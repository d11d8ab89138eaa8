"""The pages of the Python API: each public name with its signature, its arguments and what its docstring says."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from tools.reference.attributes import ATTRIBUTES
from tools.reference.docstrings import attributes, call, doc_of, parameters, shown_default, type_name
from tools.reference.markdown import MADE_SHORT, table, template

import counterveil as cv
from counterveil.questions.ate import METHODS
from counterveil.settings.methods import Settings, range_of

# Where the how-to of a name is; a name that is gone is left out.
HOW_TO = {
    "ate": "[choose a method](../../how-to/choose-a-method.md), [choose epsilon](../../how-to/choose-epsilon.md), "
    "[use a database](../../how-to/use-a-database.md)",
    "arms": "[several arms](../../how-to/several-arms.md), [`ArmsResult`](../result.md#armsresult)",
    "cate": "[who benefits](../../how-to/who-benefits.md)",
    "groups": "[effects by group](../../how-to/effects-by-group.md), [`GroupsResult`](../result.md#groupsresult)",
    "policy_value": "[the value of a policy](../../how-to/policy-value.md), [`PolicyValue`](../result.md#policyvalue)",
    "targeting_curve": "[`TargetingCurve`](../result.md#targetingcurve)",
    "published": "[published forms](../published.md)",
    "pool": "[pool sites](../../how-to/pool-sites.md), [`PooledResult`](../result.md#pooledresult)",
    "plan": "[choose epsilon](../../how-to/choose-epsilon.md)",
    "Session": "[register a budget](../../how-to/register-a-budget.md)",
    "Result": "[result](../result.md)",
    "Study": "[study](../study.md), [describe your data](../../how-to/describe-your-data.md)",
    "AccessPolicy": "[ledger](../ledger.md#accesspolicy)",
    "open_ledger": "[ledger](../ledger.md)",
    "results.Guarantee": "[result](../result.md#guarantee)",
    "CounterveilError": "[errors](../errors.md)",
    "SeededNoise": "[run in CI or a notebook](../../how-to/run-in-ci-or-notebook.md)",
}
# Modules of few words a name, whose names share a page; those of `published` have one outside this folder.
SHARED = {"datasets", "interim", "omop", "plots", "published"}
FOLDER = "docs/reference/api"
_BESIDE = re.compile(r"\]\(((?:\.\./)*)([\w./-]+)\.md(#[\w-]+)?\)")
_AS_FOR = re.compile(r"^as for `cv\.(\w+)`")
GROUPS = (
    "Questions",
    "Several questions against one budget",
    "Answers",
    "Study and data",
    "Settings",
    "Other names",
)


def api_pages() -> dict[str, str]:
    """Return the pages of `docs/reference/api/` by their path: an index, and one for each public name."""
    answers = _answers()
    found: dict[str, list[str]] = {group: [] for group in GROUPS}
    pages: dict[str, list[str]] = {}
    for name, thing in _every():
        page = _page(name)
        if page not in pages:
            found[_group(name, thing, answers)].append(f"- {_linked(name)}: {_first_words(thing)}")
        mark = "##" if page in pages else "#"
        pages.setdefault(page, [MADE_SHORT]).append(_section(mark, name, thing, name in answers).strip())
    lists = "\n\n".join(f"## {group}\n\n" + "\n".join(lines) for group, lines in found.items())
    index = template("api.head", names=lists, methods="\n".join(_methods()))
    made = {page: "\n\n".join(texts) + "\n" for page, texts in pages.items()}
    return {f"{FOLDER}/{page}": text for page, text in {"index.md": index, **made}.items()}


def api_page() -> str:
    """Return `docs/reference/api.md`: all of those pages in one, which the site shows one by one."""
    index, *pages = (text.replace(f"{MADE_SHORT}\n\n", "") for text in api_pages().values())
    deeper = (re.sub(r"^(#+) `cv\.", r"#\1 `cv.", page, flags=re.MULTILINE) for page in pages)
    return _BESIDE.sub(_in_one_page, "\n".join([index, *deeper]))


def _in_one_page(link: re.Match[str]) -> str:
    """Return a link of a page as it is in the page of all."""
    up, page, anchor = link.groups()
    if up:
        return f"]({up.removeprefix('../')}{page}.md{anchor or ''})"
    return f"]({anchor or '#cv' + page.replace('.', '').lower()})"


def _every() -> Iterator[tuple[str, Any]]:
    """Yield every public name and what it stands for; modules come before the names in them."""
    for name in sorted(cv.__all__, key=lambda name: (name.lower(), name)):
        thing = getattr(cv, name)
        if not isinstance(thing, ModuleType) or name in SHARED:
            yield name, thing
        if isinstance(thing, ModuleType) and thing is not cv.published:
            for inner in _inside(thing):
                if inner not in cv.__all__:
                    yield f"{name}.{inner}", getattr(thing, inner)


def _page(name: str) -> str:
    module = name.partition(".")[0]
    return f"{module if module in SHARED else name}.md"


def _linked(name: str) -> str:
    """Return a link to a public name."""
    anchor = "" if _page(name) == f"{name}.md" else f"#cv{name.replace('.', '').lower()}"
    return f"[`cv.{name}`]({_page(name)}{anchor})"


def _first_words(thing: Any) -> str:
    """Return how the docstring of an object begins."""
    first = next(iter(doc_of(thing).paragraphs), "")
    return re.split(r"(?<=[.;:]) ", first)[0].removeprefix("Return ").rstrip(".;:")


def _inside(module: ModuleType) -> list[str]:
    """Return the public names of a module: those it lists, or the functions it defines."""
    own = [
        name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__
    ]
    return list(getattr(module, "__all__", sorted(name for name in own if not name.startswith("_"))))


def _methods() -> list[str]:
    """Return the table of the methods that average effects can be asked with."""
    rows = []
    for name, method in METHODS.items():
        levels = sorted(unit.value for unit in method.forms)
        settings = "" if method.settings is None else f"`cv.settings.{method.settings.__name__}`"
        rows.append((f'`"{name}"`', " or ".join(levels), settings))
    return table(("method", "protects", "settings"), rows)


def _answers() -> set[str]:
    """Return the names of the classes that public functions return."""
    said = [
        type_name(inspect.signature(thing).return_annotation)
        for name in cv.__all__
        if inspect.isfunction(thing := getattr(cv, name))
    ]
    own = {name: name for name in cv.__all__} | {f"results.{name}": name for name in cv.results.__all__}
    return {full for full, name in own.items() if any(re.search(rf"\b{name}\b", text) for text in said)}


def _group(name: str, thing: Any, answers: set[str]) -> str:
    if hasattr(cv.Session, name) or (inspect.isfunction(thing) and {"study", "results"} & set(_names(thing))):
        return GROUPS[0]
    if thing is cv.Session:
        return GROUPS[1]
    if name in answers or name.partition(".")[0] == "results":
        return GROUPS[2]
    if f"{getattr(thing, '__module__', '')}.".startswith("counterveil.data."):
        return GROUPS[3]
    if name.partition(".")[0] == "settings":
        return GROUPS[4]
    return GROUPS[5]


def _names(function: Any) -> list[str]:
    return [each.name for each in parameters(function)]


def _section(mark: str, name: str, thing: Any, is_answer: bool) -> str:
    lines = [f"{mark} `cv.{name}`", ""]
    doc = doc_of(thing)
    if callable(thing) and not is_answer and not _error(thing):
        lines += ["```text", call(f"cv.{name}", thing), "```", ""]
    for paragraph in doc.paragraphs:
        lines += [paragraph, ""]
    if name in HOW_TO:
        lines += [f"See {HOW_TO[name]}.", ""]
    if inspect.isclass(thing):
        lines += _class_tables(thing, is_answer)
    elif callable(thing):
        lines += _arguments(thing)
    return "\n".join(lines)


def _error(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, Exception)


def _arguments(function: Any) -> list[str]:
    """Return the table of a function's arguments, without those that `cv.ate` has alike."""
    alike = set() if function is cv.ate else set(_argument_rows(cv.ate))
    every = _argument_rows(function)
    rows = [row for row in every if row not in alike]
    lines = [*table(("argument", "type", "default", "meaning"), rows), ""] if rows else []
    if len(rows) < len(every):
        others = ", ".join(row[0] for row in every if row in alike)
        lines += [f"As for {_linked('ate')}: {others}.", ""]
    return lines


def _argument_rows(function: Any) -> list[tuple[str, str, str, str]]:
    said = ATTRIBUTES | doc_of(function).entries
    rows = []
    for each in parameters(function):
        default = "required" if each.default is each.empty else f"`{shown_default(each.default)}`"
        rows.append((f"`{each.name}`", type_name(each.annotation), default, _resolved(each.name, said)))
    return rows


def _resolved(name: str, said: dict[str, str]) -> str:
    """Return what is said of an argument; "as for `cv.ate`" is replaced by what is said there."""
    text = said.get(name, "")
    match = _AS_FOR.match(text)
    return doc_of(getattr(cv, match.group(1))).entries.get(name, text) if match else text


def undescribed() -> list[str]:
    """Return the arguments of public functions of which no docstring says anything."""
    functions = {name: thing for name in cv.__all__ if inspect.isfunction(thing := getattr(cv, name))}
    return [
        f"cv.{name}: {argument}"
        for name, function in functions.items()
        for argument in _names(function)
        if not _resolved(argument, doc_of(function).entries)
    ]


def _class_tables(kind: type, is_answer: bool) -> list[str]:
    """Return the tables of a class, without what `ReleasedAnswer`, or a public class above it, has alike."""
    public = {each.__name__: each for each in (*kind.__mro__[1:], cv.results.ReleasedAnswer)}
    base = next(each for name, each in public.items() if name in cv.results.__all__)
    alike = set() if base is kind else {row for _, rows in _tables(base, True) for row in rows}
    lines, left_out = [], False
    for headings, every in _tables(kind, is_answer or base in kind.__mro__):
        rows = [row for row in every if row not in alike]
        left_out |= len(rows) < len(every)
        lines += [*table(headings, rows), ""] if rows else []
    if left_out:
        names = [row[0] for _, rows in _tables(kind, True) for row in rows if row in alike]
        which = (
            "everything"
            if base in kind.__mro__
            else ", ".join(name.partition("(")[0] + "`" if "(" in name else name for name in names)
        )
        lines += [f"Also, as {_linked(f'results.{base.__name__}')}: {which}.", ""]
    return lines


def _tables(kind: type, is_answer: bool) -> Iterator[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Yield headings and rows of a class: its fields or arguments, its properties, its methods."""
    said = ATTRIBUTES | doc_of(kind).entries
    fields = attributes(kind)
    own_init = not is_answer and bool(fields) and not kind.__dataclass_params__.init  # type: ignore[attr-defined]
    rows: list[tuple[str, ...]]
    if fields and not own_init:
        rows = [
            (f"`{name}`", of, f"`{default}`" if default else "", said.get(name, ""))
            for name, of, default in fields
        ]
        headings: tuple[str, ...] = ("field", "type", "default", "meaning")
        if is_answer:
            rows, headings = [(row[0], row[1], row[3]) for row in rows], ("attribute", "type", "meaning")
        elif issubclass(kind, Settings):
            ranges = [range_of(each) for each in dataclasses.fields(kind)]
            rows = [(*row[:3], said_range, row[3]) for row, said_range in zip(rows, ranges, strict=True)]
            headings = (*headings[:3], "range", headings[3])
        yield headings, rows
    elif not _error(kind) and parameters(kind):
        yield ("argument", "type", "default", "meaning"), list(_argument_rows(kind))
    members = dict(_public(kind, {name for name, _, _ in fields}))
    properties = {name: thing for name, thing in members.items() if isinstance(thing, property)}
    methods = {name: thing for name, thing in members.items() if name not in properties}
    if properties:
        rows = [(f"`{name}`", " ".join(doc_of(thing).paragraphs)) for name, thing in properties.items()]
        yield ("property", "meaning"), rows
    if methods:
        yield ("method", "what it does"), [_method(name, thing) for name, thing in methods.items()]


def _public(kind: type, fields: set[str]) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class in the order of their names, inherited ones included."""
    homes = [each for each in kind.__mro__ if each.__module__.startswith("counterveil")]
    for name in sorted({name for home in homes for name in vars(home)} - fields):
        thing = inspect.getattr_static(kind, name)
        kept = isinstance(thing, property | staticmethod | classmethod | FunctionType)
        if not name.startswith("_") and kept and not _of_the_gate(kind, name):
            yield name, thing


def _of_the_gate(kind: type, name: str) -> bool:
    """Whether a member of the session serves estimators and not those who ask."""
    home = next(each for each in kind.__mro__ if name in vars(each))
    return kind is cv.Session and home is not kind and name not in ("account", "close", "simulated")


def _method(name: str, thing: Any) -> tuple[str, str]:
    bound = isinstance(thing, classmethod) or not isinstance(thing, staticmethod)
    function = thing.__func__ if isinstance(thing, staticmethod | classmethod) else thing
    how = " ".join(call(name, function, bound=bound).split())
    text = " ".join(doc_of(function).paragraphs)
    if function.__qualname__ == f"Session.{name}" and (name in cv.__all__ or name == "look"):
        return (
            f"`{name}(...)`",
            f"As {_linked(name if name in cv.__all__ else f'interim.{name}')}, of the session's data.",
        )
    return f"`{how}`", text
