"""Help pages, names of commands and completion in a shell."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import typer
from tests.command_line import asked, said
from tests.thinned import thinned_rows
from tools.reference.cli_page import described

from counterveil.cli.app import program

COMMANDS = dict(program.every())


def page(name, option):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        return said(*name.split(), option)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_page_lists_every_option_once_without_markup(name):
    text = page(name, "-h")
    assert "\\" not in text
    assert max(map(len, text.splitlines())) <= 80
    for each in described(COMMANDS[name]):
        assert each.help.endswith("."), each
        words = f"  {each.words.replace('/--', ' / --')} "
        assert sum(f"{line} ".startswith(words) for line in text.splitlines()) == 1, each
        assert each.is_argument or each.repeated is ("May be repeated" in each.help), each


@pytest.mark.parametrize("name", COMMANDS)
def test_numbers_are_read_as_people_write_them(name):
    hints = get_type_hints(COMMANDS[name], include_extras=True)
    for kind, info in (get_args(hint) for parameter, hint in hints.items() if parameter != "return"):
        is_number = {int, float, list[int], list[float]} & {kind, *get_args(kind)}
        assert (info.parser is not None) is bool(is_number), (name, info.help)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("typed", "offered"),
    thinned_rows(
        [
            ("fed", "federation"),
            ("federation co", "coordinator"),
            ("plan --bin", "--binary"),
            ("ledger ", "create access-policy show verify backup checkpoint"),
            ("plan --protects t", "treatment\\ and\\ outcome"),
            ("survival --method ", "auto kaplan_meier stratified weighting"),
            ("plan --test ", "superiority noninferiority equivalence"),
        ],
        ("survival --method ", "auto kaplan_meier stratified weighting"),
        ("plan --bin", "--binary"),
    ),
)
def test_bash_completes_commands_and_options(tmp_path, typed, offered):
    program = tmp_path / "counterveil"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m counterveil "$@"\n')
    program.chmod(0o755)
    words = " ".join(f"'{word}'" for word in ["counterveil", *typed.split(" ")])
    script = (
        'eval "$(counterveil --show-completion)"\n'
        f"COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
        '_counterveil_completion counterveil; echo "${COMPREPLY[*]}"\n'
    )
    run = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert run.stdout.split() == offered.split(), run.stderr


def test_typer_is_used_by_its_documented_names_alone():
    """Its insides change in minors: classes below `typer.core` went, and click with them."""
    found = []
    for path in (
        path for folder in ("src", "lab/src", "tests", "tools") for path in Path(folder).rglob("*.py")
    ):
        text = path.read_text(encoding="utf-8")
        # Few files name them, and reading all of them as Python would take half a minute.
        for node in ast.walk(ast.parse(text)) if re.search(r"typer|(import|from) click", text) else ():
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "typer"
            ):
                names.append(f"typer.{node.attr}")
            found += [(str(path), name) for name in names if name.split(".")[0] in ("typer", "click")]
    documented = {"typer", "typer.confirm", "typer.prompt"} | {
        f"typer.{name}" for name in vars(typer) if name[0].isupper()
    }
    assert [each for each in found if each[1] not in documented] == []


@pytest.mark.parametrize(
    ("words", "help_of"),
    [
        (["estimate"], "estimate"),
        (["estimate", "t.csv", "--nope"], "estimate"),
        (["federation", "site", "approve"], "federation site approve"),
        (["ledger", "nope"], "ledger"),
        (["nope"], ""),
        (["console", "folder", "--port", "1e400"], "console"),
        (["plan", "--level", "٣"], "plan"),
    ],
)
def test_words_that_do_not_fit_name_the_help_page(words, help_of):
    found = asked(*words)
    assert found.exit_code == 2
    assert found.stdout == ""
    # Of -h and --help some versions of typer name the one, some the other.
    path = " ".join(["counterveil", *help_of.split()])
    assert {f"Try '{path} {word}' for help." for word in ("-h", "--help")} & {*found.stderr.splitlines()}


def test_a_password_in_wrong_words_is_not_repeated_in_control_characters():
    assert "\x1b" not in asked("estimate", "--\x1b[2Jnope").stderr
