"""Where the sum of a study stands, kept in its folder, and the answer that its sites computed from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isclose
from typing import Any

from counterveil.bounded_reading import UnreadableError
from counterveil.errors import refusal
from counterveil.federation.files import damaged, read_json, write_json
from counterveil.federation.masking import Step
from counterveil.federation.study_files import StudyFolder
from counterveil.questions.pooled import computed_facts

_STATE = "sum.json"
# Machines round differently, far below this.
_NEAR = {"rel_tol": 1e-6, "abs_tol": 1e-12}


def keep_step(folder: StudyFolder, step: Step, failed: bool = False) -> None:
    """Keep where a sum stands, and whether it failed."""
    write_json(folder.path / _STATE, step.to_document() | {"failed": failed})


def kept_step(folder: StudyFolder) -> tuple[Step, bool]:
    """Return where the sum of a study stands, and whether it failed."""
    path = folder.path / _STATE
    kept = read_json(path, "failed")
    if kept is None:
        return Step(colluding=folder.study.colluding), False
    try:
        return Step.read({name: kept[name] for name in kept if name != "failed"}), bool(kept["failed"])
    except UnreadableError as error:
        raise damaged(path, str(error)) from None


def members_of(folder: StudyFolder) -> tuple[str, ...]:
    """Return the sites of a sum: those on its list, or all that are asked before there is one."""
    listed = kept_step(folder)[0].members if folder.study.colluding else ()
    return tuple(member.site for member in listed) or tuple(folder.study.asks)


def agreed(folder: StudyFolder, results: Mapping[str, Any]) -> tuple[Any, set[str]]:
    """Return the answer that more than half of the members computed, and the members; CV-F501 where there is none."""
    step, failed = kept_step(folder)
    members = {member.site for member in step.members}
    given = {site: [*_leaves(computed_facts(results[site].to_dict()))] for site in results if site in members}
    votes = {site: sum(_alike(own, other) for other in given.values()) for site, own in given.items()}
    count = max(votes.values(), default=0)
    if failed or not members or 2 * count <= len(members):
        got = "sums beyond it" if failed else f"{count} of {len(members)} sites with one answer"
        raise refusal("CV-F501", sites=", ".join(sorted(members or folder.study.asks)), got=got)
    return results[next(site for site in votes if votes[site] == count)], members


def _leaves(value: object) -> Iterator[object]:
    """Yield the texts and numbers of a document, in order."""
    if isinstance(value, Mapping):
        value = [one for name in sorted(value) for one in (name, value[name])]
    if not isinstance(value, list | tuple):
        yield value
        return
    for one in value:
        yield from _leaves(one)


def _alike(own: list[object], other: list[object]) -> bool:
    """Return whether two answers are one, computed on machines that may round differently."""
    return len(own) == len(other) and all(
        one == two or (isinstance(one, float) and isinstance(two, float) and isclose(one, two, **_NEAR))
        for one, two in zip(own, other, strict=True)
    )


def most_rows(folder: StudyFolder, site: str) -> int | None:
    """Return how many rows an answer of a site can be about: its own, or those of all members of a sum."""
    return kept_step(folder)[0].rows if folder.study.colluding else folder.study.max_rows.get(site)
