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
  named <- named[!vapply(named, is.null, logical(1))]
  called(fun, lapply(args, to_python), lapply(named, to_python))
}

# The same with arguments that are Python's already, or plain lists.
called <- function(fun, args, named = list()) {
  helper <- python()$helper
  found <- helper$call(fun, args, do.call(reticulate::dict, named))
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
  if (is.null(x) || identical(class(x), "list")) {
    x <- lapply(x, to_python)
    return(if (is.null(names(x))) reticulate::r_to_py(x) else do.call(reticulate::dict, x))
  }
  x <- plain_argument(x)
  if (inherits(x, "python.builtin.object")) {
    return(x)
  }
  if (is.double(x) && all(is.finite(x)) && all(x == round(x)) && all(abs(x) < 2^31)) x <- as.integer(x)
  reticulate::r_to_py(if (length(x) > 1) as.list(unname(x)) else x)
}

# An argument by its class, as a column is read: labels and dates are texts, integer64 whole numbers.
plain_argument <- function(x) {
  switch(class_of(x),
    text = as.vector(unclass(x)),
    factor = as.character(x),
    number = as.vector(unclass(x)),
    integer64 = python()$helper$whole_numbers(bytes(x)),
    date = format(x, "%Y-%m-%d"),
    moment = moment_texts(x),
    seconds = ,
    days = as.double(unclass(x)),
    stop("an argument of class ", paste(class(x), collapse = ", "), " has no meaning here; ",
      "write numbers, texts, TRUE or FALSE, or a list of them",
      call. = FALSE
    )
  )
}
