skip_if_not(reticulate::py_module_available("counterveil"), "the Python package counterveil was not found")

# What Python sees of one column.
seen <- function(cells) {
  cells <- if (is.list(cells) && !inherits(cells, "POSIXlt")) I(cells) else cells
  data <- data.frame(row = seq_len(NROW(cells)))
  data$x <- cells
  columns <- counterveil:::to_columns(data)
  builtins <- reticulate::import_builtins(convert = FALSE)
  found <- counterveil:::called(columns$`__getitem__`, list("x"))
  reticulate::py_to_r(builtins$repr(builtins$list(found)))
}

test_that("integer64 is the whole numbers that it shows, and its NA is missing", {
  skip_if_not_installed("bit64")
  big <- bit64::as.integer64(c("0", "1", NA, "-7", "9007199254740993"))
  expect_identical(
    gsub("np.int64\\((-?[0-9]+)\\)", "\\1", seen(big)), "[0, 1, masked, -7, 9007199254740993]"
  )
  # Where bit64 is not loaded the class is the same.
  expect_identical(seen(structure(unclass(big), class = "integer64")), seen(big))
})

test_that("effects of integer64 columns are those of the same integers", {
  skip_if_not_installed("bit64")
  set.seed(11)
  plain <- data.frame(arm = rep(0:1, 200), died = as.integer(runif(400) < rep(c(0.2, 0.6), 200)))
  wide <- data.frame(arm = bit64::as.integer64(plain$arm), died = bit64::as.integer64(plain$died))
  effect <- function(data, control = 0, range = c(0, 1)) {
    study <- cv_study(died ~ arm, list(died = range), assignment = "trial", treatment = list(control = control))
    tidy(cv_ate(data, study, protects = "outcome", epsilon = 1, noise = cv_seeded(2)))$estimate
  }
  expect_identical(effect(wide), effect(plain))
  # Also where the declarations are such numbers.
  expect_identical(effect(wide, bit64::as.integer64(0), bit64::as.integer64(c(0, 1))), effect(plain))
  missing <- wide
  missing$died[3] <- NA
  expect_error(effect(missing), class = "CV-D003")
})

test_that("files that fread reads give the same answer as those of base R", {
  skip_if_not_installed("data.table")
  skip_if_not_installed("bit64")
  file <- tempfile(fileext = ".csv")
  id <- paste0("90071992547", sprintf("%05d", 1:300))
  writeLines(c("id,arm,when,y", sprintf("%s,%d,2026-01-%02d,%d", id, rep(0:1, 150), 1:30, 1:300 %% 7)), file)
  fast <- data.table::fread(file, integer64 = "integer64")
  expect_s3_class(fast$id, "integer64")
  base <- utils::read.csv(file, colClasses = c(id = "character"))
  study <- cv_study(
    y ~ arm, list(y = c(0, 6)),
    assignment = "trial", treatment = list(control = 0),
    people = list(column = "id", order = "when", max_rows = 1)
  )
  effect <- function(data) tidy(cv_ate(data, study, protects = "outcome", epsilon = 1, noise = cv_seeded(2)))$estimate
  expect_identical(effect(fast), effect(base))
})

test_that("every class that is known is read as what it shows", {
  expect_identical(seen(c(TRUE, NA, FALSE)), seen(c(1, NA, 0)))
  expect_identical(seen(factor(c("b", NA, "a"))), "['b', None, 'a']")
  expect_identical(seen(factor(c("b", "a"), levels = c("b", "a"), ordered = TRUE)), "['b', 'a']")
  expect_identical(seen(c("x", NA)), "['x', None]")
  expect_identical(seen("x"), "['x']")
  expect_identical(seen(as.Date(c("2026-01-05", NA))), "['2026-01-05', None]")
  expect_identical(seen(as.Date("2026-01-05") - as.Date("2026-01-01")), seen(4))
  expect_identical(seen(structure(c(60, NA), units = "secs", class = c("hms", "difftime"))), seen(c(60, NA)))
  expect_identical(seen(structure(c(60L, NA), class = "ITime")), seen(c(60, NA)))
  expect_identical(seen(I(c(1.5, 2))), seen(c(1.5, 2)))
  expect_identical(seen(structure(1:2, class = c("labelled", "integer"), label = "a word")), seen(c(1, 2)))
  expect_identical(seen(matrix(c(1.5, 2), ncol = 1)), seen(c(1.5, 2)))
})

test_that("a time is the same text whatever the other rows hold", {
  noon <- as.POSIXct("2026-01-05 12:00:00", tz = "UTC")
  midnight <- as.POSIXct("2026-01-05 00:00:00", tz = "UTC")
  expect_identical(seen(c(midnight, midnight)), "['2026-01-05 00:00:00', '2026-01-05 00:00:00']")
  expect_identical(seen(c(midnight, noon)), "['2026-01-05 00:00:00', '2026-01-05 12:00:00']")
  expect_identical(seen(as.POSIXlt(noon)), "['2026-01-05 12:00:00']")
  expect_identical(seen(as.POSIXct("2026-01-05 12:00:00", tz = "Etc/GMT-2")), "['2026-01-05 10:00:00']")
})

test_that("labelled columns of haven are their values, and their missing codes are missing", {
  skip_if_not_installed("haven")
  expect_identical(seen(haven::labelled(c(1, 2, NA), c(yes = 1, no = 2))), seen(c(1, 2, NA)))
  expect_identical(seen(haven::labelled(c("f", NA), c(female = "f"))), "['f', None]")
  expect_identical(seen(haven::labelled(c(1, haven::tagged_na("a")))), seen(c(1, NA)))
  expect_identical(seen(haven::labelled_spss(c(1, 99, 7), na_values = 99)), seen(c(1, NA, 7)))
  expect_identical(seen(haven::labelled_spss(c(1, 99, 7), na_range = c(90, Inf))), seen(c(1, NA, 7)))
})

test_that("a class whose meaning is unknown is refused by name before anything is charged", {
  data <- data.frame(arm = rep(0:1, 50), y = rep(0:4, 20), z = 1)
  study <- cv_study(y ~ arm, list(y = c(0, 4)), assignment = "trial", treatment = list(control = 0))
  strange <- list(
    structure(data$y, class = "yearmon"), as.list(data$y), data$y + 1i, as.raw(data$y), cbind(data$y, 1),
    as.difftime(as.numeric(data$y), units = "hours"), structure(as.numeric(data$y), class = c("nanotime", "integer64"))
  )
  for (cells in strange) {
    changed <- data
    changed$y <- if (is.list(cells)) I(cells) else cells
    refused <- tryCatch(
      cv_ate(changed, study, protects = "outcome", epsilon = 1),
      counterveil_error = function(condition) condition
    )
    expect_identical(refused$code, "CV-D013")
    expect_match(conditionMessage(refused), "column 'y'", fixed = TRUE)
    expect_match(conditionMessage(refused), rev(setdiff(class(cells), "array"))[1], fixed = TRUE)
    # Where a study does not use the column, its class does not matter.
    changed$z <- changed$y
    changed$y <- data$y
    expect_s3_class(cv_ate(changed, study, protects = "outcome", epsilon = 1), "counterveil")
  }
  session <- cv_session(data, study, epsilon = 3)
  expect_error(cv_ate(session, protects = "outcome", epsilon = structure(1, class = "units")), "units")
  expect_identical(cv_remaining(session)[["epsilon"]], 3)
  twice <- cbind(data, data["y"])
  expect_error(cv_ate(twice, study, protects = "outcome", epsilon = 1), class = "CV-D010")
})
