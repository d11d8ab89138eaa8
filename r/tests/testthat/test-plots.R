skip_if_not(reticulate::py_module_available("counterveil"), "the Python package counterveil was not found")
skip_if_not_installed("ggplot2")

set.seed(4)
people <- data.frame(
  arm = rep(c("placebo", "drug"), 300), days = round(runif(600, 1, 400)), died = rep(c(0, 1, 1), 200)
)

test_that("survival is drawn as curves of both arms with bands, times in the units of their column", {
  study <- cv_study(days ~ arm,
    outcome = list(event = "died", horizon = 360, grid = 6), assignment = "trial",
    treatment = list(treated = "drug", control = "placebo")
  )
  released <- cv_survival(people, study, protects = "record", epsilon = 4, noise = cv_seeded(1))
  drawn <- ggplot2::autoplot(released)
  built <- ggplot2::ggplot_build(drawn)
  expect_identical(levels(drawn$data$arm), c("arm = drug", "arm = placebo"))
  expect_setequal(drawn$data$time, seq(0, 360, 60))
  # Shares, never days or ratios on the same axis.
  expect_true(all(unlist(drawn$data[c("estimate", "low", "high", "band_low", "band_high")]) <= 1))
  expect_true(all(drawn$data$band_low <= drawn$data$low & drawn$data$high <= drawn$data$band_high))
  kinds <- vapply(drawn$layers, function(layer) class(layer$geom)[1], "")
  expect_identical(kinds, c("GeomRibbon", "GeomRibbon", "GeomLine"))
  expect_match(drawn$labels$x, "^days; ")
  expect_match(drawn$labels$y, "died")
  expect_gt(length(built$data), 2)
})
