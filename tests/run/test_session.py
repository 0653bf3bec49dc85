"""A session is one call of the command: checked like a config, and told again where the run is to be continued."""

import shlex

import pytest

from muzero_jax.apps.commands import parser
from muzero_jax.run.session import Session, flags_to_resume, validate


@pytest.mark.parametrize(
    "given, flag",
    [
        ({"checkpoint_minutes": -1.0}, "--checkpoint-minutes is -1.0"),
        ({"devices": 0}, "--devices is 0"),
        ({"distributed": True}, "--run-dir"),
        ({"distributed": True, "run_dir": "x", "profile": True}, "--profile"),
        ({"together": True}, "--seeds"),
        ({"together": True, "seeds": 2, "wandb": True}, "--wandb"),
        ({"config": "x.json", "resume": True}, "--config"),
        ({"resume": True, "overwrite": True}, "--overwrite"),
        ({"autotune": True, "resume": True}, "--autotune"),
    ],
)
def test_a_session_that_cannot_be_is_refused_and_the_flag_is_named(given, flag):
    assert validate(Session()) == Session()
    with pytest.raises(ValueError, match=flag):
        validate(Session(**given))


def test_the_flags_to_resume_make_the_same_session_without_what_was_for_one_call():
    lasting = {"device": "cpu", "devices": 2, "checkpoint_minutes": 0.5, "tensorboard": False}
    flags = flags_to_resume(Session(run_dir="x", overwrite=True, autotune=True, profile=True, **lasting))
    assert parser.convert(Session, parser.split(shlex.split(flags), Session)) == Session(resume=True, **lasting)
