"""The documentation builds without a warning, names what is public, and its code runs."""
from __future__ import annotations

import configparser
import doctest
import html
import json
import os
import re
import subprocess
import sys
import textwrap
import urllib.parse
import xml.etree.ElementTree as ElementTree
from importlib import metadata
from pathlib import Path

import pytest
from test_house import FLOORS

import lazyarray
from lazyarray import testing
from lazyarray.functions import tables
from lazyarray.numpy import creation
from lazyarray.settings.options import Options

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS) for path in DOCS.rglob("*.rst"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL

BLOCK = re.compile(r"^\.\. code-block:: python\n(?:[ ]+:.*\n)*\n((?:[ ]+.*\n|\n)+)", re.MULTILINE)
#: A comment at the top of a page: the libraries that its code needs.
NEEDS = re.compile(r"^\.\. needs: (.+)$", re.MULTILINE)
#: Another: the entry points of lazyarray's that others look for, so that it has to be installed.
NEEDS_INSTALLED = re.compile(r"^\.\. needs entry points: (\S+)$", re.MULTILINE)

#: Distribution -> the modules that it brings, where these have other names.
BROUGHT = {"scikit-image": ("skimage", "PIL")}


def text_of(page):
    return (DOCS / page).read_text()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("sphinx", reason="the extra `docs` brings Sphinx")
    for name in ("furo", "sphinx_copybutton"):
        pytest.importorskip(name, reason="the extra `docs` brings it")
    folder = tmp_path_factory.mktemp("docs")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-b", "html", "-d", folder / "trees", DOCS,
         folder / "html"],
        env={**os.environ, "LAZYARRAY_DEVICE": "simulated"}, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "html"


def test_every_page_is_built(built):
    assert all((built / page.with_suffix(".html")).is_file() for page in PAGES)


def test_links_lead_to_pages_and_places_that_exist(built):
    """Those from the pages with the source, too."""
    places = {}

    def is_there(page, link):
        path, _, place = html.unescape(link).partition("#")
        target = (page.parent / urllib.parse.unquote(path.partition("?")[0])).resolve() if path else page
        if target not in places and target.is_file():
            text = target.read_text(encoding="utf-8") if target.suffix == ".html" else ""
            places[target] = set(re.findall(r'\bid="([^"]+)"', text))
        return target in places and (not place or target.suffix != ".html" or place in places[target])

    dead = [f"{page.relative_to(built)}: {link}" for page in sorted(built.rglob("*.html"))
            for link in set(re.findall(r'href="([^"]+)"', page.read_text(encoding="utf-8")))
            if not re.match("[a-z]+:", link) and not is_there(page, link)]
    assert not dead, "\n".join(dead)
    assert len(places) > 40


def test_what_is_public_is_documented(built):
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((built / "objects.inv").read_bytes(), uri="")
    named = {name for kind in inventory.data.values() for name in kind}
    wanted = {f"lazyarray.{name}" for name in lazyarray.__all__} | {
        f"lazyarray.testing.{name}" for name in testing.__all__ if not name.isupper()} | {
        f"lazyarray.devices.Device.{name}" for name in ("library", "name", "on", "synchronize", "xp")}
    assert sorted(wanted - named) == []
    page = (built / "api" / "options.html").read_text()
    assert [name for name in Options._fields if name not in page] == []


def test_code_can_be_copied_and_read_and_names_of_numpy_are_links(built):
    page = (built / "api" / "arrays.html").read_text()
    assert 'href="https://numpy.org/doc/stable/reference/generated/numpy.ndarray.html#numpy.ndarray"' in page
    assert 'href="../_modules/lazyarray/dispatch/convert.html#asarray"' in page
    assert "copybutton.js" in page
    assert 'href="https://docs.cupy.dev/en/stable/' in "".join(
        (built / page.with_suffix(".html")).read_text() for page in PAGES)


def test_the_creation_functions_are_listed():
    assert sorted(re.findall(r":obj:`~numpy\.(\w+)`", text_of("api/numpy.rst"))) == sorted(creation.FUNCTIONS)


def test_every_example_is_in_the_gallery_with_the_picture_that_it_draws():
    listed = set(re.findall(r"^   ([\w.]+): ", text_of("gallery.rst"), re.MULTILINE))
    examples = {path.name: path.read_text() for path in (ROOT / "examples").iterdir()
                if path.suffix in (".py", ".ipynb")}
    assert listed == set(examples)
    drawn = {Path(name).stem for name, text in examples.items() if '"--output"' in text or name.endswith(".ipynb")}
    assert {path.stem for path in (DOCS / "_static" / "gallery").iterdir()} == drawn


@pytest.mark.parametrize("page", ["tutorial.rst", "gallery.rst"])
def test_who_follows_a_page_has_what_it_imports(page):
    """The page's `pip install` lines bring it, by lazyarray's extras or by name."""
    extras = configparser.ConfigParser(interpolation=None)
    extras.read(ROOT / "setup.cfg")
    text = text_of(page)
    named = re.findall(r"^    pip install ([\w-]+)", text, re.MULTILINE)
    for group in re.findall(r"pip install 'lazy-ndarray\[([\w,]+)\]'", text):
        for extra in group.split(","):
            named += re.findall(r"^[\w-]+", extras["options.extras_require"][extra], re.MULTILINE)
    brought = {module for name in named for module in BROUGHT.get(name, (name,))} | {
        "numpy", "lazyarray", *sys.stdlib_module_names}
    if page == "gallery.rst":
        brought |= {path.stem for path in (ROOT / "examples").iterdir()}
        texts = [path.read_text() for path in (ROOT / "examples").glob("*.py")] + [
            line for path in (ROOT / "examples").glob("*.ipynb") for cell in json.loads(path.read_text())["cells"]
            if cell["cell_type"] == "code" for line in cell["source"]]
    else:
        texts = [text.replace(">>> ", "")]
    imported = {name for code in texts for name in re.findall(r"^ *(?:from|import) (\w+)", code, re.MULTILINE)}
    assert "skimage" in imported and sorted(imported - brought) == []


def test_names_of_other_libraries_on_pages_are_links_without_a_network_too():
    known = {line.split()[0] for path in (DOCS / "_inventories").iterdir() for line in path.read_text().splitlines()}
    named = {name for page in PAGES
             for name in re.findall(r"(?<!`)`~?((?:numpy|cupyx?|scipy)\.[\w.]+)`(?!`)", text_of(page))}
    assert named and sorted(named - known) == []


def test_no_page_is_left_out_of_the_contents():
    listed = {(page.parent / name).as_posix() for page in PAGES
              for tree in re.findall(r"^\.\. toctree::\n((?:[ ]+.*\n|\n)+)", text_of(page), re.MULTILINE)
              for name in re.findall(r"^ +([\w/]+)$", tree, re.MULTILINE)}
    assert {page.with_suffix("").as_posix() for page in PAGES} - {"index"} == listed


def test_the_terms_of_the_glossary_are_short():
    terms = re.findall(r"^   (\S.*)$", text_of("glossary.rst"), re.MULTILINE)
    assert len(terms) > 15 and [term for term in terms if len(term.split()) > 3] == []


def test_the_tables_of_the_page_on_contributing_exist():
    named = re.findall(r"^   \* - ``([A-Z_]+)``$", text_of("contributing.rst"), re.MULTILINE)
    assert named and [name for name in named if not hasattr(tables, name)] == []


@pytest.mark.parametrize("page", [      # one says where arrays lie, one writes to a device array on the current device
    pytest.param(page, marks=[pytest.mark.together] * (page.stem in ("several_gpus", "what_materialises")))
    for page in PAGES], ids=str)
@pytest.mark.usefixtures("as_for_users")
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    text = text_of(page)
    for name in re.findall(r"[\w.]+", " ".join(NEEDS.findall(text))):
        pytest.importorskip(name)
    for group in NEEDS_INSTALLED.findall(text):
        if not metadata.entry_points(group=group, name="lazyarray"):
            pytest.skip("lazyarray is on the path, but not installed")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    parser, runner, report = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=FLAGS), []
    start = 0
    for match in [*BLOCK.finditer(text), None]:
        stop = len(text) if match is None else match.start()
        # Blank lines in place of what comes before, so that a failure names its line.
        said = "\n" * text[:start].count("\n") + text[start:stop]
        runner.run(test := parser.get_doctest(said, names, str(page), str(DOCS / page), 0), out=report.append,
                   clear_globs=False)
        assert not runner.failures, "".join(report)
        names.update(test.globs)
        if match is not None:
            line = text[: match.start(1)].count("\n")
            exec(compile("\n" * line + textwrap.dedent(match.group(1)), str(DOCS / page), "exec"), names)
            start = match.end()


def test_the_files_that_pages_name_exist():
    named = {(name, page) for page in PAGES
             for name in re.findall(r"``((?:examples|tests|benchmarks|lazyarray)/[\w./-]+)``", text_of(page))}
    assert named
    assert sorted((str(page), name) for name, page in named if not (ROOT / name.rstrip("/")).exists()) == []


def test_the_files_of_the_architecture_page_exist():
    packages = "|".join(set().union(*FLOORS))
    named = set(re.findall(rf"``((?:{packages})/[\w./]*)``", text_of("architecture.rst")))
    assert len(named) > 40
    assert sorted(name for name in named if not (ROOT / "lazyarray" / name).exists()) == []


def test_the_picture_of_the_packages_is_true():
    """Its rows, from the ground up, are the floors that `test_house` holds the imports to."""
    rows = {}
    for text in ElementTree.parse(DOCS / "_static" / "floors.svg").iter("{http://www.w3.org/2000/svg}text"):
        for part in text:
            if part.get("class") == "name":
                rows.setdefault(float(text.get("y")), set()).add(part.text)
    assert [rows[height] for height in sorted(rows, reverse=True)] == FLOORS


def test_the_variables_of_the_environment_are_listed():
    read = {name for path in (ROOT / "lazyarray").rglob("*.py")
            for name in re.findall(r"""environ(?:\.get\(|\[)\s*["'](LAZYARRAY_\w+)""", path.read_text())}
    listed = set(re.findall(r"``(LAZYARRAY_\w+)``", text_of("api/command.rst")))
    assert listed == read
