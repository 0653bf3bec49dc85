"""A session is one call of the command: checked like a config, and told again where it is to be gone on with."""

import shlex

import pytest
import tyro

from muzero_jax.apps.commands.train_flags import Command
from muzero_jax.run.session import Session, flags_to_resume, validate
from muzero_jax.storage.config import Config


def test_what_belongs_to_a_session_is_checked_like_a_field_of_the_run():
    assert validate(Session()) == Session()
    with pytest.raises(ValueError, match="^--checkpoint-minutes is -1.0, but must not be negative$"):
        validate(Session(checkpoint_minutes=-1.0))
    with pytest.raises(ValueError, match="^--devices is 0, but must be positive$"):
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
    arguments = shlex.split(flags_to_resume(session))
    assert tyro.cli(Command, default=Command(Config(), Session()), args=arguments).session == session
