skip_if_not(reticulate::py_module_available("counterveil"), "the Python package counterveil was not found")

set.seed(5)
trial <- data.frame(arm = rep(0:1, 300), days = round(runif(600, 1, 300)), died = rep(c(0, 1, 1), 200))
trial$score <- pmin(10, pmax(0, 4 + trial$arm + rnorm(600)))
ranges <- list(score = c(0, 10))

test_that("what declares the study may stand in the question", {
  ask <- function(...) {
    cv_ate(trial, score ~ arm, ranges = ranges, treatment = list(control = 0), protects = "outcome", epsilon = 1, noise = cv_seeded(1), ...)
  }
  study <- cv_study(score ~ arm, ranges, assignment = "trial", treatment = list(control = 0))
  same <- cv_ate(trial, study, protects = "outcome", epsilon = 1, noise = cv_seeded(1))
  expect_identical(tidy(ask(assignment = "trial"))$estimate, tidy(same)$estimate)
})

test_that("hints are written as R writes them", {
  hint <- function(call) conditionMessage(tryCatch(call, counterveil_error = identity))
  study <- cv_study(score ~ arm, ranges, treatment = list(control = 0))
  said <- hint(cv_ate(trial, study, protects = "outcome", epsilon = 1, randomised = TRUE))
  expect_match(said, "cv_study(..., assignment=\"trial\")", fixed = TRUE)
  expect_no_match(said, "True|cv\\.")
  # Without a treatment assigned at random or covariates there is no method.
  expect_match(hint(cv_ate(trial, study, protects = "outcome", epsilon = 1)), "assignment=\"trial\"", fixed = TRUE)
  expect_match(hint(cv_ate(trial, study, protects = "outcome", eps = 1)), "epsilon=1", fixed = TRUE)
})

test_that("results are written up, tested and reported", {
  study <- cv_study(score ~ arm, ranges, assignment = "trial", treatment = list(control = 0))
  found <- cv_ate(trial, study, protects = "outcome", epsilon = 4, noise = cv_seeded(1))
  expect_output(print(cv_write_up(found)), "epsilon")
  expect_output(print(found), "summary(result), or cv_report(result, FILE)", fixed = TRUE)
  tested <- cv_test(found, "noninferiority", margin = 0.5)
  expect_true(tidy(tested)$met)
  expect_identical(tidy(tested)$estimate, tidy(found)$estimate)
  expect_output(print(tested), "Non-inferior")
  for (ending in c("html", "md", "tex")) {
    path <- tempfile(fileext = paste0(".", ending))
    expect_identical(cv_report(found, path), path)
    expect_gt(file.size(path), 500)
  }
  expect_error(cv_report(found, "report.docx"), ".html")
  expect_error(cv_hazard_ratio(found), "cv_ate() has no hazard_ratio", fixed = TRUE)
})

test_that("hazard ratios, quantiles and curves are data frames", {
  timed <- cv_study(days ~ arm, outcome = list(event = "died", horizon = 250, grid = 5), assignment = "trial", treatment = list(control = 0))
  found <- cv_survival(trial, timed, protects = "record", epsilon = 4, noise = cv_seeded(1))
  ratio <- cv_hazard_ratio(found)
  expect_equal(ratio$estimate, tidy(found)$estimate[3])
  expect_true(ratio$conf.low < ratio$estimate && ratio$estimate < ratio$conf.high)
  expect_true(cv_quantile(found, "treated")$estimate > 0)
  expect_identical(nrow(cv_quantile_difference(found)), 1L)
  curves <- cv_curves(found)
  expect_setequal(curves$arm, c("control", "treated", "difference"))
  expect_setequal(curves$time, seq(0, 250, 50))
  wide <- cv_study(score ~ arm, ranges, assignment = "trial", treatment = list(control = 0))
  expect_gt(nrow(tidy(cv_quantiles(trial, wide, protects = "record", epsilon = 4))), 0)
})

test_that("every exported function has a page of its own with its arguments", {
  pages <- tools::Rd_db("counterveil")
  exported <- grep("^cv_", getNamespaceExports("counterveil"), value = TRUE)
  skip_if(length(pages) == 0, "installed without pages")
  expect_setequal(intersect(sub("\\.Rd$", "", names(pages)), exported), exported)
})
