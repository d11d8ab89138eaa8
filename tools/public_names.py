"""The public names of the package, and the members of its classes that users call or read."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import counterveil as cv
from counterveil.session import BaseSession

PACKAGE = "counterveil"
# What `Session` inherits serves estimators; of that, users call these.
SESSION_MEMBERS = {"account", "close", "simulated"}
# What the package's own modules call on answers: parts of what is stored and shown.
BETWEEN_MODULES = {"document", "drawn_facts", "page_facts", "stored", "view"}
# What the package's own methods ask of public rows beside columns and sizes.
BETWEEN_MODULES |= {"cached", "codes", "columns_at_hand", "group_sizes", "of_sites", "shown", "with_labels"}


def public_names() -> dict[str, Any]:
    """Return what stands in `cv.__all__` and in the `__all__` of its modules, by the name that users write."""
    names: dict[str, Any] = {}
    for name in cv.__all__:
        thing = getattr(cv, name)
        names[f"cv.{name}"] = thing
        if isinstance(thing, ModuleType):
            names |= {f"cv.{name}.{inner}": getattr(thing, inner) for inner in thing.__all__}
    return names


def returned_classes() -> dict[str, type]:
    """Return the classes that public functions, sessions and answers return and that have no public name."""
    public = public_names()
    classes = {thing for thing in public.values() if inspect.isclass(thing)}
    calls = [thing for thing in public.values() if inspect.isroutine(thing)]
    for kind in (cv.Session, *(getattr(cv.results, name) for name in cv.results.__all__)):
        calls += [member for member in members(kind).values() if inspect.isroutine(member)]
    returned = {kind for call in calls for kind in _classes(_returned(call))}
    return {
        f"{kind.__module__}.{kind.__qualname__}": kind
        for kind in sorted(returned - classes, key=lambda kind: kind.__name__)
        if kind.__module__.startswith(f"{PACKAGE}.")
    }


def documented() -> dict[str, Any]:
    """Return everything that has to be documented: names, returned classes, and the members of all classes.

    A member that several classes inherit stands under the first of them alone.
    """
    things = public_names() | returned_classes()
    seen: set[int] = set()
    every: dict[str, Any] = {}
    for name, thing in things.items():
        inner = members(thing) if inspect.isclass(thing) else {}
        for full, one in {name: thing, **{f"{name}.{member}": inner[member] for member in inner}}.items():
            if id(one) not in seen:
                seen.add(id(one))
                every[full] = one
    return every


def members(kind: type) -> dict[str, Any]:
    """Return the public methods and properties of a class that the package defines, inherited ones included."""
    found: dict[str, Any] = {}
    for name in dir(kind):
        home = next((base for base in kind.__mro__ if name in vars(base)), None)
        if name.startswith("_") or name in BETWEEN_MODULES:
            continue
        if home is None or not home.__module__.startswith(PACKAGE):
            continue
        if home is BaseSession and name not in SESSION_MEMBERS:
            continue
        member = vars(home)[name]
        if isinstance(member, classmethod | staticmethod):
            member = member.__func__
        if isinstance(member, property) or hasattr(member, "func") or inspect.isroutine(getattr(kind, name)):
            found[name] = member
    return found


def _returned(call: Any) -> Any:
    """Return the annotation of what a function returns, or None if it has none that can be read."""
    try:
        return typing.get_type_hints(inspect.unwrap(call)).get("return")
    except (NameError, TypeError):
        return None


def _classes(annotation: Any) -> Iterator[type]:
    """Yield the classes that an annotation names."""
    if inspect.isclass(annotation):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from _classes(inner)
