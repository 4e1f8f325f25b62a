"""Other libraries, one file or folder each. A library's file is imported once the library has been, and not before.

To make lazy arrays work with another library, copy a small file, such as ``jax.py`` or ``polars.py``. Each has the same
parts:

1. A docstring: what the library does with lazy arrays, and how it recognises them.
2. Tables of the library's functions that are replaced, if it has no place to register another type of array at.
3. ``register(module)``, which is called with a module of the library right after its import. It registers lazy arrays
   in the way that the library offers, or else puts functions of ours in place (`scalars.put_in_place`, with
   `scalars.opening` or `compiled.on_ndarrays` to convert the arguments).

Then name the library in `on_import`'s table, and test it in ``tests/integrations``. If the library is not found in the
form that ``register`` expects, its import goes on and the logger ``lazyarray`` says so.

A library whose functions have counterparts on the device has a folder, such as ``scipy`` and ``skimage``, with a table
``TWINS`` in ``twins.py`` (`routing.twin.Twin` says what an entry is) that is named in `routing.twin.TABLES`. It is in
force while somebody has it enabled (`lazyarray.enable`). One that is enabled otherwise than function by function has
``install()`` and ``remove()``, and is named in `routing.twin.WHOLE`: ``monai``.
"""
