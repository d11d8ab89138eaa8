import contextlib
import io
from pathlib import Path

import pytest
from tests.figures import DRAWN, assert_same
from tools import check_docs

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("README.md", "docs/tutorials/*.md", "docs/how-to/*.md")
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run(page):
    assert check_docs.run_page(ROOT / page, ROOT) is None


def test_the_pages_with_examples_are_all_looked_at():
    assert [path.relative_to(ROOT).as_posix() for path in check_docs.runnable_pages(ROOT)] == PAGES


def test_internal_links_lead_somewhere():
    assert check_docs.broken_links(ROOT) == []


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
