"""A session is one call of the command: checked like a config, and told again where the run is to be continued."""

import shlex

import pytest

from muzero_jax.apps.commands import parser
from muzero_jax.run.session import Session, flags_to_resume, validate


def test_what_belongs_to_a_session_is_checked_like_a_field_of_the_run():
    assert validate(Session()) == Session()
    with pytest.raises(ValueError, match="^--checkpoint-minutes is -1.0, but must be"):
        validate(Session(checkpoint_minutes=-1.0))
    with pytest.raises(ValueError, match="^--devices is 0, but must be"):
        validate(Session(devices=0))


def test_a_resumed_run_keeps_its_sizes():
    with pytest.raises(ValueError, match="leave it out with --resume"):
        validate(Session(autotune=True, resume=True))


def test_what_is_said_for_one_call_is_not_said_for_the_next():
    session = Session(run_dir="x", overwrite=True, autotune=True, autotune_minutes=9.0, profile=True)
    assert flags_to_resume(session) == "--resume"


def test_the_flags_to_resume_make_the_same_session():
    session = Session(
        resume=True, device="cpu", devices=2, checkpoint_minutes=0.5, tensorboard=False, compilation_cache=False
    )
    assert parser.convert(Session, parser.split(shlex.split(flags_to_resume(session)), Session)) == session
