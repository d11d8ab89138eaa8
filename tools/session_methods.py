"""Writes the methods of `Session` from the functions of the questions, between two marker comments.

python -m tools.session_methods            # write them into src/counterveil/questions/session.py
python -m tools.session_methods --check    # exit code 1 if they are not what the functions say

A method has the parameters and the docstring of its function without those that open a session, so that editors show
them in full.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from textwrap import indent

QUESTIONS = Path(__file__).resolve().parents[1] / "src/counterveil/questions"
PAGE = QUESTIONS / "session.py"
BEGIN = "    # Written by `python -m tools.session_methods` from the functions of the questions."
END = "    # End of what `python -m tools.session_methods` writes."
# Every question that a session answers, and the module of its function.
HOMES = {
    "ate": "ate",
    "arms": "arms",
    "cate": "cate",
    "event_study": "event_study",
    "groups": "groups",
    "moments": "moments",
    "outcomes": "outcomes",
    "overlap": "overlap",
    "policy_value": "policy",
    "quantiles": "quantiles",
    "survival": "survival",
    "targeting_curve": "policy",
}
# Parameters that a session has been told already.
OPENING = ("data", "study", "declared", "ledger", "dataset", "noise")
# A title that numpydoc underlines.
_UNDERLINED = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", re.M)
_CALL = r"cv\.{name}\(\s*([\w.]+), ([\w.]+),\s+(.*?),\s+noise=(cv\.SeededNoise\(\d+\)),?\s*\)"


def method(name: str) -> str:
    """Return the source of the method of a question."""
    source = (QUESTIONS / f"{HOMES[name]}.py").read_text(encoding="utf-8")
    function = next(
        node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == name
    )
    parameters = []
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if argument.arg not in OPENING:
            value = "" if default is None else f" = {ast.get_source_segment(source, default)}"
            parameters.append(f"{ast.get_source_segment(source, argument)}{value}")
    names = [each.partition(":")[0] for each in parameters]
    arguments = next(
        node.value.func.id
        for node in function.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
    )
    returns = ast.get_source_segment(source, function.returns) if function.returns is not None else "None"
    lines = [
        "@refuses_unknown",
        f"def {name}(",
        "    self,",
        "    *,",
        *(f"    {each}," for each in parameters),
        f") -> {returns}:",
        indent(f'"""{_docstring(name, ast.get_docstring(function) or "")}\n"""', "    "),
        f"    arguments = {arguments}(",
        *(f"        {each}={each}," for each in names),
        "    )",
        "    return ask_of(self, arguments)",
    ]
    return indent("\n".join(lines), "    ")


def sections(text: str) -> tuple[str, dict[str, str]]:
    """Return what stands before the first underlined title of a docstring, and the text under each title."""
    opening, *parts = _UNDERLINED.split(text)
    return opening, dict(zip(parts[::2], parts[1::2], strict=True))


def _docstring(name: str, whole: str) -> str:
    """Return the docstring of a function for the method: without what opens a session, asked of an open one."""
    opening, parts = sections(whole)
    written = [opening.strip()]
    for title, body in parts.items():
        text = body.strip("\n")
        if title == "Parameters":
            # A parameter starts at the margin, what is said of it is indented.
            entries = re.split(r"\n(?=\S)", text)
            text = "\n".join(each for each in entries if each.partition(" :")[0] not in OPENING)
        if title == "Examples":
            text = _of_a_session(name, text)
        written.append(f"{title}\n{'-' * len(title)}\n{text}")
    return "\n\n".join(written)


def _of_a_session(name: str, examples: str) -> str:
    """Return examples whose calls of the function are calls of the method, without those that follow a text."""
    first = re.split(r"\n\n(?=[A-Z])", examples.strip("\n"))[0]
    # Statements that are no call of the function keep their lines.
    joined = "".join(
        re.sub(r"\n\.\.\. +", " ", statement).replace("( ", "(").replace(" )", ")")
        if f"cv.{name}(" in statement
        else statement
        for statement in re.split(r"(?m)^(?=>>> )", first)
    )
    call = re.search(_CALL.format(name=name), joined)
    if call is None:
        raise ValueError(f"the example of {name} does not call cv.{name}(data, study, ..., noise=...)")
    data, study, arguments, noise = call.groups()
    delta = re.search(r"delta=([\w.-]+)", arguments)
    budget = f"cv.Budget(8, {delta.group(1)})" if delta else "cv.Budget(8)"
    before, after = joined[: call.start()], joined[call.end() :]
    start, _, assigned = before.rpartition(">>> ")
    opened = f">>> session = cv.Session({data}, {study}, budget={budget}, noise={noise})\n"
    return f"{start}{opened}>>> {assigned}session.{name}({arguments}){after}"


def page() -> str:
    """Return the module of `Session` as the functions say."""
    kept = PAGE.read_text(encoding="utf-8")
    before, rest = kept.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n" + "\n\n".join(map(method, HOMES)) + f"\n\n{END}{after}"


def main(arguments: list[str]) -> int:
    """Write the methods, or with `--check` return 1 if they are stale."""
    made = page()
    if arguments == ["--check"]:
        fresh = made == PAGE.read_text(encoding="utf-8")
        print("methods of Session: in order" if fresh else "run: python -m tools.session_methods")
        return not fresh
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
