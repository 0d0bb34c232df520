"""Examples: what the documentation shows is what happens."""

import doctest
import importlib

import hamdex
import pytest


@pytest.mark.parametrize("module", ["_dedup", "_evaluate", "_fingerprint"])
def test_examples_of_functions_come_out(module):
    outcome = doctest.testmod(importlib.import_module(f"hamdex.{module}"))
    assert outcome.attempted > 1 and outcome.failed == 0


def test_the_example_of_the_index_comes_out():
    parsed = doctest.DocTestParser().get_doctest(hamdex.Index.__doc__, {}, "Index", None, 0)
    assert len(parsed.examples) == 2
    assert doctest.DocTestRunner().run(parsed).failed == 0
