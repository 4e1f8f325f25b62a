"""Check in ten lines that a function of another library works with lazy arrays.

``check`` runs a function with NumPy arrays and with lazy arrays, and compares values, dtypes, shapes, exceptions and
changes to the arguments. Hypothesis generates the arrays: any memory layout, current on the device, the host or both,
with and without an alias. Run it with Python or with pytest.
"""
import numpy as np
from hypothesis import given, settings

from lazyarray.testing import check, specimens


def normalise(image, out=None):
    """Somebody else's function: shift and scale to the range 0 to 1."""
    low, high = image.min(), image.max()
    out = np.empty_like(image) if out is None else out
    out[...] = (image - low) / (high - low) if high > low else 0
    return out


# A GPU may take subnormal numbers for zero: there are none here, nor in the squares.
images = specimens(dtype="f4", shape=(3, 4), elements={"min_value": 1, "max_value": 255})


@settings(max_examples=50, deadline=None)
@given(images)
def test_normalise(image):
    check(normalise, image)
    check(normalise, image, out=image)                         # in place: the argument must change as NumPy's does
    check.using(lazy=True, materialisations=0)(np.square, image)  # ... and this one never leaves the device


if __name__ == "__main__":
    test_normalise()
    print("normalise() does the same with lazy arrays as with NumPy arrays")
