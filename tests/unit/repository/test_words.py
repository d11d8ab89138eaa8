import pytest


def test_no_module_compares_english(tool, root):
    assert tool("check_words").problems(root / "src" / "counterveil") == []


@pytest.mark.parametrize(
    "text",
    [
        'found = text.startswith("CONFOUNDING by anything")\n',
        'found = "nothing is adjusted for" in said\n',
        'found = said == "at the ends of cells"\n',
        'found = said not in ("as printed", "x")\n',
        'SAID = "parallel trends assumed"\nfound = said.endswith(SAID)\n',
        'found = advice == f"did you mean {name}?"\n',
    ],
)
def test_a_comparison_with_a_sentence_is_named(tool, write, tmp_path, text):
    write("results/sly.py", text)
    assert tool("check_words").problems(tmp_path)
    assert tool("check_words").main([str(tmp_path)]) == 1


def test_documents_are_within_their_words(tool, root):
    prose = tool("check_prose")
    assert [name for name, folder in prose.measured(root).items() if folder.over] == []


def test_a_long_page_and_long_sentences_are_named(tool, write, tmp_path):
    prose = tool("check_prose")
    write("README.md", "Short words. " * 400 + "\n```\nnot a sentence, but counted\n```\n")
    write("docs/how-to/a.md", "- " + "word " * 31 + "end.\n\n| a | table |\n")
    found = prose.measured(tmp_path)
    assert (found[r"README\.md"].words, found[r"README\.md"].mean) == (805, 0)
    assert (found["docs/how-to/"].sentences, found["docs/how-to/"].long) == ([32], 1.0)
    assert prose.main([str(tmp_path)]) == 1
