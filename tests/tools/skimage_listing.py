"""Write ``lazyarray/integrations/skimage/backend.toml``: the functions that spatch asks lazyarray for.

scikit-image is needed, and no GPU::

    PYTHONPATH=. python tests/tools/skimage_listing.py > lazyarray/integrations/skimage/backend.toml
"""
from __future__ import annotations

from lazyarray.integrations.skimage import backend


def listing() -> str:
    """What ``backend.toml`` holds."""
    lines = [
        "# Read by spatch. Written by `python tests/tools/skimage_listing.py`, not by hand.",
        'name = "lazyarray"',
        'primary_types = ["lazyarray:LazyNdarray", "cupy:ndarray"]',
        'secondary_types = ["numpy:ndarray", "lazyarray:LazyScalar"]',
        "requires_opt_in = false",
        "",
        "[functions.defaults]",
        f'should_run = "{backend.__name__}:should_run"',
        "uses_context = true",
        'additional_docs = "Lazy and CuPy arrays stay on the GPU: cuCIM computes, and the result has their type."',
    ]
    for name in backend.information().supported_functions:
        path = name.removeprefix("skimage.").replace(":", ".")
        lines += ["", f'[functions."{name}"]', f'function = "{backend.__name__}:implementations.{path}"']
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(listing(), end="")
