"""Runs of the tiny program, as in the tests of the host."""

from tests.run.conftest import session  # noqa: F401
