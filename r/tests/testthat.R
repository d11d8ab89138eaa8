library(testthat)
library(counterveil)
test_check("counterveil")
