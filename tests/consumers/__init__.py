"""Everything else that takes arrays: calls as a user makes them, with the table of them in docs/libraries.rst.

A file is a group of libraries, a test is one consumer::

    pandas = Library("pandas")

    @pandas("``Series(x)``", copies="each once")
    def test_series(x):
        import pandas as pd
        return pd.Series(x).describe()

`records.py` says what that means. The test makes the call on ndarrays and on lazy arrays, and compares. The table is
made by ``python -m tests.consumers --write`` after all calls did what they say; `test_table.py` holds the page to it.
"""
