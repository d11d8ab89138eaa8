#' @export
print.counterveil <- function(x, ...) {
  cat(reticulate::py_str(x$value), "\n", sep = "")
  invisible(x)
}

#' @export
summary.counterveil <- function(object, ...) {
  cat(reticulate::py_to_r(ask(object$value$full)), "\n", sep = "")
  invisible(object)
}

#' @export
tidy.counterveil <- function(x, ...) from_json(python()$helper$rows(x$value))

#' @export
glance.counterveil <- function(x, ...) from_json(python()$helper$facts(x$value))

from_json <- function(text) {
  found <- jsonlite::fromJSON(reticulate::py_to_r(text))
  found <- as.data.frame(found, stringsAsFactors = FALSE)
  names(found) <- gsub("_", ".", names(found))
  if (requireNamespace("tibble", quietly = TRUE)) tibble::as_tibble(found) else found
}

#' @export
coef.counterveil <- function(object, ...) {
  rows <- tidy(object)
  stats::setNames(rows$estimate, row_names(rows))
}

#' @export
confint.counterveil <- function(object, parm, level = 0.95, ...) {
  rows <- tidy(object)
  if (!isTRUE(all.equal(rows$level[1], level))) {
    stop("the intervals of this result have level ", rows$level[1], call. = FALSE)
  }
  matrix(c(rows$conf.low, rows$conf.high),
    ncol = 2,
    dimnames = list(row_names(rows), paste(100 * c((1 - level) / 2, (1 + level) / 2), "%"))
  )
}

# What tells the rows apart: the first column of texts that are all different, else the term.
row_names <- function(rows) {
  texts <- Filter(function(column) is.character(column) && !anyDuplicated(column), as.list(rows))
  if (length(texts)) texts[[1]] else make.unique(as.character(rows$term))
}

#' @export
plot.counterveil <- function(x, ...) print(autoplot_counterveil(x))

autoplot_counterveil <- function(object, ...) {
  if (!requireNamespace("ggplot2", quietly = TRUE)) stop("plots need the package ggplot2", call. = FALSE)
  # Columns of the data, not variables of this function.
  estimate <- conf.low <- conf.high <- name <- NULL
  rows <- as.data.frame(tidy(object))
  rows$name <- factor(row_names(rows), rev(row_names(rows)))
  ggplot2::ggplot(rows, ggplot2::aes(x = estimate, y = name)) +
    ggplot2::geom_vline(xintercept = 0, linetype = "dashed") +
    ggplot2::geom_errorbarh(ggplot2::aes(xmin = conf.low, xmax = conf.high), height = 0.2) +
    ggplot2::geom_point() +
    ggplot2::labs(x = "effect, with its interval", y = NULL)
}

autoplot.counterveil <- autoplot_counterveil
