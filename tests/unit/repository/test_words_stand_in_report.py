"""What a reader sees is written in `report`: answers, inference, releases and estimators hold values."""

import ast
import re

import pytest

FOLDERS = ("results", "inference", "rows", "estimators")
# Two spaces between words, or more.
SENTENCE = re.compile(r"[A-Za-z][\w'-]*[,;:.)]* +\(?[\w'-]+[,;:.)]* +\(?[A-Za-z]")
# Calls whose texts are messages of errors, types, names of attributes, or names of bounds of what sites say: not words
# of answers.
OTHER_TEXTS = {
    *("refusal", "cast", "TypeVar", "UnreadableError", "split"),
    *("too_few_clusters", "refuse_few_clusters"),
    *("Within", "Above", "Equal", "Near", "OneOf", "Count", "Sum", "PublicShape", "within_reach", "_between"),
}

# Files with sentences, and how many; a number may only fall. They hold what people write who come from another package
# (elsewhere), and parts of refusals that are put together before them.
LEFT = {"results/elsewhere.py": 11, "results/question.py": 4}
# Names by which something is looked up, which are no words of an answer's author.
NAMES = {
    # Of releases in a plan: the gate finds by them what a release may pay, and ledgers keep them.
    "rows/outcome_cells.py": {"counts of outcomes"},
    "rows/time_tables.py": {"table of times"},
    "estimators/linear/arm_means.py": {"mean of arm ", "variance of arm "},
    "estimators/linear/series.py": {"size of residuals", "squares of residuals"},
    "estimators/moments/t_learner.py": {"size of residuals"},
    "estimators/outcome_groups.py": {"effect of group ", "variance of group "},
    "estimators/strata/cut_points.py": {"cut points of "},
    # Of gains in a table of effects: users pass them to `PolicyValue.effect`.
    "estimators/policy_gains.py": {"policy - nobody", "policy - everybody", "everybody - nobody"},
}


def sentences(code):
    """Return the sentences that a module holds as texts, but for docstrings, refusals and representations."""
    tree = ast.parse(code)
    skipped = {id(text) for node in ast.walk(tree) for text in others(node)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in skipped
        and SENTENCE.search(node.value)
    ]


def others(node):
    """Return the texts of a node that are no words of an answer."""
    if isinstance(node, ast.Raise | ast.Assert):
        return ast.walk(node)
    if isinstance(node, ast.FunctionDef) and node.name == "__repr__":
        return ast.walk(node)
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        return ast.walk(node) if name in OTHER_TEXTS else ()
    documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    first = node.body[0] if documented and node.body else None
    return [first.value] if isinstance(first, ast.Expr) else ()


@pytest.fixture(scope="module")
def found(root):
    package = root / "src" / "counterveil"
    paths = [path for folder in FOLDERS for path in sorted((package / folder).rglob("*.py"))]
    return {
        path.relative_to(package).as_posix(): sentences(path.read_text(encoding="utf-8")) for path in paths
    }


def test_values_are_written_without_words(found):
    held = {name: len(texts) for name, texts in found.items() if texts and name not in NAMES}
    assert held == LEFT, "a text that a reader sees belongs into counterveil.report"


def test_names_are_those_by_which_something_is_looked_up(found):
    assert {name: set(found[name]) for name in NAMES} == NAMES


@pytest.mark.parametrize(
    "code",
    [
        'method = "means of both arms, pooled by size"\n',
        'text = f"noise of {count} cells was added"\n',
        'def notes():\n    """Return notes."""\n    return ["all sites are averaged"]\n',
    ],
)
def test_a_sentence_is_noticed(code):
    assert sentences(code)


@pytest.mark.parametrize(
    "code",
    [
        '"""A module about several things."""\n',
        'raise ValueError("effects of another table")\n',
        'fault = refusal("CV-P001", fix="write it in another way")\n',
        'def __repr__(self):\n    return "<a value of one kind>"\n',
        'key = "std_error"\n',
    ],
)
def test_what_is_no_word_of_an_answer_is_left_alone(code):
    assert sentences(code) == []
