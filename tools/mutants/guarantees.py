"""Faults in noise, gate, splits, accounting, ledger, data entry and federation."""

from __future__ import annotations

from functools import partial

from tools.mutants.mutant import PRIVACY, Mutant, fault

_of = partial(fault, PRIVACY)
_GATE = "unit/session/test_session.py"
_PLAN = "unit/session/test_plan.py"
_CUSTODY = "unit/session/test_session.py"
_RESUMING = "unit/session/test_resuming.py"
_FILTERS = "unit/accounting/test_filters.py"
_COMPOSITION = "unit/accounting/test_composition.py"
_ROUNDING = "unit/accounting/test_composition.py"
_LEDGER = "unit/accounting/test_ledger.py"
_VERIFICATION = "unit/accounting/test_verification.py"
_TABLE = "unit/data/test_table.py"
_SITE = "unit/federation/test_site.py"
_COORDINATOR = "unit/federation/test_coordinator.py"
_JUDGING = "unit/federation/test_judging.py"
_LIES = "unit/federation/test_judging.py"
_RATIO = "attack/federation/test_one_hostile_site_does_not_decide_a_ratio.py"
_HOSTILE = (
    "unit/federation/test_messages.py",
    "attack/federation/test_one_hostile_site_does_not_decide.py",
)
_LEVELS = "attack/test_levels_share_one_account.py"
_DAMAGE = "unit/accounting/test_damage.py"


def _noise(name: str) -> str:
    return f"unit/mechanisms/test_{name}.py"


_OWN = "unit/questions/test_own_methods.py"
_STATISTIC = "unit/rows/test_statistic.py"

GUARANTEES: tuple[Mutant, ...] = (
    # Statistics of one's own.
    _of(
        "Statistic.declared_bound",
        "Fraction(bound.numerator, bound.denominator)",
        "Fraction(bound.numerator, 2 * bound.denominator)",
        _OWN,
    ),
    _of("values_or_zero", "[Fraction(0)] * length", "numbers", _STATISTIC),
    _of("PublicData.arm_sizes", "not self.unit.treatment_public", "False", _STATISTIC),
    _of("made_up_rows", "outcome=outcome, ", "", _STATISTIC),
    # Subsets, and what is estimated for a draft.
    _of(
        "accounts._check_subsets",
        "subset not in listed and ",
        "subset in listed and ",
        "attack/test_a_subset_is_no_free_query.py",
    ),
    _of(
        "BaseSession.__init__",
        "attach and study.free_to_attach and",
        "attach and",
        "attack/test_a_subset_is_no_free_query.py",
    ),
    _of(
        "accounts.check_shown",
        "uses.named_cluster not in listed and",
        "uses.named_cluster in listed and",
        "attack/test_a_subset_is_no_free_query.py",
    ),
    # Shares of noise that sites add up.
    _of(
        "SummedGaussian.draw",
        "/ self.honest + _LEAST_VARIANCE",
        "/ self.sites + _LEAST_VARIANCE",
        _noise("noise"),
    ),
    _of(
        "SummedBall.release_all",
        "2 * self.honest)",
        "2 * self.sites)",
        _noise("noise"),
    ),
    _of("summing._rounded", "(sqrt_up(Fraction(count)) + 1)", "0", "unit/session/test_summing.py"),
    _of("SummingSession.public", "found[known.place] == numbers", "True", "unit/session/test_summing.py"),
    _of(
        "SummingGate._totals",
        "if far is not None and",
        "if far is None and",
        "attack/federation/test_a_secure_sum_opens_to_nobody.py",
    ),
    _of("accounts.check_arm", "smallest < least", "smallest < 0", "unit/cli/test_export.py"),
    # The level of treatment and outcome.
    _of("access policy.rules_of", "(out and rule == DROP)", "False", _LEVELS),
    _of("accounts.check_shown", "uses.unit.treatment_public and", "uses.unit.covariates_public and", _LEVELS),
    _of("question.refuse_shape", "by_arm = study.where is not None and", "by_arm = False and", _LEVELS),
    _of("asking._for_reports", "not found.guarantee.unit.treatment_public", "False", _LEVELS),
    _of("Uses.made_public", "if self.unit.covariates_public else ()", "if arms else ()", _LEVELS),
    _of("StableHistogram.threshold", "log(1 / (2 *", "log(1 / (20 *", _noise("stable_histogram")),
    _of(
        "StableHistogram.release",
        "Laplace(_CHANGE, self.epsilon)",
        "Laplace(_CHANGE, 2 * self.epsilon)",
        _noise("stable_histogram"),
    ),
    _of(
        "Plan.label_delta", "self.budget.delta / max(", "self.budget.delta * max(", _noise("stable_histogram")
    ),
    _of(
        "first_of_each",
        "np.unique(place, return_index=True)[1]",
        "place >= 0",
        "unit/drafting/test_estimating.py",
    ),
    # Noise.
    _of(
        "Laplace.scale",
        "self.sensitivity / self.epsilon",
        "self.sensitivity / (2 * self.epsilon)",
        _noise("noise"),
    ),
    _of("Gaussian.scale", "self.sensitivity / self.mu", "self.sensitivity / (2 * self.mu)", _noise("noise")),
    _of(
        "StaircaseDistribution._first_tail",
        "b / (gamma + (1 - gamma) * b)",
        "b / (gamma + b)",
        _noise("noise"),
    ),
    _of("StaircaseDistribution.variance", "g**3 / 3 + steps", "g**3 + steps", _noise("noise")),
    _of("largest_alpha", "1 + eps / g,", "1 + 2 * eps / g,", _noise("noise")),
    _of(
        "LaplacePair.variance",
        "float(self.scale) ** 2 + float(self.narrow) ** 2",
        "float(self.scale) ** 2",
        _noise("noise"),
    ),
    _of("Ball.variance", "(self.dimension + 1)", "self.dimension", _noise("ball_and_box")),
    _of(
        "Ball.release",
        "exact_ball(ratio) * gamma(steps) / length",
        "exact_ball(ratio) / length",
        _noise("ball_and_box"),
    ),
    _of("Box.variance", "(self.dimension + 2) / 3", "(self.dimension + 2) / 6", _noise("ball_and_box")),
    _of("Box.release", "range(len(values) + 1)", "range(len(values))", _noise("ball_and_box")),
    _of("RandomizedResponse.truth", "(self.categories - 1) * math.exp", "math.exp", _noise("noise")),
    _of(
        "response._limits",
        "exact_ball(epsilon).exp() + (categories - 1)",
        "(2 * exact_ball(epsilon)).exp() + (categories - 1)",
        _noise("noise"),
    ),
    _of(
        "Lomax.release",
        "smooth_sensitivity / self.smoothness",
        "smooth_sensitivity",
        _noise("noise"),
    ),
    # The gate and plans.
    _of("Gate._pay", "if name in self._passed:", "if False:", _GATE, _CUSTODY),
    _of("Gate.release_rows", "np.clip(steps, low, high) + noise", "steps + noise", _GATE),
    _of("Gate.release_rows", "Laplace((high - low) * step, amount)", "Laplace(step, amount)", _GATE),
    _of(
        "Gate.release_cells",
        "Laplace(sensitivity, amount)",
        "Laplace(sensitivity, 2 * amount)",
        _GATE,
        "contract/test_differences.py",
    ),
    _of(
        "Plan.several_noise",
        "s * length / w",
        "s / w",
        "unit/rows/linear/test_several_outcomes.py",
    ),
    _of(
        "Gate.release_vector",
        "ball = Ball(sensitivity, amount, len(exact))",
        "ball = Ball(sensitivity / 2, amount, len(exact))",
        _GATE,
        "unit/estimators/moments/test_doubly_robust.py",
    ),
    _of(
        "Gate.release_vector",
        "normal = Gaussian(sensitivity, amount)",
        "normal = Gaussian(sensitivity, 2 * amount)",
        _GATE,
        "contract/test_ipw.py",
    ),
    _of(
        "gate.release_classical",
        "plan.budget.delta / len(plan.amounts)",
        "plan.budget.delta",
        "unit/published/test_asking.py",
    ),
    _of(
        "Plan._with_normal_noise",
        "_total_mu(Budget(sum(own.values(), Fraction(0)), self.budget.delta))",
        "_total_mu(self.budget)",
        _PLAN,
    ),
    _of(
        "Plan.event",
        "return ApproximateEvent(amount, self.label_delta)",
        "return PureEvent(amount)",
        "unit/mechanisms/test_stable_histogram.py",
    ),
    _of(
        "Plan.noise",
        "Gaussian(sensitivity, amount)",
        "Gaussian(sensitivity / 2, amount)",
        "contract/test_noise.py",
    ),
    _of("branches.in_branches", "if uncounted:", "if False:", "unit/session/test_plan.py"),
    _of("ParallelPlan._group", 'f"{name}, of no group"', "name", "unit/session/test_plan.py"),
    # Splits, rounding, composition.
    _of("splitting.split_epsilon", "total * weight for", "total for", _ROUNDING),
    _of("splitting.split_mu", "sqrt_down(total**2 * weight)", "sqrt_down(total**2)", _ROUNDING),
    _of(
        "splitting._total_and_weights",
        "numbers if whole == 1 else [number / whole for number in numbers]",
        "numbers",
        _ROUNDING,
    ),
    _of("arrays.sqrt_up", "below + Fraction(1, 1 << 64)", "below", _ROUNDING, about="rounding"),
    _of("rounding.square_up", "math.ceil(value", "math.floor(value", _ROUNDING, about="rounding"),
    _of("rounding.shorten_up", "math.ceil(value", "math.floor(value", _ROUNDING, about="rounding"),
    _of(
        "Cost.plus", "shorten_up(self.epsilon + other.epsilon)", "max(self.epsilon, other.epsilon)", _FILTERS
    ),
    _of("Cost.plus", "self.mu2 + other.mu2", "self.mu2", _FILTERS),
    _of("SumRule.fits", " and total.delta <= self.budget.delta", "", _FILTERS),
    _of(
        "GaussianRule.fits",
        "(total.pure and total.epsilon <= self.budget.epsilon)",
        "total.epsilon <= self.budget.epsilon",
        _FILTERS,
    ),
    _of("composition._covered", "left = face.epsilon - pure", "left = face.epsilon", _FILTERS),
    _of("composition.limit_holds", "delta_of(rule.limit, epsilon) <= delta", "True", _FILTERS, _VERIFICATION),
    _of(
        "conversion.gaussian_equivalent",
        "return 2 * upper_tail_point(lambda: 1 / (1",
        "return upper_tail_point(lambda: 1 / (1",
        "unit/accounting/test_composition.py",
    ),
    _of("composition.compose", "left = allowed - plan.loose_delta", "left = allowed", _COMPOSITION),
    _of("composition._gaussian_candidates", "plan.sum_epsilon + extra", "extra", _COMPOSITION),
    _of("composition.check_event", "size >= least", "size >= 0", _COMPOSITION),
    # The ledger.
    _of("accounts.totals_after", "full = levels.exceeded(after)", "full = levels.exceeded(before)", _LEDGER),
    _of(
        "Ledger.reserve",
        "if simulated and self._store.lasting:",
        "if False:",
        _LEDGER,
        "unit/session/test_session.py",
    ),
    _of("Ledger._seen", 'if facts["fingerprint"] != fingerprint:', "if False:", _LEDGER),
    # Requests that stop and go on.
    _of("Ledger._seen", 'if canonical({"asked": asked}) !=', "if False and {} !=", _LEDGER, _RESUMING),
    _of("Ledger._seen", "if self._released(kept, _FAILED) is not None:", "if False:", _RESUMING),
    _of("Ledger.release", 'found is None or found["bounds"] != bounds', "found is None", _LEDGER, _RESUMING),
    _of("Ledger.release", 'if found is None and "settle" not in rows:', "if found is None:", _LEDGER),
    _of("Ledger._followed", "reserved.seq != reservation.seq", "False", _LEDGER),
    _of("Plan.one_by_one", "not self._disjoint and ", "", _RESUMING),
    _of("BaseSession.run", "if gate.forgetful:", "if False:", _RESUMING),
    _of("ledger._follow", "elif past.released(row, book):", "elif False:", _VERIFICATION),
    _of("accounts.digest", 'f"{previous}\\n{body}"', "body", "contract/test_noise.py"),
    _of(
        "accounts._read",
        "if digest(row.previous, row.body) != row.hash:",
        "if False:",
        _VERIFICATION,
        "unit/accounting/test_damage.py",
    ),
    _of("ledger._problem", "if row.previous != previous:", "if False:", _VERIFICATION),
    _of("ledger._reserve", "if book.levels.exceeded(totals) is not None:", "if False:", _DAMAGE),
    _of(
        "ledger.verify_rows",
        "found_head = found_head or row.hash == head_hash",
        "found_head = True",
        "contract/test_noise.py",
    ),
    # Data entry.
    _of("fixed_point.to_steps", "np.floor(", "np.ceil(", _TABLE, "property/data"),
    _of("fixed_point.clamp", "_between(values, *bounds.floats())", "values.copy()", _TABLE, "property/data"),
    _of("domains.numbers", "values[is_missing] = fill", "values[is_missing] = 0.0", _TABLE),
    _of(
        "domains.LabelIndex.code",
        "return self.doubles.get(meaning) if isinstance(meaning, float) else None",
        "return None if isinstance(cell, str) else self.doubles.get(meaning)",
        _TABLE,
        "unit/data/test_sources.py",
        "unit/data/test_study.py",
    ),
    _of("SeenArms.check", "if study.arms is not None:", "if False:", "unit/data/test_study.py"),
    _of("SeenArms.add", "(found == 0)", "(found != 0)", _TABLE),
    # Federation.
    _of(
        "policy.check",
        "spent + budget.epsilon > self.study_epsilon",
        "budget.epsilon > self.study_epsilon",
        "unit/federation/test_messages.py",
        _SITE,
    ),
    _of("policy.check", " or budget.delta > self.max_delta", "", "unit/federation/test_messages.py"),
    _of("policy.check", " and ask.protects in self.protects", "", "unit/federation/test_messages.py"),
    _of(
        "judging._repeated",
        'yield Equal("epsilon and delta", promised, (budget.epsilon, budget.delta), breach=Breach.PRIVACY)',
        "pass",
        *_HOSTILE,
    ),
    _of(
        "judging._repeated",
        'yield from statements(asked, request.declaration, answer, columns=ask.question == "moments")',
        "pass",
        _LIES,
    ),
    _of(
        "noise.effect_in_reach",
        "high=largest",
        "high=None",
        _JUDGING,
    ),
    _of(
        "averages.weighted_difference",
        "low=2 * narrow",
        "low=None",
        _LIES,
    ),
    _of(
        "records._contrast_noise",
        "shorter * middle * (1 - NEAR)",
        "None",
        _LIES,
    ),
    _of("BudgetParts.bounds", "low=spare * self.budget - slack", "low=None", _RATIO),
    _of("averages._weighted_mean", "high=most * (1 + NEAR)", "high=None", _LIES),
    _of("noise.within_reach", "low=ends[0] - margin, high=ends[1] + margin", "low=None, high=None", _RATIO),
    _of("Within.holds", "return above and", "return True or", _LIES),
    _of("site_bounds.first_broken", "if not bound.holds", "if False", _LIES),
    _of("policy.check", " or ask.measure not in self.measures", "", "unit/federation/test_messages.py"),
    _of("judging._check_head", "head.seq < known.seq or ", "", _JUDGING),
    _of(
        "Reply.answers",
        "bound == (request.study_id, request.request_id, request.site, request.fingerprint())",
        "True",
        _COORDINATOR,
        *_HOSTILE,
    ),
    _of("SiteRecords.answered", 'if kept["fingerprint"] != request.fingerprint():', "if False:", _SITE),
    _of("Site._check", "if not self._declared(request.declaration):", "if False:", _SITE),
    _of("Site._check", "if self._clock() > request.deadline:", "if False:", _SITE),
)
