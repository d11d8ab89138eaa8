#' @export
cv_publish <- function(session, ...) {
  ask(session$value$publish, as.list(c(...)))
  invisible(session)
}
