"""The refusals of data that do not fit a study: they name the column, never a row or a value.

They are raised while a table is being attached, before anything can be spent, and are meant for the data holder.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from counterveil.errors import CounterveilError, refusal

_LISTED = 12


def nearest(name: object, known: Iterable[object], owner: str) -> str:
    """Return advice on which known name was probably meant."""
    names = [str(candidate) for candidate in known]
    probably = meant(name, names)
    if probably is not None:
        return f"did you mean {probably!r}?"
    listed = ", ".join(repr(candidate) for candidate in names[:_LISTED])
    more = ", ..." if len(names) > _LISTED else ""
    return f"{owner} has: {listed}{more}" if names else f"{owner} has no columns"


def meant(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant, None where none is close."""
    folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def no_such_column(name: str, known: Iterable[object]) -> CounterveilError:
    """Return CV-D001."""
    return refusal("CV-D001b", name=name, fix=nearest(name, known, "the data"))


def strange_treatment(name: str, treated: object, control: object) -> CounterveilError:
    """Return CV-D005."""
    other = "exactly one other label" if control is None else repr(control)
    return refusal("CV-D005", name=name, treated=treated, other=other)


def undeclared_arm(name: str, arms: Iterable[object]) -> CounterveilError:
    """Return CV-D017."""
    return refusal("CV-D017", name=name, arms=", ".join(repr(label) for label in arms))


def not_binary(name: str, labels: Iterable[object]) -> CounterveilError:
    """Return CV-D007."""
    return refusal("CV-D007", name=name, labels=" and ".join(repr(label) for label in labels))


def not_events(name: str, kinds: int) -> CounterveilError:
    """Return CV-D090."""
    return refusal("CV-D090", name=name, values=" or ".join(str(kind + 1) for kind in range(kinds)))


def duplicated_columns(names: Iterable[object]) -> CounterveilError:
    """Return CV-D010."""
    return refusal("CV-D010", got=", ".join(sorted({repr(name) for name in names})))


def unreadable_file(name: str, form: str) -> CounterveilError:
    """Return CV-D015."""
    return refusal("CV-D015", form=form, got=repr(name))


def uneven_arrays(names: Iterable[str]) -> CounterveilError:
    """Return CV-D014."""
    return refusal("CV-D014", names=", ".join(repr(name) for name in names))


def too_many_groups(most: int, rows: int, strata: int) -> CounterveilError:
    """Return CV-D055, from the number of rows and of declared strata alone."""
    return refusal("CV-D055", most=most, fewer=most // 2, rows=rows, strata=strata)
