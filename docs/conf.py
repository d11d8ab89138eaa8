"""Settings of the documentation site, which `make docs` builds."""

import os

from counterveil import __version__

project = "Counterveil"
author = "The Counterveil founders"
copyright = "The Counterveil founders, Apache-2.0"
version = release = __version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "tools.site.mathml",
    "tools.site.names",
]
html_math_renderer = "mathml"
nitpicky = True
# Docstrings name many things in code that have no page; `tools.check_docstrings` looks for names that do not exist.
nitpick_ignore_regex = [("py:.*", ".*")]
# `cv.ate` in a docstring is a link where it has a page, and code elsewhere.
default_role = "py:obj"
# Types stand with the parameters, and pages list members themselves.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = False
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_attributes_as_param_list = True
# Classes of the package among types are links; `tools.site.names` says which.
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
# Quotes and dashes stay as typed: they stand in formulas and options.
smartquotes = False

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_dmath_allow_digits = False
myst_dmath_allow_space = False
myst_heading_anchors = 4

# Every notebook runs, in an empty folder, and fails the build if a cell does.
nb_execution_mode = "cache"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
# Shown as it was kept where its data are not at hand.
nb_execution_excludepatterns = [] if os.environ.get("COUNTERVEIL_DATA") else ["tutorials/nhefs.ipynb"]
nb_merge_streams = True

html_theme = "pydata_sphinx_theme"
html_title = "Counterveil"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_search_summary = False
html_copy_source = False
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "show_toc_level": 2,
    "navigation_depth": 3,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
