"""What an answer says is a value: no module compares with a sentence or looks for one in a text."""

import ast
import re

import pytest

# Methods that look into a text.
LOOKING = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "replace"}
# A space between letters.
SENTENCE = re.compile(r"[A-Za-z]{2,}[,;:]? (?:[A-Za-z]|$)|^ [A-Za-z]{2,}")
# Compares statements of SQL, as a database repeats them.
SQL = "accounting/postgres_store.py"


def sentences_compared(code):
    """Return the sentences that a module compares with, written there or in a constant of the module."""
    tree = ast.parse(code)
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    operands = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            operands += [node.left, *node.comparators]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOOKING:
            operands += node.args[:1]
    texts = [text for operand in operands for text in texts_of(operand, constants)]
    return [text for text in texts if SENTENCE.search(text)]


def texts_of(operand, constants):
    """Return the texts that an operand is, or is a list of."""
    if isinstance(operand, ast.Name):
        operand = constants.get(operand.id, operand)
    if isinstance(operand, ast.Constant) and isinstance(operand.value, str):
        return [operand.value]
    if isinstance(operand, ast.JoinedStr):
        return ["".join(part.value for part in operand.values if isinstance(part, ast.Constant))]
    if isinstance(operand, ast.Tuple | ast.List | ast.Set):
        return [text for element in operand.elts for text in texts_of(element, constants)]
    return []


def test_no_module_compares_with_a_sentence(root):
    package = root / "src" / "counterveil"
    paths = [path for path in package.rglob("*.py") if path.relative_to(package).as_posix() != SQL]
    found = {path: sentences_compared(path.read_text(encoding="utf-8")) for path in paths}
    assert {path.name: texts for path, texts in found.items() if texts} == {}


@pytest.mark.parametrize(
    "code",
    [
        'found = text.startswith("CONFOUNDING by anything")\n',
        'found = "nothing is adjusted for" in said\n',
        'found = said not in ("as printed", "x")\n',
        'SAID = "parallel trends assumed"\nfound = said.endswith(SAID)\n',
        'found = advice == f"did you mean {name}?"\n',
    ],
)
def test_a_comparison_with_a_sentence_is_noticed(code):
    assert sentences_compared(code)
