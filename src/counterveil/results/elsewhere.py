"""Names that other packages have for what is called otherwise here, and what is written in their place."""

from __future__ import annotations

_REGRESS = (
    'cv.moments(data, study, protects="record", epsilon=1, delta=1e-6).regress("y ~ d + x"); '
    'for one effect cv.ate("y ~ d | x", data, ranges, protects="outcome", epsilon=1)'
)
_INSTRUMENTS = 'cv.moments(data, study, protects="record", epsilon=1, delta=1e-6).regress("y ~ x + [d ~ z]")'
_CHANGES = (
    "cv.ate(data, study, ...) with outcome=cv.Change(...), or cv.event_study(data, study, ...) with its periods: "
    "cv.Change(..., time=, before=, after=)"
)
_EFFECT = 'cv.ate("y ~ d | x", data, ranges, protects="outcome", epsilon=1'
_TIMES = 'cv.survival(data, study, protects="record", epsilon=1) with cv.TimeToEvent as the outcome'
_PARTS = 'cv.cate(data, study, protects="record", epsilon=1, delta=1e-6)'
_MODELS = 'cv.ate(data, study, protects="outcome", epsilon=1, measure="odds_ratio")'

# Functions and classes.
_CALLS = {
    **dict.fromkeys(
        ("feols", "ols", "OLS", "WLS", "lm", "reg", "regress", "regression", "lm_robust"), _REGRESS
    ),
    **dict.fromkeys(("iv", "ivreg", "IV2SLS", "tsls", "iv_robust", "feiv"), _INSTRUMENTS),
    **dict.fromkeys(
        ("did", "did2s", "att_gt", "lpdid", "DiD", "diff_in_diff", "difference_in_differences"), _CHANGES
    ),
    **dict.fromkeys(
        ("matchit", "MatchIt", "match", "matching", "psmatch", "NearestNeighborMatch"),
        f'{_EFFECT}, method="matching")',
    ),
    **dict.fromkeys(
        ("weightit", "WeightIt", "ipw", "IPW", "iptw", "psweight", "entropy_balance"),
        f'{_EFFECT}, method="weighting")',
    ),
    **dict.fromkeys(
        ("DoubleML", "DoubleMLData", "DoubleMLIRM", "DoubleMLPLR", "aipw", "AIPW", "TMLE", "tmle", "dml"),
        'cv.ate(data, study, protects="record", epsilon=1, delta=1e-6, method="doubly_robust")',
    ),
    **dict.fromkeys(("CausalForestDML", "LinearDML", "causal_forest", "DRLearner", "uplift"), _PARTS),
    **dict.fromkeys(
        ("KaplanMeierFitter", "CoxPHFitter", "survfit", "coxph", "Surv", "kaplan_meier", "cox"), _TIMES
    ),
    **dict.fromkeys(("rq", "quantreg", "QuantReg", "quantile"), "cv.quantiles(data, study, ...)"),
    **dict.fromkeys(("ttest", "t_test", "ttest_ind", "difference_in_means", "att", "effect"), f"{_EFFECT})"),
    **dict.fromkeys(("logit", "Logit", "glm", "GLM", "poisson", "fepois", "feglm"), _MODELS),
    **dict.fromkeys(("sensemakr", "sensitivity", "evalue", "e_value"), "result.sensitivity()"),
    **dict.fromkeys(("tidy", "summary", "plot", "balance", "write_up"), "result.{name}()"),
    **dict.fromkeys(("confint", "conf_int", "ci"), "result.interval()"),
    **dict.fromkeys(("coefplot", "iplot", "forest"), "result.plot()"),
    **dict.fromkeys(("meta_analysis", "metagen", "rma"), "cv.pool(results)"),
    **dict.fromkeys(("read_csv", "read_parquet"), 'the path as data: cv.ate("rows.csv", study, ...)'),
}

# Attributes and methods of results: the first of these that a result has.
_ESTIMATES = ("params", "estimate", "tidy()")
_ERRORS = ("bse", "std_error", "tidy()")
_P_VALUES = ("pvalues", "p_value", "tidy()")
_INTERVALS = ("conf_int()", "interval()", "tidy()")
_ATTRIBUTES = {
    **dict.fromkeys(
        ("coef", "coef_", "coefs", "coefficients", "params", "ate", "ate_", "effect_"), _ESTIMATES
    ),
    **dict.fromkeys(
        ("se", "bse", "std_err", "stderr", "std_errors", "standard_error", "standard_errors"), _ERRORS
    ),
    **dict.fromkeys(("pvalue", "pvalues", "p_values", "pval", "pvals", "p"), _P_VALUES),
    **dict.fromkeys(("confint", "conf_int", "confidence_interval", "confidence_interval_", "ci"), _INTERVALS),
    **dict.fromkeys(("tstat", "tvalues", "statistic", "zvalues", "t"), ("tvalues", "tidy()")),
    **dict.fromkeys(("vcov", "cov_params"), ("cov_params()", *_ERRORS)),
    **dict.fromkeys(("rsquared", "rsquared_adj", "r2"), ("r_squared", "full()")),
    **dict.fromkeys(("nobs", "n", "n_obs"), ("rows", "details", "full()")),
    **dict.fromkeys(("print_summary", "summary2", "summary_frame", "get_summary"), ("summary()",)),
    **dict.fromkeys(("to_df", "to_pandas", "to_frame", "frame", "to_csv", "as_data_frame"), ("effects",)),
    **dict.fromkeys(("coefplot", "iplot", "forest", "show"), ("plot()",)),
    **dict.fromkeys(("sensitivity_analysis", "sensemakr", "evalue", "e_value"), ("sensitivity()",)),
    **dict.fromkeys(("ols", "feols", "fit"), ('regress("y ~ d + x")', "summary()")),
    **dict.fromkeys(("report", "write_report", "html", "as_html"), ('to_html("report.html")',)),
    **dict.fromkeys(("latex", "as_latex"), ('to_latex("table.tex")',)),
    "etable": ("to_latex()",),
}


def missing_name(name: str) -> str:
    """Return the message of an attribute that the package lacks."""
    ours = _CALLS.get(name)
    said = f"module 'counterveil' has no attribute {name!r}"
    return said if ours is None else f"{said}; write {ours.replace('{name}', name)}"


def missing_attribute(kind: type, name: str) -> str:
    """Return the message of an attribute that results of a class lack."""
    said = f"{kind.__name__!r} object has no attribute {name!r}"
    for ours in _ATTRIBUTES.get(name, ()):
        if hasattr(kind, ours.partition("(")[0]):
            return f"{said}; write result.{ours}"
    return said
