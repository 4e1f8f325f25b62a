"""The parts in C: without a compiler lazyarray is installed without them, and works, at a higher price for a call."""
import glob

from setuptools import Extension, setup

FOLDER = "lazyarray/_native"
NAMES = ("recording", "small_copies", "launch", "staging")

setup(ext_modules=[
    Extension(f"{FOLDER}/{name}".replace("/", "."), [f"{FOLDER}/{name}.c"], optional=True,
              depends=glob.glob(f"{FOLDER}/*.h"))
    for name in NAMES
])
