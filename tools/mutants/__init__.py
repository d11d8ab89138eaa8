"""Plants a kept list of faults in the package, one at a time, and reports which of them no test notices."""
