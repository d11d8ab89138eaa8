# One question: of data with a study or a formula, or of a session.
question <- function(name, x, study, named, ranges) {
  if (inherits(x, "cv_session")) {
    value <- ask(x$value[[name]], list(), named)
  } else {
    if (inherits(study, "formula")) study <- cv_study(study, ranges)
    value <- ask(python()$package[[name]], list(x, study), named)
  }
  result(value, name)
}

result <- function(value, name) {
  structure(list(value = value), class = c(paste0("cv_", name, "_result"), "counterveil"))
}

#' @export
cv_ate <- function(x, study = NULL, ..., ranges = list()) question("ate", x, study, list(...), ranges)

#' @export
cv_groups <- function(x, study = NULL, ..., ranges = list()) question("groups", x, study, list(...), ranges)

#' @export
cv_arms <- function(x, study = NULL, ..., ranges = list()) question("arms", x, study, list(...), ranges)

#' @export
cv_outcomes <- function(x, study = NULL, ..., ranges = list()) question("outcomes", x, study, list(...), ranges)

#' @export
cv_survival <- function(x, study = NULL, ..., ranges = list()) question("survival", x, study, list(...), ranges)

#' @export
cv_moments <- function(x, study = NULL, ..., ranges = list()) question("moments", x, study, list(...), ranges)

#' @export
cv_regress <- function(moments, formula, ...) {
  text <- if (inherits(formula, "formula")) paste(deparse(formula, width.cutoff = 500L), collapse = " ") else formula
  result(ask(moments$value$regress, list(text), list(...)), "regression")
}

#' @export
cv_plan <- function(study, rows, epsilon, ...) {
  result(ask(python()$package$plan, list(study), c(list(rows = rows, epsilon = epsilon), list(...))), "plan")
}
