# What the cells of an R column are, and how they reach Python.
#
# A class of R may store something else than it shows: the doubles of an integer64 are the bits of whole numbers, and
# a span of time is in units that R chose from its values. So a column is read by its class, and an unknown class is
# refused where a study needs that column.

# Classes that add words to plain cells and change none of them.
WRAPPERS <- c(
  "AsIs", "haven_labelled_spss", "haven_labelled", "labelled", "vctrs_vctr",
  "double", "integer", "numeric", "character", "logical"
)

# Columns of a data frame, tibble or the like as numbers, whole numbers, texts, or the refusal of their class.
to_columns <- function(data) {
  data <- as.list(as.data.frame(data, stringsAsFactors = FALSE))
  read <- Map(read_cells, unname(data), names(data))
  called(python()$helper$columns, list(as.list(names(data)), unname(read)))
}

# One column, by its class: its kind, its cells and the places of missing texts, counted from 0.
read_cells <- function(cells, name) {
  switch(class_of(cells),
    text = texts(as.character(without_missing_codes(cells))),
    number = numbers(without_missing_codes(cells)),
    factor = texts(as.character(cells)),
    integer64 = list(kind = "integer64", cells = bytes(cells)),
    date = texts(format(cells, "%Y-%m-%d")),
    moment = texts(moment_texts(cells)),
    seconds = numbers(cells),
    days = numbers(cells),
    units = refused(
      cells, paste("difftime in", units(cells)),
      sprintf("name the unit, e.g. data$%s <- as.numeric(data$%s, units = \"days\")", name, name)
    ),
    refused(
      cells, class(structure(unclass(cells), class = setdiff(oldClass(cells), "AsIs"))),
      sprintf("convert it to numbers or texts, e.g. data$%s <- as.numeric(as.character(data$%s))", name, name)
    )
  )
}

# What a vector holds, in one word; "other" where its class or its type is unknown.
class_of <- function(x) {
  classes <- paste(setdiff(oldClass(x), WRAPPERS), collapse = " ")
  known <- switch(classes,
    "factor" = ,
    "ordered factor" = "factor",
    "Date" = ,
    "IDate Date" = "date",
    "POSIXct POSIXt" = ,
    "POSIXlt POSIXt" = "moment",
    "hms difftime" = ,
    "ITime" = "seconds",
    "difftime" = if (identical(attr(x, "units"), "days")) "days" else "units",
    "integer64" = "integer64",
    ""
  )
  if (known == "moment" && is.list(x)) {
    return(known)
  }
  if (isS4(x) || NCOL(x) != 1) {
    return("other")
  }
  if (classes != "") {
    return(if (known == "") "other" else known)
  }
  switch(typeof(x),
    character = "text",
    logical = ,
    integer = ,
    double = "number",
    "other"
  )
}

numbers <- function(cells) list(kind = "number", cells = bytes(cells))

# The bits of doubles: arrays would need a reticulate that knows the numpy of that Python.
bytes <- function(cells) writeBin(as.double(unclass(cells)), raw(), endian = "little")

texts <- function(cells) {
  gone <- is.na(cells)
  cells[gone] <- ""
  cells <- enc2utf8(as.vector(cells))
  # Reticulate makes a list of several texts, and a text of one.
  list(kind = "text", cells = if (length(cells) == 1) list(cells) else cells, missing = as.list(which(gone) - 1L))
}

refused <- function(cells, class, fix) {
  list(kind = "refused", class = paste(class, collapse = ", "), fix = fix, rows = NROW(cells))
}

# In UTC and cell by cell: R's own texts leave out the time where every row of the column is midnight.
moment_texts <- function(cells) {
  sub("\\.000000$", "", format(as.POSIXct(cells), "%Y-%m-%d %H:%M:%OS6", tz = "UTC"))
}

# The plain cells of a column; codes that SPSS declares as missing are missing.
without_missing_codes <- function(cells) {
  codes <- attr(cells, "na_values", exact = TRUE)
  range <- attr(cells, "na_range", exact = TRUE)
  cells <- as.vector(unclass(cells))
  gone <- cells %in% codes
  if (!is.null(range)) gone <- gone | (!is.na(cells) & cells >= range[1] & cells <= range[2])
  cells[gone] <- NA
  cells
}
