"""Several sites, one answer: messages, site, coordinator; each site keeps its records and its budget."""
