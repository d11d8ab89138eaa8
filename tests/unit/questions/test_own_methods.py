"""Methods and releases of one's own: charged, stored, resumed, repeated, planned, refused before they spend."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

import counterveil as cv
from counterveil.data import OUTCOME_STEPS
from counterveil.errors import CounterveilError, ParameterError
from counterveil.inference import ball_noise
from counterveil.privacy import Proof, Unit
from counterveil.results.kept import answer_of

PAGE = Path(__file__).resolve().parents[3] / "docs/how-to/write-a-method.md"
LONGEST = 120  # lines of the example: method, bounds and settings


@dataclass(frozen=True)
class Contrast(cv.methods.Statistic):
    bound: object

    def value(self, rows):
        totals = [int(rows.outcome[rows.arm == arm].sum()) for arm in (0, 1)]
        sizes = [int((rows.arm == arm).sum()) for arm in (0, 1)]
        return (Fraction(totals[1], sizes[1]) - Fraction(totals[0], sizes[0])) * rows.outcome_unit


@dataclass(frozen=True)
class PlainDifference(cv.methods.Method):
    name = "plain difference"
    protects = ("outcome",)
    doubled: bool = False

    def statistics(self, public):
        return {"effect": Contrast(bound=public.width / min(public.arm_sizes) * (2 if self.doubled else 1))}

    def estimate(self, released, public):
        largest = sum(float(public.width) ** 2 / (4 * size) for size in public.arm_sizes)
        return cv.methods.Estimate(effect=released["effect"], variance=largest, details={"arms": 2})


TRIAL = cv.datasets.simulated_trial(n=400, effect=0.3)
ASKED = {"protects": "outcome", "epsilon": 1}


def ask(method=PlainDifference(), **more):
    return cv.ate(TRIAL.frame, TRIAL.study, method=method, **ASKED | more)


def example():
    """Return the classes of the page, and its source."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    source = f"{blocks[0]}\n\n{blocks[1]}"
    names: dict[str, object] = {"__name__": __name__}
    exec(source, names)
    return names, source


def test_it_is_the_difference_in_means_with_noise_of_its_bound():
    result = ask(noise=cv.SeededNoise(1))
    treated = TRIAL.frame["treated"] == 1
    exact = TRIAL.frame["y"][treated].mean() - TRIAL.frame["y"][~treated].mean()
    bound = 1 / min(treated.sum(), (~treated).sum())
    assert result.uncertainty.noise.sensitivity == pytest.approx(bound)
    assert abs(result.estimate - exact) < 20 * result.std_error.noise
    assert result.details["arms"] == 2
    low, high = result.interval()
    assert low < 0.3 < high


def test_an_answer_says_whose_the_bounds_are():
    result = ask()
    assert result.guarantee.proof is Proof.DECLARED
    assert "BOUNDS OF THE AUTHOR" in result.summary().splitlines()[0]
    assert "if the bounds hold that the author" in " ".join(result.to_html().split())
    assert cv.results.Result.from_dict(result.to_dict()).interval() == result.interval()


def test_it_is_charged_stored_and_repeated_by_its_request_id(tmp_path):
    ledger = tmp_path / "ledger.db"
    with cv.open_ledger(ledger, create=True) as book:
        book.register("trial", cv.Budget(2))
        book.publish("trial", ["treated", "x"])
    words = {"ledger": ledger, "request_id": "first"}
    first, again = ask(**words), ask(**words)
    assert first.estimate == again.estimate
    with pytest.raises(CounterveilError, match="CV-L"):
        ask(PlainDifference(doubled=True), **words)
    with cv.open_ledger(ledger) as book:
        assert book.account("trial").spent.epsilon == 1
        reserved, answered = book.of_request("trial", "first")
        assert reserved.facts["description"]["method"] == "plain difference"
        assert reserved.facts["description"]["written_by"]["settings"] == {"doubled": False}
        stored = answer_of(reserved.facts, str(answered.facts["answer"]))
    assert stored.estimate == first.estimate


def test_a_request_that_failed_goes_on_with_what_was_released():
    class FailsOnce(PlainDifference):
        asked = 0

        def estimate(self, released, public):
            FailsOnce.asked += 1
            if FailsOnce.asked == 1:
                raise KeyboardInterrupt
            return super().estimate(released, public)

    with cv.Session(TRIAL.frame, TRIAL.study, budget=cv.Budget(1)) as session:
        with pytest.raises(KeyboardInterrupt):
            session.ate(method=FailsOnce(), request_id="x", **ASKED)
        result = session.ate(method=FailsOnce(), request_id="x", **ASKED)
        assert session.ate(method=FailsOnce(), request_id="x", **ASKED).estimate == result.estimate
        assert session.remaining().epsilon == 0


def test_it_is_planned_by_simulation():
    plan = cv.plan(
        TRIAL.study, rows=200, epsilon=[1, 4], method=PlainDifference(), draws=4, protects="outcome"
    )
    assert [one.method for one in plan.answers] == ["plain difference"] * 2
    assert plan.answers[0].half_width >= plan.answers[1].half_width > 0


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("CV-P018", {"protects": "record"}),
        ("CV-P847", {"settings": cv.settings.Trial()}),
        ("CV-P847", {"measure": "ratio"}),
        ("CV-P847", {"trim": 0.1}),
        ("CV-P848", {"estimand": "ATT"}),
    ],
)
def test_what_it_has_no_form_for_is_refused(code, words):
    with pytest.raises(ParameterError, match=code):
        ask(**words)


class Nameless(PlainDifference):
    name = ""


class Taken(PlainDifference):
    name = "trial"


class Unbounded(PlainDifference):
    def statistics(self, public):
        return {"effect": Contrast(bound=None)}


class Halves(PlainDifference):
    def shares(self, public):
        return {"effect": Fraction(1, 2)}


class Nothing(PlainDifference):
    def statistics(self, public):
        return {}


class Rounded(Contrast):
    def value(self, rows):
        return float(super().value(rows))


class Rounds(PlainDifference):
    def statistics(self, public):
        return {"effect": Rounded(bound=Fraction(1))}


class Divides(Contrast):
    def value(self, rows):
        return 1 // 0


class Fails(PlainDifference):
    def statistics(self, public):
        return {"effect": Divides(bound=Fraction(1))}


@dataclass(frozen=True)
class Holds(PlainDifference):
    model: object = None


@pytest.mark.parametrize(
    ("code", "method"),
    [
        ("CV-P846", Nameless()),
        ("CV-P846", Taken()),
        ("CV-P840", Unbounded()),
        ("CV-P845", Halves()),
        ("CV-P845", Nothing()),
        ("CV-P841", Rounds()),
        ("CV-P842", Fails()),
        ("CV-P844", Holds(model=object())),
    ],
)
def test_a_mistake_in_a_method_is_refused_before_anything_is_spent(code, method):
    with cv.Session(TRIAL.frame, TRIAL.study, budget=cv.Budget(1)) as session:
        with pytest.raises(ParameterError, match=code):
            session.ate(method=method, **ASKED)
        assert session.remaining().epsilon == 1


def test_studies_whose_errors_it_does_not_know_are_refused():
    frame = {"t": np.arange(40) % 2, "y": np.linspace(0, 1, 40), "s": np.arange(40) // 4}
    clustered = cv.Study("t", cv.Outcome("y", (0, 1)), assignment=cv.Trial(), clusters="s")
    with pytest.raises(ParameterError, match="CV-P849"):
        cv.ate(frame, clustered, method=PlainDifference(), **ASKED)


def test_the_example_of_the_page_is_short_and_its_bounds_hold_over_all_small_data_sets():
    names, source = example()
    assert len(source.splitlines()) <= LONGEST
    study = cv.Study("t", cv.Outcome("y", (0, 2)), assignment=cv.Trial())
    with cv.Session({"t": np.arange(8) % 2, "y": np.zeros(8)}, study, budget=cv.Budget(1)) as opened:
        public = cv.methods.PublicData(opened, Unit.OUTCOME)
        statistics = names["TrimmedDifference"](trimmed=1).statistics(public)
        rows = opened.table
    values = {
        digits: [
            each.value(replace(rows, outcome=OUTCOME_STEPS * np.array(digits)))
            for each in statistics.values()
        ]
        for digits in product((0, 1), repeat=8)
    }
    largest = [Fraction(0), Fraction(0)]
    for digits, value in values.items():
        for place in range(8):
            neighbour = values[(*digits[:place], 1 - digits[place], *digits[place + 1 :])]
            gaps = [abs(a - b) for a, b in zip(value, neighbour, strict=True)]
            largest = [max(pair) for pair in zip(largest, gaps, strict=True)]
    bounds = [each.declared_bound() for each in statistics.values()]
    assert largest[0] == bounds[0]
    assert 0 < largest[1] <= bounds[1]


def test_the_trimmed_difference_covers_what_it_says():
    names, _ = example()
    method = names["TrimmedDifference"](trimmed=3)
    rng = np.random.default_rng(1)
    covered = 0
    study = cv.Study("t", cv.Outcome("y", (-10, 10)), assignment=cv.Trial())
    for seed in range(60):
        t = np.arange(600) % 2
        frame = {"t": t, "y": np.clip(rng.standard_t(3, 600) + t, -10, 10)}
        result = cv.ate(frame, study, method=method, noise=cv.SeededNoise(seed), **ASKED)
        low, high = result.interval()
        covered += low < 1 < high
    assert covered >= 52  # of 60 at 0.95: fewer with probability 0.003


def high(rows):
    return int((rows.outcome > cv.methods.OUTCOME_STEPS // 2).sum())


RELEASE = {"value": high, "bound": 1, "protects": "outcome", "epsilon": 1}


def session(**more):
    return cv.Session(TRIAL.frame, TRIAL.study, **{"budget": cv.Budget(4, "1e-6")} | more)


def test_a_release_is_charged_stored_and_repeated():
    with session() as opened:
        first = opened.release("high", request_id="r", **RELEASE)
        again = opened.release("high", request_id="r", **RELEASE)
        assert first == again
        assert opened.account().spent.epsilon == 1
        with pytest.raises(CounterveilError, match="CV-L"):
            opened.release("high", request_id="r", **RELEASE | {"bound": 2})
    exact = int((TRIAL.frame["y"] > 0.5).sum())
    low, high_end = first.interval(0.9999)[0]
    assert low < exact < high_end
    assert first.guarantee.proof is Proof.DECLARED
    assert cv.results.Release.from_dict(first.to_dict()) == first


def by_arm(rows):
    return [int((rows.arm == arm).sum()) for arm in (0, 1)]


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_lists_have_noise_of_their_norm(norm, delta):
    with session() as opened:
        answer = opened.release(
            "arms", value=by_arm, bound=2, norm=norm, protects="record", epsilon=2, delta=delta
        )
    assert len(answer.values) == len(answer.interval()) == 2
    assert all(
        low < value < high_end
        for value, (low, high_end) in zip(answer.values, answer.interval(), strict=True)
    )
    assert abs(sum(answer.values) - 400) < 40 * answer.sd
    assert "arms" in answer.summary()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("CV-P850", {"name": ""}),
        ("CV-P850", {"value": 3}),
        ("CV-P840", {"bound": 0.5}),
        ("CV-P840", {"norm": "sup"}),
        ("CV-P841", {"value": lambda rows: 0.5 * rows.rows}),
        ("CV-P842", {"value": lambda rows: rows.nothing}),
    ],
)
def test_a_release_that_is_not_sound_is_refused_before_anything_is_spent(code, words):
    with session() as opened:
        with pytest.raises(ParameterError, match=code):
            opened.release(words.pop("name", "high"), **RELEASE | words)
        assert opened.account().spent.epsilon == 0


def test_what_a_function_prints_or_raises_on_rows_stays_inside(capfd):
    def tells(rows):
        if rows.outcome[0] == first:
            print("the first outcome is", rows.outcome[0])
            raise ValueError(rows.outcome[0])
        return 5

    with session() as opened:
        first = opened.table.outcome[0]
        answer = opened.release("tells", **RELEASE | {"value": tells})
    assert abs(answer.value) < 40
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("level", [0.5, 0.9, 0.907, 0.95, 0.999])
def test_half_widths_of_ball_noise_are_those_of_its_coordinate(level):
    # In two and three dimensions the tail is known in closed form.
    for dimensions, beyond in ((2, ball_noise._beyond_of_two), (3, ball_noise._beyond_of_three)):
        far = ball_noise.ball_half_width(level, dimensions) * np.sqrt(dimensions + 1)
        assert beyond(far) == pytest.approx(1 - level, abs=1e-6)
    # In many dimensions a coordinate is nearly normal.
    assert ball_noise.ball_half_width(level, 2000) == pytest.approx(-ndtri((1 - level) / 2), rel=0.01)


def test_half_widths_of_ball_noise_cover_draws_of_it():
    rng = np.random.default_rng(5)
    directions = rng.standard_normal((100_000, 5))
    coordinate = np.abs(directions[:, 0]) / np.linalg.norm(directions, axis=1) * rng.gamma(5, 1.0, 100_000)
    covered = np.mean(coordinate <= ball_noise.ball_half_width(0.95, 5) * np.sqrt(6))
    assert covered == pytest.approx(0.95, abs=0.004)
