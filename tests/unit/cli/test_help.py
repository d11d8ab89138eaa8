"""Help pages, names of commands and completion in a shell."""

import os
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner
from tests.thinned import thinned_rows
from tools.reference.cli_page import commands_of
from typer.main import get_command

from counterveil.cli.app import app
from counterveil.cli.requests import described

COMMANDS = dict(commands_of(app))
# Made once: of 42 commands it takes longer than a page.
PROGRAM = get_command(app)


def page(name, option):
    found = CliRunner().invoke(
        PROGRAM, [*name.split(), option], env={"COLUMNS": "80"}, prog_name="counterveil"
    )
    assert found.exit_code == 0, found.output
    return found.output


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_page_lists_every_option_once_without_markup(name):
    text = page(name, "-h")
    assert "\\" not in text
    assert max(map(len, text.splitlines())) <= 80
    for each in described(COMMANDS[name]):
        assert each.help.endswith("."), each
        assert sum(line.startswith(f"  {each.words} ") for line in text.splitlines()) == 1, each
        # Lines may be folded at any space and hyphen.
        assert f"[{';'.join(each.notes)}]".replace(" ", "") in "".join(text.split()) or not each.notes


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("typed", "offered"),
    thinned_rows(
        [
            ("fed", "federation"),
            ("federation co", "coordinator"),
            ("plan --bin", "--binary"),
            ("ledger ", "create access-policy show verify backup anchor"),
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
        'eval "$(counterveil --show-completion bash)"\n'
        f"COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
        '_counterveil_completion counterveil; echo "${COMPREPLY[*]}"\n'
    )
    run = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        # So that typer need not look for the shell among the processes.
        env=os.environ
        | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert run.stdout.split() == offered.split(), run.stderr
