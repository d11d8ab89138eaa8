"""Every method and question at two sizes: CPU, memory and growth, compared with the ratios that are kept."""
