"""The documentation says of each library what the tests found."""
from __future__ import annotations

from .records import all_records
from .table import in_page, table


def test_the_page_has_the_table_that_the_records_make():
    assert in_page() == table(all_records()), "run `python -m tests.consumers --write`"


def test_calls_are_told_apart():
    calls = [(record.library, record.call) for record in all_records()]
    assert len(set(calls)) == len(calls)
