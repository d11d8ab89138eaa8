skip_if_not(reticulate::py_module_available("counterveil"), "the Python package counterveil was not found")

set.seed(1)
n <- 400
trial <- data.frame(
  arm = rep(0:1, n / 2),
  age = round(runif(n, 20, 80)),
  sex = factor(sample(c("f", "m"), n, TRUE)),
  smoker = runif(n) < 0.3
)
trial$days <- pmin(60, pmax(0, round(20 + 5 * trial$arm + 0.2 * trial$age + rnorm(n, 0, 5))))
ranges <- list(days = c(0, 60), age = c(18, 90), sex = c("f", "m"), smoker = cv_binary())
study <- cv_study(days ~ arm | age + sex + smoker, ranges, assignment = "trial", treatment = list(control = 0))

test_that("an answer is that of Python", {
  cv <- reticulate::import("counterveil", convert = FALSE)
  found <- cv_ate(trial, study, protects = "outcome", epsilon = 1, noise = cv_seeded(7))
  columns <- list(
    arm = as.list(trial$arm), age = as.list(trial$age), sex = as.list(as.character(trial$sex)),
    smoker = as.list(as.integer(trial$smoker)), days = as.list(trial$days)
  )
  same <- cv$ate(do.call(reticulate::dict, columns), study$value,
    protects = "outcome", epsilon = 1L, noise = cv$SeededNoise(7L)
  )
  expect_identical(tidy(found)$estimate, reticulate::py_to_r(same$estimate))
  expect_true(tidy(found)$conf.low < tidy(found)$conf.high)
})

test_that("a formula is a study", {
  ask <- function(study, ...) {
    tidy(cv_ate(trial, study, protects = "record", epsilon = 2, noise = cv_seeded(3), ...))$estimate
  }
  plain <- cv_study(days ~ arm | age + sex + smoker, ranges)
  expect_identical(ask(days ~ arm | age + sex + smoker, ranges = ranges), ask(plain))
  expect_error(cv_study(days ~ arm * age, ranges), "outcome ~ treatment")
  expect_error(cv_study(days ~ arm | weight, ranges), "weight")
})

test_that("refusals are conditions with their code", {
  refused <- tryCatch(
    cv_ate(trial, study, protects = "outcome", epsilon = -1),
    counterveil_error = function(condition) condition
  )
  expect_match(refused$code, "^CV-")
  expect_s3_class(refused, refused$code)
})

test_that("tables have the columns of broom", {
  found <- cv_groups(trial, study, by = "sex", protects = "outcome", epsilon = 1)
  expect_true(all(c("term", "estimate", "std.error", "statistic", "p.value", "conf.low", "conf.high") %in% names(tidy(found))))
  expect_identical(nrow(tidy(found)), length(coef(found)))
  expect_identical(glance(found)$epsilon, 1)
  expect_identical(dim(confint(found)), c(nrow(tidy(found)), 2L))
  expect_output(print(found), "epsilon 1")
  expect_output(summary(found), "proof")
})

test_that("missing values, tibbles, labelled columns and dates are read as they are", {
  changed <- trial
  changed$sex <- as.character(changed$sex)
  changed$sex[3] <- NA
  changed$age <- structure(changed$age, class = c("haven_labelled", "vctrs_vctr", "double"), labels = c(old = 80))
  changed$visit <- as.Date("2026-01-01")
  expect_error(cv_ate(changed, study, protects = "outcome", epsilon = 1), class = "counterveil_error")
  changed$sex <- trial$sex
  same <- function(data) tidy(cv_ate(data, study, protects = "outcome", epsilon = 1, noise = cv_seeded(5)))$estimate
  expect_identical(same(changed), same(trial))
  skip_if_not_installed("tibble")
  expect_identical(same(tibble::as_tibble(trial)), same(trial))
})

test_that("a session has one budget, and repeats an answer at no cost", {
  session <- cv_session(trial, study, epsilon = 3)
  first <- cv_ate(session, protects = "outcome", epsilon = 1, request_id = "primary")
  again <- cv_ate(session, protects = "outcome", epsilon = 1, request_id = "primary")
  expect_identical(tidy(first)$estimate, tidy(again)$estimate)
  expect_identical(cv_remaining(session)[["epsilon"]], 2)
  expect_error(cv_ate(session, protects = "outcome", epsilon = 5), class = "CV-B001")
})

test_that("regressions, survival and plans are asked for in the same way", {
  released <- cv_moments(trial, study, protects = "record", epsilon = 8, delta = 1e-6)
  expect_true("arm" %in% tidy(cv_regress(released, days ~ arm + age))$term)
  trial$died <- as.integer(trial$days > 30)
  timed <- cv_study(days ~ arm, outcome = list(event = "died", horizon = 60), assignment = "trial", treatment = list(control = 0))
  expect_gt(nrow(tidy(cv_survival(trial, timed, protects = "record", epsilon = 4))), 0)
  planned <- cv_plan(
    study,
    rows = c(200, 400), epsilon = 1, protects = "outcome", draws = 3,
    assumed = cv_assumptions(explained = 0.1), decision = cv_decision("superiority")
  )
  expect_gt(nrow(tidy(planned)), 0)
})

test_that("the first request on a ledger names what it would make public", {
  place <- tempfile(fileext = ".db")
  cv <- reticulate::import("counterveil")
  cv$open_ledger(place, create = TRUE)$close()
  session <- cv_session(trial, study, epsilon = 3, ledger = place, dataset = "trial")
  expect_error(cv_ate(session, protects = "outcome", epsilon = 1), class = "CV-L090")
  expect_identical(cv_remaining(session)[["epsilon"]], 3)
  cv_publish(session, "arm", "age", "sex", "smoker")
  expect_s3_class(cv_ate(session, protects = "outcome", epsilon = 1), "counterveil")
})

test_that("a time to an event is written as in the package survival", {
  arms <- list(control = 0)
  named <- cv_study(days ~ arm, outcome = list(event = "died", horizon = 60), assignment = "trial", treatment = arms)
  written <- cv_study(Surv(days, died) ~ arm, outcome = list(horizon = 60), assignment = "trial", treatment = arms)
  ranged <- cv_study(Surv(days, died) ~ arm, list(days = c(0, 60)), assignment = "trial", treatment = arms)
  expect_identical(capture.output(print(written)), capture.output(print(named)))
  expect_identical(capture.output(print(ranged)), capture.output(print(named)))
  expect_error(cv_study(Surv(days) ~ arm, list(days = c(0, 60))), "outcome ~ treatment")
  expect_error(cv_study(log(days) ~ arm, list(days = c(0, 60))), "outcome ~ treatment")
})
