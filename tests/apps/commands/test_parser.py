"""The reader of command lines: every way to write a flag, and what becomes of its words."""

import pytest

from muzero_jax.apps.commands import parser
from muzero_jax.run.session import Session
from muzero_jax.storage.config import Config
from muzero_jax.storage.fields import fields_of


@pytest.mark.parametrize(
    "line, given",
    [
        ("--minutes=3", {"minutes": "3"}),
        ("--self_play.num_envs 4", {"self_play.num_envs": "4"}),
        ("--no-tensorboard --replay.no-symmetries", {"tensorboard": False, "replay.symmetries": False}),
        ("--evaluation.mcts-simulations 1 2", {"evaluation.mcts_simulations": ["1", "2"]}),
        ("--network.options a=1 --network.options b=2", {"network.options": ["a=1", "b=2"]}),
        ("--vary a 1 2 --vary b 3", {"vary": [["a", "1", "2"], ["b", "3"]]}),
        ("--lr 1e-3 --network net.py", {"optimiser.learning_rate": "1e-3", "network.file": "net.py"}),
        ("--seed 1 --seed 2", {"seed": "2"}),
        ("--optimiser.weight-decay -1", {"optimiser.weight_decay": "-1"}),
        ("-h", {parser.HELP: True}),
    ],
)
def test_a_line_gives_fields_their_texts(line, given):
    assert parser.split(line.split(), Config, Session) == given


def test_what_is_typed_again_means_the_same():
    for field in fields_of(Config):
        text = {bool: False}.get(field.kind, ["1", "2"] if str(field.kind).startswith("tuple") else "text")
        assert parser.split(parser.typed_again({field.name: text}), Config) == {field.name: text}


@pytest.mark.parametrize("line", ["stray", "--resume runs/x", "--minutes 3 4", "--minutes", "--no-minutes"])
def test_a_word_that_belongs_to_no_flag_is_refused(line):
    with pytest.raises(ValueError):
        parser.split(line.split(), Config, Session)
