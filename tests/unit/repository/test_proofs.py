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
    write("statistics/mean.py", "")
    write("statistics/mean.proof.md", PROOF.replace("**Audit.** text", ""))
    assert tool("check_proofs").problems(tmp_path) == ["statistics/mean.proof.md: section 'Audit' is missing"]
    write("statistics/mean.proof.md", "**Audit:** first\n" + PROOF)
    (found,) = tool("check_proofs").problems(tmp_path)
    assert "order" in found


def test_a_bound_that_stands_under_no_page_is_named(tool, write, tmp_path):
    write(
        "statistics/linear/sensitivity.py",
        "def mean():\n    ...\n\n\n# Proof: total.proof.md\ndef total():\n    ...\n",
    )
    write("statistics/linear/total.proof.md", PROOF)
    assert tool("check_proofs").problems(tmp_path) == [
        "statistics/linear/sensitivity.py: mean stands under no page"
    ]
    write("statistics/linear/sensitivity.py", "# Proof: gone.proof.md\ndef total():\n    ...\n")
    assert tool("check_proofs").problems(tmp_path) == [
        "statistics/linear/sensitivity.py: gone.proof.md is missing",
        "statistics/linear/total.proof.md: no module of this folder has its name or names it",
    ]
