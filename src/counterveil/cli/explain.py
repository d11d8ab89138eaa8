"""`counterveil explain`: the page of an error code, or a proof that a result names."""

from __future__ import annotations

import re
import sys
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated

import typer

from counterveil.errors import ParameterError, shown

_CODE = re.compile(r"CV-[A-Z]\d{3}")
_ERRORS, _PROOF = "error_pages", ".proof.md"


def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            help="An error code such as CV-P004, or a proof such as laplace; left out, lists the proofs."
        ),
    ] = None,
) -> None:
    """Show the page of an error code or a proof."""
    if name is None:
        print("\n".join(sorted(_proofs())))
        return
    text = _page(name.strip())
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        print(text)


def _page(name: str) -> str:
    """Return the text of a page; raises CV-P024."""
    error = files("counterveil") / _ERRORS / f"{name.upper()}.md"
    if _CODE.fullmatch(name.upper()) and error.is_file():
        return error.read_text(encoding="utf-8")
    proofs = _proofs()
    meant = [path for path in proofs if path == name or path.rpartition("/")[2] in (name, name + _PROOF)]
    if len(meant) == 1:
        return proofs[meant[0]].read_text(encoding="utf-8")
    raise ParameterError(
        "CV-P024",
        "there is no page of this name",
        expected="an error code, or the name of a proof as results print it",
        got=shown(name),
        fix="`counterveil explain` lists the proofs"
        if not meant
        else f"say which: {', '.join(sorted(meant))}",
    )


def _proofs() -> dict[str, Traversable]:
    """Return every proof page by its path in the package, as results name it."""
    return dict(_below(files("counterveil"), ""))


def _below(folder: Traversable, path: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _below(entry, f"{path}{entry.name}/")
        elif entry.name.endswith(_PROOF):
            found.append((path + entry.name, entry))
    return found
