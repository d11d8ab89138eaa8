"""Inequalities of proof pages: pages and statements agree, a solver proves them and refutes a wrong constant."""

import shutil

import pytest


def test_pages_show_the_statements_and_no_others(tool, root):
    check = tool("check_bounds")
    assert check.problems(root) == []
    assert len(check.statements(root)) >= 12


def test_a_statement_that_its_page_does_not_show_is_found(tool, root, tmp_path):
    check = tool("check_bounds")
    name = "difference_in_means"
    page = f"src/counterveil/statistics/linear/{name}.proof.md"
    for folder in ("tests/bounds", "src/counterveil/statistics/linear"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(root / page, tmp_path / page)
    statement = (root / f"tests/bounds/{name}.smt2").read_text()
    (tmp_path / f"tests/bounds/{name}.smt2").write_text(statement.replace("99/100", "98/100"))
    assert [line.split(":")[0] for line in check.problems(tmp_path)] == [page]


def test_every_statement_is_proved_and_a_wrong_constant_refuted(tool, root):
    pytest.importorskip("z3", reason="z3-solver is not installed: pip install 'counterveil[test]'")
    assert list(tool("check_bounds").failures(root)) == []
