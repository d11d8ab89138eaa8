"""Effects as a function of covariates, or at a finite set of queries; everything about a person is private."""
