"""`counterveil federation coordinator`: one question to several sites, and the pooled answer."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from counterveil.cli.program import Group, argument, option
from counterveil.cli.requests import AsJson, Given, Report, check_report, options, shared, show

if TYPE_CHECKING:
    from counterveil.federation.study_files import StudyFolder


coordinator_app = Group("Ask several sites one question and pool their answers.")

Folder = Annotated[Path, argument("FOLDER", "The coordinator's folder for this study.")]


_ASKED = ("protects", "epsilon", "delta", "estimand", "level", "measure")
# What a study file says beside its question and its sites, by its own names.
_STUDY = [
    *options(str, "NAME", ..., id="Name of the study, the same at all sites."),
    *options(str, "HOST:PORT", ..., address="Where sites reach the coordinator; the certificate names HOST."),
    *options(float, "SECONDS", 3600, deadline="How long one run waits for the sites."),
    *options(float, "SECONDS", 60, retry="When to ask a silent site again."),
    *options(int | None, "INTEGER", quorum="Answers needed for a result; all sites if omitted."),
    *options(str, "NAME", "mvagg", pooling="How answers are pooled: --method of `counterveil pool`."),
    *options(float, "NUMBER", 0.5, max_weight="Largest weight of one site."),
    *options(
        str,
        "NAME",
        "none",
        aggregation='"none": sites answer, each with its noise; "secure": masked sums with one noise.',
    ),
]
_QUESTION = [
    *options(str, "NAME", ..., method='A method by name; "auto" is not allowed.'),
    *options(
        list[str], "NAME[=FILE]", ..., site="A site, with the file of its public key if you have it already."
    ),
    *options(
        str,
        "NAME",
        "ate",
        question='"ate" (if omitted), "arms", "groups", "outcomes", "survival" or "moments".',
    ),
    *options(list[str] | None, "NAME[=CUTS]", by="For groups: a covariate, with cut points: age=40,65."),
    *options(
        int,
        "INTEGER",
        1,
        colluding="For secure sums: how many sites may collude with the coordinator.",
    ),
]


@coordinator_app.command(short_help="Create the folder of a study: question, sites, certificates.")
@shared("study", *_ASKED, "setting", "as_json", more=[*_STUDY, *_QUESTION])
def create(given: Given, folder: Folder) -> None:
    """Create the folder of a study: the question, the sites, and certificates.

    Each site is asked for this epsilon and delta. Send keys/ca.crt and declaration.toml of the folder to the sites.
    """
    import counterveil as cv
    from counterveil.cli.effects import cut_points
    from counterveil.federation.setup import make_study
    from counterveil.questions.settings_values import setting_value
    from counterveil.report.text import held_against
    from counterveil.results.measures import check_measure

    check_measure(given["measure"])
    named = dict(word.partition("=")[::2] for word in given["site"])
    asked = {name: given[name] for name in ("method", *_ASKED)}
    asked["estimand"] = given["estimand"] or "ATE"
    if given["question"] != "ate":
        asked["question"] = given["question"]
    if given["by"]:
        asked["options"] = {"by": {name: list(cuts or ()) for name, cuts in cut_points(given["by"]).items()}}
    if given["setting"]:
        words = (word.partition("=") for word in given["setting"])
        asked["settings"] = {name: setting_value(text) for name, _, text in words}
    document: dict[str, Any] = {each.name: given[each.name] for each in _STUDY}
    document["quorum"] = len(named) if given["quorum"] is None else given["quorum"]
    document |= {"question": asked, "sites": {name: {"epsilon": given["epsilon"]} for name in named}}
    document |= {"colluding": given["colluding"]} if given["aggregation"] != "none" else {}
    public_keys = {name: Path(key) for name, key in named.items() if key}
    made = make_study(folder, document, cv.Study.from_toml(given["study"]), public_keys)
    missing = [name for name in named if name not in public_keys]
    facts: dict[str, Any] = {
        "folder": str(folder),
        "authority": str(folder / "keys" / "ca.crt"),
        "keys_missing": missing,
    }
    facts |= {"aggregation": made.aggregation, "colluding": made.colluding}
    text = _heading(held_against(len(named), made.colluding))
    text += f"\nSend {facts['authority']} and {folder / 'declaration.toml'} to the sites."
    if missing:
        text += f"\nSave the node.pub of each site as {folder / 'sites'}/NAME.pub: {', '.join(missing)}."
    print(json.dumps(facts, indent=2) if given["as_json"] else text)


@coordinator_app.command(short_help="Ask the sites and pool their answers.")
def run(
    folder: Folder,
    listen: Annotated[
        str, option("ADDRESS", "127.0.0.1 for sites on this machine, 0.0.0.0 for any site.")
    ] = "127.0.0.1",
    again: Annotated[
        list[str] | None,
        option("SITE", "Ask this site as a new request, for which it pays again. May be repeated."),
    ] = None,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Ask the sites that have not answered yet, show progress, and pool the answers.

    If fewer sites than the quorum answer, the exit code is 8. Run it again to ask the missing sites; a site that
    has answered does not pay twice.
    """
    from counterveil.federation.sum_round import run_study

    check_report(report)
    opened = _open(folder)
    for site in again or []:
        opened.renew(site)
    begin = time.monotonic()

    def tell(text: str) -> None:
        print(f"{time.monotonic() - begin:7.1f} s  {text}", file=sys.stderr, flush=True)

    parts = run_study(opened, listen, tell)
    said = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in parts.items())
    tell(f"done: {said}")
    _show_result(opened, None, report, as_json)


@coordinator_app.command(short_help="Show which sites have answered.")
def status(folder: Folder, as_json: AsJson = False) -> None:
    """Show which sites have answered, and why the others have not."""
    from counterveil.federation.coordinator import states

    opened = _open(folder)
    found = states(opened)
    if as_json:
        said = {"sites": [each.to_dict() for each in found], "aggregation": opened.study.aggregation}
        print(json.dumps(said, indent=2))
    else:
        print(_protection(opened))
        print("\n".join(f"{each.site}: epsilon {each.epsilon}, {each.state}" for each in found))


@coordinator_app.command(short_help="Pool the answers received so far; free.")
def result(
    folder: Folder,
    method: Annotated[str | None, option("NAME", "Pool in another way than the study says.")] = None,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Pool the answers received so far.

    No site is asked and nothing is spent.
    """
    check_report(report)
    _show_result(_open(folder), method, report, as_json)


def _open(folder: Path) -> StudyFolder:
    from counterveil.federation.study_files import StudyFolder

    return StudyFolder(folder)


def _show_result(folder: StudyFolder, method: str | None, report: Path | None, as_json: bool) -> None:
    from counterveil.federation.coordinator import pooled, states

    effect = pooled(folder, method)
    missing = [each for each in states(folder) if not each.answered]
    for each in missing:
        print(f"NOT IN THE RESULT: {each.site}: {each.state}", file=sys.stderr)
    more = {"not_in_result": [each.to_dict() for each in missing], "aggregation": folder.study.aggregation}
    show(effect, report, as_json, more=more)
    if not as_json:
        print(_protection(folder))


def _protection(folder: StudyFolder) -> str:
    """Return against whom the answer of a study protects, in words."""
    from counterveil.federation.coordinator import members_of
    from counterveil.report.text import held_against

    return _heading(held_against(len(members_of(folder)), folder.study.colluding))


def _heading(text: str) -> str:
    return f"Protection:  {text}"
