# The Python package, found when it is first needed.
state <- new.env(parent = emptyenv())

python <- function() {
  if (is.null(state$package)) {
    if (!reticulate::py_module_available("counterveil")) {
      stop("The Python package 'counterveil' was not found. Name its Python with ",
        "reticulate::use_virtualenv() or RETICULATE_PYTHON.",
        call. = FALSE
      )
    }
    state$package <- reticulate::import("counterveil", convert = FALSE)
    place <- system.file("python", package = "counterveil")
    state$helper <- reticulate::import_from_path("counterveil_r", place, convert = FALSE)
  }
  state
}

# Call a function of the package; a refusal becomes a condition whose class is its code.
ask <- function(fun, args = list(), named = list()) {
  helper <- python()$helper
  named <- named[!vapply(named, is.null, logical(1))]
  found <- helper$call(fun, lapply(args, to_python), do.call(reticulate::dict, lapply(named, to_python)))
  if (reticulate::py_to_r(helper$dict_has(found, "code"))) {
    code <- reticulate::py_to_r(found[["code"]])
    stop(structure(
      class = c(code, "counterveil_error", "error", "condition"),
      list(message = reticulate::py_to_r(found[["text"]]), call = NULL, code = code)
    ))
  }
  found[["value"]]
}

# Whole numbers are integers in Python; named lists dictionaries; other vectors lists.
to_python <- function(x) {
  if (inherits(x, c("python.builtin.object", "cv_study", "cv_session"))) {
    return(if (inherits(x, "python.builtin.object")) x else x$value)
  }
  if (is.data.frame(x)) {
    return(to_columns(x))
  }
  if (is.factor(x)) x <- as.character(x)
  if (is.list(x)) {
    x <- lapply(x, to_python)
    return(if (is.null(names(x))) reticulate::r_to_py(x) else do.call(reticulate::dict, x))
  }
  if (is.double(x) && all(is.finite(x)) && all(x == round(x)) && all(abs(x) < 2^31)) x <- as.integer(x)
  reticulate::r_to_py(if (length(x) > 1) as.list(unname(x)) else x)
}

# Columns of a data frame, tibble or the like, as plain numbers and texts.
to_columns <- function(data) {
  data <- as.list(as.data.frame(data, stringsAsFactors = FALSE))
  missing <- list()
  for (name in names(data)) {
    cells <- data[[name]]
    if (is.factor(cells) || inherits(cells, c("Date", "POSIXt"))) cells <- as.character(cells)
    cells <- as.vector(unclass(cells))
    if (is.character(cells)) {
      gone <- which(is.na(cells))
      cells[gone] <- ""
      missing[[name]] <- as.list(gone - 1L)
    } else {
      cells <- as.double(cells)
    }
    data[[name]] <- if (length(cells) == 1) list(cells) else cells
  }
  values <- do.call(reticulate::dict, data)
  python()$helper$columns(values, if (length(missing)) do.call(reticulate::dict, missing) else reticulate::dict())
}
