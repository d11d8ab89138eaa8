"""The pages of the site are gathered whole; that Sphinx builds them without a warning is checked by `make docs`."""

import re

import pytest
from tools.site.cells import notebook
from tools.site.contents import SECTIONS, sections
from tools.site.formulas import formulas
from tools.site.gather import gathered, write
from tools.site.outputs import with_outputs
from tools.site.places import place, with_links


@pytest.fixture(scope="module")
def site(root):
    return gathered(root)


def test_every_proof_and_every_experiment_has_its_place(site, root):
    found = sum(1 for _ in (root / "src/counterveil").glob("**/*.proof.md"))
    assert found == sum(page.startswith("proofs/") for page in site) - 1 > 50
    assert {"index.md", "project/architecture.md", "experiments/coverage/RESULTS.md"} <= set(site)


def test_the_list_of_documents_names_every_page_of_its_folders(root):
    listed = sections((root / "docs/README.md").read_text(encoding="utf-8"))
    for section, (folder, _) in SECTIONS.items():
        there = {f"docs/{folder}/{p.name}" for p in (root / "docs" / folder).glob("*.[im]*")}
        assert there <= set(listed[section].pages), section


def test_every_link_leads_to_a_page_of_the_site(site):
    for page, content in site.items():
        if not page.endswith(".md"):
            continue
        for target in re.findall(r"\]\(([^):#\s]+\.md)", content.decode()):
            parts = page.split("/")[:-1]
            for piece in target.split("/"):
                parts = parts[:-1] if piece == ".." else [*parts, piece]
            assert "/".join(parts) in site, f"{page}: {target}"


def test_links_are_rewritten_and_files_outside_the_site_lose_theirs():
    known = {"docs/how-to/a.md": "how-to/a.md", "src/counterveil/a.proof.md": "proofs/a.md"}
    text = "[proof](../../src/counterveil/a.proof.md#why), [test](../../tests/x.py), `[a](b.md)`\n"
    assert with_links(text, "docs/how-to/a.md", known) == "[proof](../proofs/a.md#why), test, `[a](b.md)`\n"
    assert with_links("[x](https://example.org/y.md)\n", "docs/how-to/a.md", known).startswith("[x](https")
    assert place("src/counterveil/data/where.proof.md") == "proofs/data/where.md"
    assert place("docs/conf.py") is None


PAGE = "# Title\n\n```python\nx = 2\nx + 1\n```\n\n<!-- output -->\n\n```text\nold\n```\n\n```sh\nls\n```\n"


def test_examples_become_cells_and_written_outputs_go():
    made = notebook(PAGE)
    assert made.startswith("---\nfile_format: mystnb")
    assert "```{code-cell} ipython3\nx = 2\nx + 1\n```" in made
    assert "old" not in made
    assert "output" not in made
    assert "```sh\nls\n```" in made


def test_outputs_are_those_of_a_run():
    assert with_outputs(PAGE) == PAGE.replace("old", "3")
    empty = PAGE.replace("old\n", "")
    assert with_outputs(empty) == PAGE.replace("old", "3")


@pytest.mark.parametrize(
    ("plain", "shown"),
    [
        ("s^2 <= B^2/n_min^2", "s<sup>2</sup> ≤ B<sup>2</sup>/n<sub>min</sub><sup>2</sup>"),
        ("e^(-eps/2) >= 2^-43.5", "e<sup>-ε/2</sup> ≥ 2<sup>-43.5</sup>"),
        ("e^-(a-1), I_{d/(d+x^2)}", "e<sup>-(a-1)</sup>, I<sub>d/(d+x<sup>2</sup>)</sub>"),
        ("`x_1^2` and $x_1^2$ stay", "`x_1^2` and $x_1^2$ stay"),
        ("see linear_estimate.proof.md", "see linear_estimate.proof.md"),
        ("sum_{i<j} is small. []", "sum<sub>i&lt;j</sub> is small. ∎"),
    ],
)
def test_plain_formulas_are_set(plain, shown):
    assert formulas(plain + "\n") == shown + "\n"


def test_blocks_and_displayed_formulas_stay_as_they_are():
    text = "# a_1\n\n$$\nx_1 <= 2\n$$\n\n```\nx_1 <= 2\n```\n\n    x_1 <= 2\n"
    assert formulas(text) == text


def test_writing_again_removes_what_is_gone(tmp_path):
    write({"a/b.md": b"1", "c.md": b"2"}, tmp_path)
    write({"c.md": b"3"}, tmp_path)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["c.md"]
    assert (tmp_path / "c.md").read_bytes() == b"3"
