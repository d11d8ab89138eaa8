#' @export
print.counterveil <- function(x, ...) {
  text <- reticulate::py_str(x$value)
  cat(sub("result.full(), or --report FILE", "summary(result), or cv_report(result, FILE)", text, fixed = TRUE), "\n", sep = "")
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
  if (inherits(object, "cv_survival_result")) survival_plot(object) else forest_plot(object)
}

forest_plot <- function(object) {
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

# Both arms' curves with intervals, bands and the numbers at risk.
survival_plot <- function(object) {
  time <- estimate <- low <- high <- band_low <- band_high <- arm <- NULL
  drawn <- jsonlite::fromJSON(reticulate::py_to_r(python()$helper$curves(object$value)))
  curves <- drawn$curves
  curves$arm <- factor(curves$arm, drawn$arms)
  share <- c("estimate", "low", "high", "band_low", "band_high")
  curves[share] <- lapply(curves[share], function(x) pmin(pmax(x, 0), 1))
  horizon <- max(curves$time)
  colours <- stats::setNames(c("#1b5e93", "#b8541e"), drawn$arms)
  note <- sprintf(
    "%g%% intervals (dark) and bands that hold at all times (light), privacy noise included; spent: %s.",
    100 * drawn$level, drawn$spent
  )
  ggplot2::ggplot(curves, ggplot2::aes(x = time, y = estimate, colour = arm, fill = arm)) +
    ggplot2::geom_ribbon(ggplot2::aes(ymin = band_low, ymax = band_high), alpha = 0.15, colour = NA) +
    ggplot2::geom_ribbon(ggplot2::aes(ymin = low, ymax = high), alpha = 0.3, colour = NA) +
    ggplot2::geom_line(ggplot2::aes(linetype = arm), linewidth = 0.8) +
    ggplot2::scale_colour_manual(values = colours, name = NULL) +
    ggplot2::scale_fill_manual(values = colours, name = NULL) +
    ggplot2::scale_linetype_manual(values = c("solid", "dashed"), name = NULL) +
    ggplot2::scale_x_continuous(breaks = c(drawn$risk$time, horizon), labels = c(drawn$risk$label, horizon)) +
    ggplot2::coord_cartesian(ylim = c(0, 1)) +
    ggplot2::labs(
      title = if (drawn$simulated) "SIMULATED, NOT A PRIVATE RELEASE",
      x = sprintf("%s; below, people at risk: %s (released, with noise)", drawn$time, paste(drawn$arms, collapse = ", ")),
      y = paste("probability of being free of", drawn$event), caption = note
    ) +
    ggplot2::theme_minimal() +
    ggplot2::theme(legend.position = "top")
}

autoplot.counterveil <- autoplot_counterveil
