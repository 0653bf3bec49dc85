"""For tests in which a save fails: Orbax leaves coroutines behind, and Python complains whenever it collects them."""

import pytest

MARKS = [
    pytest.mark.usefixtures("collects_garbage"),
    pytest.mark.filterwarnings(
        "ignore:coroutine .* was never awaited", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
