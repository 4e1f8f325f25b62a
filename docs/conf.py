"""How Sphinx builds the documentation: ``python -m sphinx -W -n docs build/docs``."""
from __future__ import annotations

import sys
from pathlib import Path

from sphinx import addnodes

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]

import lazyarray  # noqa: E402  from the path above

project = "lazyarray"
author = "The lazyarray developers"
copyright = author
version = release = lazyarray.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.intersphinx", "sphinx.ext.napoleon", "sphinx.ext.viewcode",
              "sphinx_copybutton", "figures", "gallery"]
exclude_patterns = ["_build"]

# The other projects' own inventories, and where there is no network the names that are used here, in `_inventories`.
intersphinx_mapping = {
    "numpy": ("https://numpy.org/doc/stable/", (None, "_inventories/numpy.inv")),
    "cupy": ("https://docs.cupy.dev/en/stable/", (None, "_inventories/cupy.inv")),
    "scipy": ("https://docs.scipy.org/doc/scipy/", (None, "_inventories/scipy.inv")),
}
intersphinx_timeout = 5

# The button copies the input alone: neither prompts nor results.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# Docstrings put the names of parameters and of functions between single backticks: what is ours becomes a link, and
# the rest is set as code.
default_role = "py:obj"
nitpick_ignore_regex = [("py:obj", r".*"), ("py:class", r"(?!lazyarray\.).*|lazyarray\.settings\.options\.Scope")]

autodoc_typehints = "none"              # the docstrings say more than the annotations
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "lazyarray"
html_static_path = ["_static"]
html_css_files = ["lazyarray.css"]
html_show_sourcelink = False
html_copy_source = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


def _by_short_names(app, doctree):
    """Let the pages with the source link back: to all of a module by one prefix, that of what is documented first."""
    for node in doctree.findall(addnodes.desc_signature):
        name = f"lazyarray.{node.get('fullname')}"
        if (node.get("module") or "").startswith("lazyarray.") and name not in node["ids"]:
            node["ids"].append(name)


def setup(app):
    app.connect("doctree-read", _by_short_names)
