#' @export
cv_study <- function(formula, ranges = list(), ...) {
  parts <- formula_parts(formula)
  more <- list(...)
  if (!is.null(parts$event)) more$outcome <- utils::modifyList(list(event = parts$event), as.list(more$outcome))
  # A time to an event ends at its horizon, which the range of the time may say.
  timed <- !is.null(more$outcome$event)
  until <- ranges[[parts$outcome]]
  if (timed && length(until) == 2 && is.null(more$outcome$horizon)) more$outcome$horizon <- ends(until)[2]
  missing <- setdiff(c(if (!timed) parts$outcome, parts$covariates), names(ranges))
  if (length(missing)) {
    stop("ranges has no entry for: ", paste(missing, collapse = ", "),
      ". Public ranges are declared, never read off the data.",
      call. = FALSE
    )
  }
  domains <- lapply(ranges[parts$covariates], domain)
  bounds <- if (!timed) ranges[[parts$outcome]]
  known <- list(ends = bounds, covariates = if (length(domains)) domains)
  value <- ask(python()$helper$study, list(parts$treatment, parts$outcome), c(known, more))
  structure(list(value = value), class = "cv_study")
}

#' @export
cv_binary <- function() structure(list(), class = "cv_binary")

# outcome ~ treatment | covariates, with Surv(time, event) for a time to an event
formula_parts <- function(formula) {
  wrong <- function() stop("write outcome ~ treatment | covariate + covariate", call. = FALSE)
  if (!inherits(formula, "formula") || length(formula) != 3) wrong()
  left <- as.list(formula[[2]])
  timed <- length(left) == 3 && identical(left[[1]], as.name("Surv"))
  if (!(is.name(formula[[2]]) || timed) || !all(vapply(left, is.name, logical(1)))) wrong()
  right <- formula[[3]]
  barred <- is.call(right) && identical(right[[1]], as.name("|"))
  treatment <- if (barred) right[[2]] else right
  if (!is.name(treatment)) wrong()
  covariates <- if (barred) names_in(right[[3]], wrong) else character()
  list(
    outcome = as.character(if (timed) left[[2]] else formula[[2]]), event = if (timed) as.character(left[[3]]),
    treatment = as.character(treatment), covariates = covariates
  )
}

names_in <- function(term, wrong) {
  if (is.name(term)) {
    return(as.character(term))
  }
  if (!is.call(term) || !identical(term[[1]], as.name("+")) || length(term) != 3) wrong()
  c(names_in(term[[2]], wrong), names_in(term[[3]], wrong))
}

domain <- function(x) {
  package <- python()$package
  if (inherits(x, "python.builtin.object")) {
    return(x)
  }
  if (inherits(x, "cv_binary")) {
    return(ask(package$Binary))
  }
  if (is.factor(x)) x <- levels(x)
  if (is.character(x)) {
    return(ask(package$Categories, list(as.list(x))))
  }
  if (class_of(x) %in% c("number", "integer64") && length(x) == 2) {
    return(ask(package$Range, as.list(ends(x))))
  }
  stop("a range is c(low, high), a vector of labels, a factor, or cv_binary()", call. = FALSE)
}

# The ends of a range as plain numbers.
ends <- function(x) {
  if (class_of(x) == "integer64") as.double(unlist(reticulate::py_to_r(to_python(x)))) else as.double(x)
}

#' @export
print.cv_study <- function(x, ...) {
  cat(reticulate::py_to_r(x$value$to_toml()))
  invisible(x)
}

#' @export
cv_seeded <- function(seed) ask(python()$package$SeededNoise, list(as.integer(seed)))

#' @export
cv_session <- function(data, study, epsilon = NULL, delta = 0, ledger = NULL, dataset = NULL, noise = NULL) {
  package <- python()$package
  budget <- if (is.null(epsilon)) NULL else ask(package$Budget, list(epsilon, delta))
  value <- ask(
    package$Session, list(data, study),
    list(budget = budget, ledger = ledger, dataset = dataset, noise = noise)
  )
  structure(list(value = value), class = "cv_session")
}

#' @export
cv_remaining <- function(session, protects = "outcome") {
  left <- ask(session$value$remaining, list(protects))
  number <- function(x) as.numeric(reticulate::py_to_r(x$`__float__`()))
  c(epsilon = number(left$epsilon), delta = number(left$delta))
}

#' @export
print.cv_session <- function(x, ...) {
  left <- cv_remaining(x)
  cat("session: epsilon", left[["epsilon"]], "and delta", left[["delta"]], "left for outcomes\n")
  invisible(x)
}
