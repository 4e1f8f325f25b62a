"""The parts in C: without a compiler lazyarray is installed without them, and works, at a higher price for a call."""
import glob

from setuptools import Extension, setup

SOURCES = ("lazyarray/_recording.c", "lazyarray/_fetching.c", "lazyarray/devices/_launch.c",
           "lazyarray/devices/_staging.c")

setup(ext_modules=[
    Extension(source[:-2].replace("/", "."), [source], optional=True,
              depends=[*glob.glob(source[:-2] + "_*.h"), "lazyarray/_slots.h"])
    for source in SOURCES
])
