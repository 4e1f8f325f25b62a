"""The parts in C: without a compiler lazyarray is installed without them, and works, at a higher price for a call."""
import glob

from setuptools import Extension, setup

SOURCES = ("lazyarray/_recording.c", "lazyarray/_fetching.c", "lazyarray/_sending.c", "lazyarray/devices/_launch.c",
           "lazyarray/devices/_staging.c")
SHARED = ["lazyarray/_slots.h", "lazyarray/_listening.h"]

setup(ext_modules=[
    Extension(source[:-2].replace("/", "."), [source], optional=True,
              depends=[*glob.glob(source[:-2] + "_*.h"), *SHARED])
    for source in SOURCES
])
