# One question: of data with a study or a formula, or of a session.
question <- function(name, x, study, named, ranges) {
  if (inherits(x, "cv_session")) {
    value <- ask(x$value[[name]], list(), named)
  } else {
    fun <- python()$package[[name]]
    if (inherits(study, "formula")) {
      # What declares the study may stand in the question, as assignment = "trial".
      said <- reticulate::py_to_r(python()$helper$design_arguments(fun, as.list(names(named))))
      study <- do.call(cv_study, c(list(study, ranges), named[as.character(said)]))
      named <- named[setdiff(names(named), said)]
    }
    value <- ask(fun, list(x, study), named)
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
cv_quantiles <- function(x, study = NULL, ..., ranges = list()) question("quantiles", x, study, list(...), ranges)

#' @export
cv_cate <- function(x, study = NULL, ..., ranges = list()) question("cate", x, study, list(...), ranges)

#' @export
cv_event_study <- function(x, study = NULL, ..., ranges = list()) question("event_study", x, study, list(...), ranges)

#' @export
cv_regress <- function(moments, formula, ...) {
  text <- if (inherits(formula, "formula")) paste(deparse(formula, width.cutoff = 500L), collapse = " ") else formula
  result(ask(moments$value$regress, list(text), list(...)), "regression")
}

#' @export
cv_plan <- function(study, rows, epsilon, ...) {
  result(ask(python()$package$plan, list(study), c(list(rows = rows, epsilon = epsilon), list(...))), "plan")
}
