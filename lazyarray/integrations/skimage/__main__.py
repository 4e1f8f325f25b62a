"""Print what ``backend.toml`` should hold."""
from __future__ import annotations

from lazyarray.integrations.skimage.backend import listing

if __name__ == "__main__":
    print(listing(), end="")
