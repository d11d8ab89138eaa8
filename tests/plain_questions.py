"""Questions about one effect as values, for tests of what computes the answer."""

from counterveil.results.question import Question


def question(protects, method, **more):
    """Return a question at epsilon 1 about the average effect, with the noise that it chooses itself."""
    usual = {
        "epsilon": 1,
        "delta": 0,
        "estimand": "ATE",
        "level": 0.95,
        "mechanism": None,
        "request_id": None,
    }
    return Question.ask(protects=protects, method=method, **usual | more)
