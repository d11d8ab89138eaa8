"""Finding F: inputs that ended in a traceback or a hang get a refusal with a code, and nothing is spent."""

import random
import sys
from fractions import Fraction

import numpy as np
import pytest

import counterveil as cv
from counterveil.cli import main
from counterveil.errors import CounterveilError
from counterveil.questions.ate import settings_from_text
from counterveil.questions.pooling.effects import PooledResult

STUDY = cv.Study(
    treatment="arm",
    outcome=cv.Outcome("score", (0, 10)),
    covariates={"age": cv.Range(0, 100)},
    assignment=cv.Trial(),
)
PEOPLE = {
    "arm": [place % 2 for place in range(40)],
    "score": [place % 11 for place in range(40)],
    "age": [2 * place for place in range(40)],
}


@pytest.fixture
def files(tmp_path):
    rows = zip(*PEOPLE.values(), strict=True)
    (tmp_path / "data.csv").write_text(
        "\n".join([",".join(PEOPLE), *(",".join(map(str, row)) for row in rows)])
    )
    (tmp_path / "study.toml").write_text(STUDY.to_toml())
    return tmp_path


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["counterveil", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr()
    return end.value.code, said.out + said.err


def estimate(files, *words):
    return ("estimate", files / "data.csv", "--study", files / "study.toml", "--protects", "outcome", *words)


@pytest.mark.parametrize("epsilon", ["1e309", "1e400", "9" * 350, "1e-300", "1/1" + "0" * 380])
def test_an_epsilon_beyond_every_use(files, monkeypatch, capsys, epsilon):
    with cv.open_ledger(":memory:", create=True) as ledger:
        ledger.register("people", cv.Budget(10))
        with pytest.raises(CounterveilError):
            cv.ate(PEOPLE, STUDY, protects="outcome", epsilon=epsilon, ledger=ledger, dataset="people")
        assert ledger.account("people").requests == 0
    code, said = run(monkeypatch, capsys, *estimate(files, "--epsilon", epsilon))
    assert code in (2, 4)
    assert "[CV-" in said


@pytest.mark.parametrize("epsilon", [np.int64(3), np.uint8(2), np.float32(0.5)])
def test_an_epsilon_of_numpy_is_the_number_it_looks_like(epsilon):
    asked = {"protects": "outcome", "delta": "1e-6"}
    own = cv.ate(PEOPLE, STUDY, epsilon=epsilon, noise=cv.SeededNoise(1), **asked)
    plain = cv.ate(PEOPLE, STUDY, epsilon=float(epsilon), noise=cv.SeededNoise(1), **asked)
    assert own.estimate == plain.estimate


@pytest.mark.parametrize(
    ("method", "word"),
    [
        ("stratified", "strata=5"),
        ("stratified", "cuts=5"),
        ("stratified", "cuts=[1]"),
        ("weighting", "features=[[1]]"),
        ("matching", "c=" + "9" * 320),
        ("matching", "c=" + "-" * 60_000 + "1"),
        ("matching", "c=" + "(" * 150 + ")" * 150),
        ("matching", "neighbours=" + "[" * 100_000),
        ("matching", "c='\\d'"),
    ],
)
def test_values_of_set_that_are_huge_deep_or_of_another_kind(
    files, monkeypatch, capsys, recwarn, method, word
):
    with pytest.raises(CounterveilError):
        settings_from_text(method, [word])
    code, said = run(monkeypatch, capsys, *estimate(files, "--epsilon", 1, "--method", method, "--set", word))
    assert code == 2
    assert len(said) < 5000
    assert not [each for each in recwarn if issubclass(each.category, SyntaxWarning)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a." * 3000 + "a = 1", "dotted parts"),
        ("[" + "a." * 3000 + "a]", "dotted parts"),
        ('x = {a = """y"""", ' + "b." * 3000 + "b = 1}", "dotted parts"),
        ("x = " + "[" * 5000, "levels"),
        ("x = " + "{a = " * 5000, "levels"),
        ("x = " + "9" * 5000, "not TOML"),
        ("".join(f"k{place} = 1\n" for place in range(60_000)), "keys"),
        ('x = "' + "y" * 2_000_000 + '"', "longer"),
    ],
)
def test_documents_in_toml_that_are_too_long_or_too_deep(tmp_path, text, reason):
    from counterveil.federation.site_files import SiteFile

    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(CounterveilError, match="CV-S014") as refused:
        cv.Study.from_toml(tmp_path / "study.toml")
    assert reason in refused.value.got
    tmp_path.chmod(0o700)
    (tmp_path / "site.toml").write_text(text)
    (tmp_path / "site.toml").chmod(0o600)
    with pytest.raises(CounterveilError, match="CV-P600") as refused:
        SiteFile.read(tmp_path)
    assert reason in refused.value.got


@pytest.mark.parametrize("place", ["a" * 300, "a/" * 3000, "a\0b", "", 5, b"x", "\ud800"])
def test_places_where_no_ledger_can_be(place):
    for create in (False, True):
        with pytest.raises(CounterveilError, match="CV-L"):
            cv.open_ledger(place, create=create)
    with pytest.raises(CounterveilError, match="CV-L"):
        cv.ate(PEOPLE, STUDY, protects="outcome", epsilon=1, ledger=place)


@pytest.mark.parametrize("place", ["a" * 300 + ".csv", "a\0.csv"])
def test_data_and_reports_at_places_that_cannot_be(files, monkeypatch, capsys, place):
    with pytest.raises(CounterveilError, match="CV-D012"):
        cv.ate(place, STUDY, protects="outcome", epsilon=1)
    # A shell cannot pass the NUL character.
    words = ("--epsilon", 1, "--report", place.replace("\0", "/"))
    code, said = run(monkeypatch, capsys, *estimate(files, *words))
    assert code == 2
    assert "CV-P021" in said


@pytest.mark.parametrize("facts", ["{", "[]", "5", '{"request_id": 1}', "[" * 10_000, "\x00"])
def test_a_broken_file_of_a_result(tmp_path, facts):
    (tmp_path / "north.json").write_text(facts)
    with pytest.raises(CounterveilError, match="CV-P50"):
        cv.pool([tmp_path / "north.json", tmp_path / "north.json"])
    with pytest.raises(CounterveilError, match="CV-P552"):
        cv.results.CateModel.load(tmp_path / "north.json")


@pytest.mark.parametrize(
    "kind",
    [
        cv.results.Result,
        cv.results.CateModel,
        cv.results.GroupsResult,
        PooledResult,
        cv.Policy,
        cv.results.ArmsResult,
    ],
)
@pytest.mark.parametrize("facts", [None, 5, [], {}, {"kind": 5}, {"estimate": "x", "uncertainty": 5}])
def test_facts_that_make_no_result(kind, facts):
    with pytest.raises(CounterveilError, match="CV-P661"):
        kind.from_dict(facts)


def test_a_number_of_another_type_makes_no_result():
    facts = cv.ate(PEOPLE, STUDY, protects="outcome", epsilon=1).to_dict()
    assert cv.results.Result.from_dict(facts).to_dict() == facts
    for name, value in (("estimate", "0.5"), ("method", 5), ("not_covered", [1]), ("releases", [["a", 2]])):
        with pytest.raises(CounterveilError, match="CV-P661"):
            cv.results.Result.from_dict(facts | {name: value})


def test_one_changed_byte_anywhere_in_the_first_pages_of_a_ledger(tmp_path):
    whole = tmp_path / "ledger.db"
    with cv.open_ledger(whole, create=True) as ledger:
        ledger.register("people", cv.Budget(10))
        ledger.publish("people", STUDY.public_columns("outcome"))
        cv.ate(
            PEOPLE, STUDY, protects="outcome", epsilon=1, ledger=ledger, dataset="people", request_id="one"
        )
    sound = whole.read_bytes()
    broken = tmp_path / "broken.db"
    rng = random.Random(13)
    for _ in range(250):
        data = bytearray(sound)
        data[rng.randrange(min(len(data), 8192))] ^= 1 << rng.randrange(8)
        for end in ("", "-wal", "-shm"):
            broken.with_name(broken.name + end).unlink(missing_ok=True)
        broken.write_bytes(data)
        _used(broken)


def _used(place):
    """Read and spend; whatever is wrong is said with a code."""
    try:
        with cv.open_ledger(place) as ledger:
            ledger.datasets()
            ledger.verify()
            list(ledger.entries())
            cv.ate(PEOPLE, STUDY, protects="outcome", epsilon=1, ledger=ledger, dataset="people")
    except CounterveilError:
        return


class Failing:
    """A number of somebody else's, which says a secret instead of its value."""

    def __float__(self):
        raise RuntimeError("hunter2")

    __index__ = __int__ = __float__


class FailingFloat(float):
    def __float__(self):
        raise RuntimeError("hunter2")

    __hash__ = float.__hash__


class Unhashable(float):
    def __hash__(self):
        raise RuntimeError("hunter2")


@pytest.mark.parametrize("study", [None, 5, "study.toml", {}, [STUDY], np.zeros(3), Failing()])
def test_what_is_no_study_is_called_so_by_every_question(study):
    asked = {"protects": "record", "epsilon": 1}
    calls = (
        lambda: cv.plan(study, rows=40, **asked),
        lambda: cv.moments(PEOPLE, study, **asked),
        lambda: cv.ate(PEOPLE, study, **asked),
        lambda: cv.groups(PEOPLE, study, by=["age"], **asked),
        lambda: cv.cate(PEOPLE, study, protects="record", epsilon=1, delta=1e-6),
        lambda: cv.arms(PEOPLE, study, **asked),
        lambda: cv.survival(PEOPLE, study, **asked),
        lambda: cv.quantiles(PEOPLE, study, **asked),
        lambda: cv.outcomes(PEOPLE, study, **asked),
        lambda: cv.overlap(PEOPLE, study, protects="record", epsilon=1),
    )
    for call in calls:
        with pytest.raises(CounterveilError, match="CV-S015"):
            call()


def test_a_number_that_fails_when_it_is_asked_for_its_value():
    for call in (
        lambda: cv.Budget(Failing()),
        lambda: cv.Range(Failing(), 1),
        lambda: cv.ate(PEOPLE, STUDY, protects="outcome", epsilon=Failing()),
        lambda: cv.Trial(share=Failing()),
    ):
        with pytest.raises(CounterveilError) as refused:
            call()
        assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("kind", [FailingFloat, Unhashable])
@pytest.mark.parametrize("name", ["arm", "score", "age"])
def test_a_cell_that_fails_when_it_is_read(kind, name):
    for cells in ([kind(1)] * 40, np.array([kind(1)] * 40, dtype=object)):
        with pytest.raises(CounterveilError, match="CV-D") as refused:
            cv.ate(PEOPLE | {name: cells}, STUDY, protects="outcome", epsilon=1)
        assert "hunter2" not in str(refused.value)


def test_half_a_character_as_the_label_of_an_arm():
    for labels in (["\ud800"], ["\ud800", "\udcff"]):
        arms = [labels[place % len(labels)] if place % 2 else 1 for place in range(40)]
        with pytest.raises(CounterveilError, match=r"CV-D00[45]"):
            cv.ate(PEOPLE | {"arm": arms}, STUDY._changed(control=0), protects="outcome", epsilon=1)
    other = PEOPLE | {"arm": [1 if place % 2 else "\ud800" for place in range(40)]}
    assert cv.ate(other, STUDY, protects="outcome", epsilon=1).estimate is not None


def test_a_method_whose_text_recurses_or_has_too_many_digits():
    deep = []
    for _ in range(3000):
        deep = [deep]
    for method in (deep, 10**5000, [10**5000]):
        with pytest.raises(CounterveilError, match="CV-P016"):
            cv.ate(PEOPLE, STUDY, protects="outcome", epsilon=1, method=method)


def test_a_bound_that_is_no_double():
    # A fraction beyond every double, and no whole number.
    assert cv.Fill(Fraction(10**400, 3)).value == str(Fraction(10**400, 3))


@pytest.mark.parametrize("key", ["treatment", "outcome", "assignment", "people", "clusters", "covariates"])
def test_an_array_in_the_place_of_a_declaration(key):
    for array in (np.array([1.0, 2.0]), np.array(["?", "?"])):
        value = {"age": array} if key == "covariates" else array
        with pytest.raises(CounterveilError, match="CV-S"):
            cv.Study.from_dict(STUDY.to_dict() | {key: value})


HUGE = 10**5000


@pytest.mark.parametrize(
    "call",
    [
        lambda: cv.pool(np.array(3)),
        lambda: cv.pool(7),
        lambda: cv.Policy.where(age=HUGE),
        lambda: cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, HUGE))),
        lambda: cv.open_ledger(":memory:", create=True).register("people", None),
        lambda: cv.Fill([3]),
        lambda: cv.open_ledger(":memory:", create=True).register("people", cv.Budget(1), rule=np.zeros(2)),
    ],
    ids=[
        "no list",
        "a number",
        "a number of 5,000 digits",
        "a range of them",
        "no budget",
        "a list to fill with",
        "no rule",
    ],
)
def test_what_is_of_no_use_has_a_code(call):
    with pytest.raises(cv.CounterveilError):
        call()


@pytest.mark.parametrize(
    "name", ["question", "method", "measure", "decision", "assumed", "options", "estimand"]
)
def test_an_array_in_the_place_of_a_word_of_a_plan(name):
    with pytest.raises(CounterveilError, match="CV-P"):
        cv.plan(STUDY, **{"rows": 100, "epsilon": 1, "protects": "outcome", "draws": 1, name: np.array([])})


@pytest.mark.parametrize("first", ["arm,arm,south,SECRET", "arm,south,SECRET,3.5"])
def test_a_first_line_that_may_hold_a_row_is_not_shown(tmp_path, first):
    path = tmp_path / "rows.csv"
    path.write_text(f"{first}\n1,2,3,4\n")
    study = cv.Study("arm", cv.Outcome("score", (0, 9)), {"age": cv.Range(0, 9), "site": cv.Binary()})
    with pytest.raises(CounterveilError, match="CV-D001") as error:
        cv.Session(path, study, budget=cv.Budget(1))
    assert "SECRET" not in str(error.value) + str(error.value.to_dict())
