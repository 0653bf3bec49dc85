"""A `config.json` of anybody's: a config, or one sentence that names the file; nothing that it names is run."""

from muzero_jax import agent as agents
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory, validation
from tests.fuzz import fuzzing
from tests.fuzz.configs_of_strangers import TEXTS, assert_nothing_ran, lay_traps
from tests.fuzz.fuzzing import refusal

FOUND = [
    b'{"init_from": "~no-such-user/x"}',
    b'{"network": {"file": "\\ud800.py"}}',
    b'{"env": "tic_tac_toe", "algorithm": {"file": "\\u001b[2J"}}',
    b'{"env": "a\\u0000.py"}',
    b'{"env": "%s", "network": {"file": "mine.py"}}' % (b"9" * 5000),
    b'{"env": "%s.py"}' % (b"x" * 5000),
]


@fuzzing.fuzzed(TEXTS, found=FOUND)
def test_config_json(text, folder):
    if not (folder / "mine.py").exists():
        lay_traps(folder)
    (folder / configs.FILE).write_bytes(text)
    config, _ = refusal(lambda: configs.inspect(folder), folder / configs.FILE)
    refusal(lambda: configs.load(folder), folder / configs.FILE)
    if config is not None:
        if config.own_files:
            _, refused = refusal(lambda: agents.load_agent(folder))
            assert refused
        assert configs.from_json(configs.to_json(config)) == config
        assert isinstance(hash(config), int) and config.frames_to_learn > 0 and config.simulations_per_move > 0
        assert configs.describe(config) and run_directory.default(config) and config.env_name is not None
        refusal(lambda: validation.validate(config))
        refusal(lambda: configs.with_absolute_paths(config))
    refusal(lambda: run_directory.check(folder, overwrite=True, sources=config.sources if config else ()))
    assert (folder / configs.FILE).read_bytes() == text
    assert_nothing_ran(folder)
