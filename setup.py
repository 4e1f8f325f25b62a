"""What setup.cfg can't say: the parts in C, and the README as a package index shows it.

Without a compiler lazyarray is installed without the parts in C, and works, at a higher price for a call.
"""
import configparser
import glob
import re
import sys
from pathlib import Path

import numpy
from setuptools import Extension, setup

FOLDER = "lazyarray/_native"
NAMES = ("recording", "small_copies", "launch", "staging")
# Without symbols for a debugger a wheel is a fifth as large.
LINK = ["-Wl,-s"] if sys.platform == "linux" else []


def description():
    """The README. Its links into the repository become links into the documentation, which every index can follow."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read("setup.cfg", encoding="utf-8")
    urls = dict(line.split(" = ", 1) for line in settings["metadata"]["project_urls"].strip().splitlines())
    pages = urls["Documentation"]
    text = Path("README.rst").read_text(encoding="utf-8")
    text = re.sub(r"<docs/([\w/]+)\.rst>", rf"<{pages}\1.html>", text.replace("<CHANGELOG.rst>", "<docs/changelog.rst>"))
    return text.replace(" docs/_static/", f" {pages}_static/")


setup(
    long_description=description(),
    long_description_content_type="text/x-rst",
    ext_modules=[
        Extension(f"{FOLDER}/{name}".replace("/", "."), [f"{FOLDER}/{name}.c"], optional=True, extra_link_args=LINK,
                  include_dirs=[numpy.get_include()], depends=glob.glob(f"{FOLDER}/*.h"))
        for name in NAMES
    ])
