"""Print what ``backend.toml`` should hold."""
from __future__ import annotations

from lazyarray.integrations.skimage_backend import toml

if __name__ == "__main__":
    print(toml(), end="")
