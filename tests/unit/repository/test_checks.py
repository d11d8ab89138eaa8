"""The checks of the repository find what they are for: docs, errors, modules, noise, portability, proofs."""

import ast
import contextlib
import io
from pathlib import Path

import pytest
from tests.figures import DRAWN, assert_same
from tools import check_docs, clean
from tools.site.generated import without_audits

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("README.md", "docs/tutorials/*.md", "docs/how-to/*.md", "docs/reference/ledger.md")
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run(page):
    assert check_docs.run_page(ROOT / page, ROOT) is None


@pytest.mark.parametrize("page", ["docs/tutorials/first-trial.md", "docs/how-to/run-in-ci-or-notebook.md"])
def test_a_notebook_that_registers_runs_again(page, tmp_path):
    text = (ROOT / page).read_text(encoding="utf-8")
    (tmp_path / "twice.md").write_text(text + "\n" + text, encoding="utf-8")
    assert check_docs.run_page(tmp_path / "twice.md", tmp_path) is None


def test_each_page_is_tried_with_the_extras_that_it_names():
    found = {page.name: wanted for wanted, pages in clean.sets().items() for page in pages}
    assert found["README.md"] == (frozenset(), False)
    assert found["work-in-the-browser.md"] == (frozenset({"console"}), False)
    assert found["epidemiologist.md"] == (frozenset({"demo", "plots"}), False)
    assert found["reproduce-a-paper.md"] == (frozenset(), True)
    assert {Path(page).name for page in PAGES} == set(found)
    declared = {"test": ["counterveil[postgres]", "pytest"], "postgres": ["psycopg"]}
    assert clean.requirements(frozenset({"test"}), declared) == ["psycopg", "pytest"]


def test_the_readme_names_every_extra():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(text.partition("Extras: ")[2].partition(";")[0].split(", "))
    assert named >= {extra for extras, _ in clean.sets() for extra in extras}


def test_the_pages_with_examples_are_all_looked_at():
    assert [path.relative_to(ROOT).as_posix() for path in check_docs.runnable_pages(ROOT)] == PAGES


def test_internal_links_lead_somewhere():
    assert check_docs.broken_links(ROOT, without_audits()) == []


def test_a_failing_example_is_named_with_its_line(write, tmp_path):
    write("README.md", "# Title\n\n```python\nx = 1\nassert x == 2\n```\n")
    problem = check_docs.run_page(tmp_path / "README.md", tmp_path)
    assert 'File "README.md", line 5' in problem
    assert check_docs.main([str(tmp_path)]) == 1


def test_links_that_lead_nowhere_are_named(write, tmp_path):
    write("docs/other.md", "# The one heading, here\n")
    write(
        "README.md",
        "[good](docs/other.md), [good](docs/other.md#the-one-heading-here), [out](https://example.com/x)\n"
        "[gone](docs/gone.md)\n[off](docs/other.md#nowhere) and `[code](not/a/link.md)`\n"
        "```\n[in a block](not/a/link.md)\n```\n",
    )
    assert check_docs.broken_links(tmp_path) == [
        "README.md:2: docs/gone.md does not exist",
        "README.md:3: docs/other.md#nowhere: there is no such heading",
    ]
    generated = {"docs/gone.md": "# Made for the site\n", "docs/other.md": "# Nowhere\n"}
    assert check_docs.broken_links(tmp_path, generated) == [
        "README.md:1: docs/other.md#the-one-heading-here: there is no such heading"
    ]


def test_the_page_on_auditing_shows_what_its_example_prints():
    blocks = check_docs.blocks_of((ROOT / "docs/explanation/auditing.md").read_text(encoding="utf-8"))
    printed, space = io.StringIO(), {"__name__": "page"}
    with contextlib.redirect_stdout(printed):
        for block in blocks:
            if block.language == "python":
                exec(block.text, space)
    (shown,) = [block.text for block in blocks if not block.language]
    table = printed.getvalue().partition("Audit of")
    assert_same("".join(table[1:]), shown, DRAWN)


TABLE = "src/counterveil/refusals.toml"
ROW = '[CV-Z001]\nproblem = "{name!r} is gone"\nexpected = "{name!r}"\ngot = "{what}"\nfix = "look"\nwhy = "so"\n'


def test_every_code_has_its_row(tool, root):
    assert tool("check_errors").problems(root) == []


def test_a_code_without_row_and_a_row_without_code_are_named(tool, write, tmp_path):
    write("src/part.py", 'raise refusal("CV-Z001")\n')
    write(TABLE, ROW.replace("Z001", "Z002"))
    assert tool("check_errors").problems(tmp_path) == [
        f"CV-Z001 (part.py): {TABLE} has no such row",
        f"{TABLE}: the source never uses CV-Z002",
    ]
    assert tool("check_errors").main([str(tmp_path)]) == 1


def test_a_row_without_its_texts_is_named(tool, write, tmp_path):
    write("src/part.py", 'raise refusal("CV-Z001")\n')
    write(TABLE, '[CV-Z001]\nproblem = "gone"\nexpected = "it"\ngot = "none"\nfix = ""\n')
    assert tool("check_errors").problems(tmp_path) == [
        f"{TABLE}: CV-Z001 has no fix",
        f"{TABLE}: CV-Z001 has no why",
    ]


def test_a_call_with_other_facts_than_its_row_names_is_named(tool, write, tmp_path):
    write("src/part.py", 'raise refusal("CV-Z001", name="a", what="b")\nraise refusal("CV-Z001", name="a")\n')
    write(TABLE, ROW)
    assert tool("check_errors").problems(tmp_path) == ["part.py:2: CV-Z001 takes name, what"]


@pytest.mark.parametrize("package", ["src/counterveil", "lab/src/counterveil_lab"])
def test_init_files_only_import_and_export(package):
    for path in sorted((ROOT / package).rglob("__init__.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            allowed = (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.If)
            lazy_export = isinstance(node, ast.FunctionDef) and node.name in {"__getattr__", "__dir__"}
            assert isinstance(node, allowed) or lazy_export, f"{path}:{node.lineno}"


@pytest.mark.parametrize("package", ["src/counterveil", "lab/src/counterveil_lab"])
def test_noise_is_drawn_in_one_package(tool, root, package):
    assert tool("check_noise").problems(root / package) == []


@pytest.mark.parametrize(
    "text",
    [
        "import random\n",
        "import random as r\n",
        "from secrets import token_bytes\n",
        "import numpy as np\n\nx = np.random.normal()\n",
        "import numpy\n\nrng = numpy.random.default_rng(3)\n",
        "from numpy import random\n",
        "from numpy.random import default_rng\n",
        "import os\n\nbits = os.urandom(8)\n",
        "from os import urandom\n",
        "from scipy.stats import norm\n\nx = norm.rvs(size=3)\n",
    ],
)
def test_randomness_elsewhere_is_named(tool, write, tmp_path, text):
    write("estimators/sly.py", text)
    found = tool("check_noise").problems(tmp_path)
    assert found
    assert all(line.startswith("estimators/sly.py:") for line in found)
    assert tool("check_noise").main([str(tmp_path)]) == 1


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("import numpy as np\n\nrng = np.random.default_rng(seed)\n", True),
        ("import numpy as np\n\n\ndef f(rng: np.random.Generator):\n    return rng.normal()\n", True),
        ("import numpy as np\n\nrng = np.random.default_rng()\n", False),
        ("import numpy as np\n\nrng = np.random.default_rng(None)\n", False),
        ("import numpy as np\n\nx = np.random.normal(0, 1)\n", False),
        ("from numpy.random import default_rng\n\nrng = default_rng()\n", False),
        ("import random\n", False),
    ],
)
@pytest.mark.parametrize("package", ["datasets", "counterveil_lab"])
def test_audits_and_generators_draw_from_a_seed_that_is_passed_in(tool, write, tmp_path, package, text, fine):
    write(f"{package}/thing.py", text)
    checked = tmp_path / package if package == "counterveil_lab" else tmp_path
    assert (tool("check_noise").problems(checked) == []) is fine


# In pieces, so that this file passes its own test.
SLASH = "/"


def test_no_file_depends_on_one_machine(tool, root):
    assert tool("check_portability").problems(root) == []


@pytest.mark.parametrize(
    "line",
    [
        f"data = '{SLASH}home/ann/data.csv'",
        f"see {SLASH}work/main for more",
        f"#!{SLASH}root/bin/python",
        f"cache: {SLASH}tmp/w/v",
        "pip install --index" + "-url https://somewhere/simple counterveil",
        "https://files.python" + "hosted.org/packages/x.whl",
    ],
)
def test_a_line_that_depends_on_one_machine_is_named(tool, write, tmp_path, line):
    write("notes.md", f"fine\n{line}\n")
    (found,) = tool("check_portability").problems(tmp_path)
    assert found.startswith("notes.md:2: ")
    assert tool("check_portability").main([str(tmp_path)]) == 1


PROOF = "".join(
    f"**{name}.** text\n\n" for name in ("Claim", "Public", "Pseudocode", "Proof", "Tight", "Tests", "Audit")
)


def test_every_mechanism_and_sensitivity_has_its_proof_page(tool, root):
    assert tool("check_proofs").problems(root / "src" / "counterveil") == []


def test_the_modules_excused_from_a_proof_exist(tool, root):
    for name in tool("check_proofs").SUPPORTING:
        assert (root / "src" / "counterveil" / name).exists(), name


def test_a_mechanism_without_page_is_named(tool, write, tmp_path):
    write("mechanisms/__init__.py", "")
    write("mechanisms/noisy.py", "")
    assert tool("check_proofs").problems(tmp_path) == ["mechanisms/noisy.py: noisy.proof.md is missing"]
    assert tool("check_proofs").main([str(tmp_path)]) == 1
    write("mechanisms/noisy.proof.md", PROOF)
    assert tool("check_proofs").main([str(tmp_path)]) == 0


def test_a_page_with_sections_missing_or_misplaced_is_named(tool, write, tmp_path):
    write("rows/mean.py", "")
    write("rows/mean.proof.md", PROOF.replace("**Audit.** text", ""))
    assert tool("check_proofs").problems(tmp_path) == ["rows/mean.proof.md: section 'Audit' is missing"]
    write("rows/mean.proof.md", "**Audit:** first\n" + PROOF)
    (found,) = tool("check_proofs").problems(tmp_path)
    assert "order" in found


def test_a_bound_that_stands_under_no_page_is_named(tool, write, tmp_path):
    write(
        "rows/linear/sensitivity.py",
        "def mean():\n    ...\n\n\n# Proof: total.proof.md\ndef total():\n    ...\n",
    )
    write("rows/linear/total.proof.md", PROOF)
    assert tool("check_proofs").problems(tmp_path) == [
        "rows/linear/sensitivity.py: mean stands under no page"
    ]
    write("rows/linear/sensitivity.py", "# Proof: gone.proof.md\ndef total():\n    ...\n")
    assert tool("check_proofs").problems(tmp_path) == [
        "rows/linear/sensitivity.py: gone.proof.md is missing",
        "rows/linear/total.proof.md: no module of this folder has its name or names it",
    ]
