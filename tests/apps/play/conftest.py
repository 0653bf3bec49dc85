"""What the tests of play share."""

import pytest

from tests.reference.play import save_untrained_run


@pytest.fixture(scope="session")
def untrained_run(tmp_path_factory):
    """The directory of a run of tic-tac-toe that learned nothing."""
    return save_untrained_run(tmp_path_factory.mktemp("runs") / "untrained", "tic_tac_toe")
