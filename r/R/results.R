# What follows from a result; none of it spends budget.

#' @export
cv_write_up <- function(result) {
  text <- reticulate::py_to_r(ask(method(result, "write_up")))
  structure(text, class = "cv_text")
}

#' @export
print.cv_text <- function(x, ...) {
  cat(unclass(x), "\n", sep = "")
  invisible(x)
}

#' @export
cv_report <- function(result, path) {
  forms <- c(html = "to_html", md = "to_markdown", tex = "to_latex")
  form <- forms[tolower(tools::file_ext(path))]
  if (is.na(form)) stop("the path of a report ends in .html, .md or .tex", call. = FALSE)
  ask(method(result, form), list(path.expand(path)))
  invisible(path)
}

#' @export
cv_test <- function(result, kind = "superiority", margin = NULL, higher_is_better = TRUE, level = NULL) {
  named <- list(margin = margin, higher_is_better = higher_is_better, level = level)
  structure(list(value = ask(method(result, "test"), list(kind), named)), class = "cv_test")
}

#' @export
print.cv_test <- function(x, ...) {
  cat(reticulate::py_str(x$value), "\n", sep = "")
  invisible(x)
}

#' @export
tidy.cv_test <- function(x, ...) {
  fact <- function(name) reticulate::py_to_r(x$value[[name]])
  ends <- unlist(fact("interval"))
  data.frame(
    kind = fact("kind"), estimate = fact("estimate"), conf.low = ends[1], conf.high = ends[2], level = fact("level"),
    p.value = fact("p_value"), alpha = fact("alpha"), met = fact("met"), verdict = fact("verdict")
  )
}

#' @export
cv_hazard_ratio <- function(result, cause = NULL) {
  effect_row("hazard ratio", ask(method(result, "hazard_ratio"), named = list(cause = cause)))
}

#' @export
cv_quantile <- function(result, arm, prob = 0.5) {
  effect_row(paste("quantile", prob, "of", arm), ask(method(result, "quantile"), list(arm, prob)))
}

#' @export
cv_quantile_difference <- function(result, prob = 0.5) {
  effect_row(paste("difference of quantile", prob), ask(method(result, "quantile_difference"), list(prob)))
}

#' @export
cv_curves <- function(result, level = NULL) {
  from_json(python()$helper$table(ask(method(result, "curves"), named = list(level = level))))
}

effect_row <- function(name, effect) from_json(python()$helper$effect(name, effect))

# A method of a result, or the question of which it would be.
method <- function(result, name) {
  if (!inherits(result, "counterveil")) stop("this needs the result of a question, such as cv_ate()", call. = FALSE)
  if (!reticulate::py_has_attr(result$value, name)) {
    stop("a result of ", sub("_result$", "", class(result)[1]), "() has no ", name, call. = FALSE)
  }
  result$value[[name]]
}
