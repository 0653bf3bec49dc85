"""A trained agent as one file: the weights as safetensors, its config and the format's version in the metadata.

    agent:hex_5x5             an included agent, in muzero_jax/agents
    agent:some/x.safetensors  the user's own file

Unlike a pickle, the file runs no code when it is read. It only names the Python files of the user's own game, network
or algorithm, which are looked for next to it and run only if the user trusts them (`own.trust`).
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import safetensors
import safetensors.numpy

from muzero_jax.config import config_file
from muzero_jax.config.config import AGENT_PREFIX, Config
from muzero_jax.config.paths import with_files
from muzero_jax.own import trust
from muzero_jax.own.faults import shown
from muzero_jax.own.files import from_home, write_whole
from muzero_jax.own.trust import OWN_FILES_ALONE, Trust
from muzero_jax.storage import shapes
from muzero_jax.types import Params

SUFFIX = ".safetensors"
SHIPPED = Path(__file__).parent.parent / "agents"
"""The folder of the included agents."""
FORMAT = "muzero_jax agent"
FORMAT_VERSION = 1


class Stored(NamedTuple):
    """The contents of a file."""

    file: Path
    config: Config
    iteration: int  # of training, after which the agent was saved
    arrays: dict[str, np.ndarray]  # by their path in the params

    def params(self, abstract: Params) -> Params:
        """The weights in the structure of the network's `abstract` params; ValueError if it needs others."""
        leaves, structure = jax.tree_util.tree_flatten_with_path(abstract)
        wanted = {jax.tree_util.keystr(path): leaf for path, leaf in leaves}
        if found := shapes.difference(shapes.describe(self.arrays), shapes.describe(wanted)):
            raise ValueError(
                f"the network of {self.file} differs from the one that this version builds ({shown(found, 200)}); "
                "use the version that made it, or train the agent again and export it"
            )
        return jax.tree.unflatten(structure, [jax.device_put(self.arrays[name], jax.devices()[0]) for name in wanted])


def find(name: str) -> Path | None:
    """The path of the agent's file that a player's name stands for, existing or not; None for other players."""
    rest = name.removeprefix(AGENT_PREFIX)
    if rest.endswith(SUFFIX):
        return from_home(rest)
    return SHIPPED / f"{rest}{SUFFIX}" if name.startswith(AGENT_PREFIX) else None


def shipped() -> list[str]:
    """The names of the included agents."""
    return sorted(path.stem for path in SHIPPED.glob(f"*{SUFFIX}"))


def save(file: str | Path, config: Config, params: Params, *, iteration: int, card: str = "") -> None:
    """Writes an agent; `card` is the name of the text file next to it that describes its strength.

    Raises ValueError if the file cannot be written.
    """
    file = Path(file)
    leaves = jax.tree_util.tree_leaves_with_path(params)
    arrays = {jax.tree_util.keystr(path): np.asarray(leaf, order="C") for path, leaf in leaves}
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "name": file.stem,
        "card": card,
        "iteration": str(iteration),
        "config": config_file.to_json(without_folders(config)),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, safetensors.numpy.save(arrays, metadata))


def read(file: Path, trust_in: Trust = OWN_FILES_ALONE) -> Stored:
    """Reads an agent in order to build it.

    Raises ValueError if there is no such file, if this version cannot read it, or if it names a Python file that must
    not run (`own.trust`).
    """
    check_exists(file)
    try:
        with safetensors.safe_open(file, framework="numpy") as opened:
            metadata = opened.metadata() or {}
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  # it is no dict
    except Exception as error:  # also what NumPy raises for an unknown dtype or an impossible shape
        raise ValueError(f"{file} is damaged, or no safetensors file ({shown(error)}); fetch it again") from error
    if metadata.get("format") != FORMAT or metadata.get("format_version") != str(FORMAT_VERSION):
        raise ValueError(f"{file} holds no agent of this version of muzero_jax; export it again, or update muzero_jax")
    try:
        config = config_file.from_json(metadata.get("config", ""))
        iteration = int(metadata.get("iteration", ""))
    except ValueError as error:
        problem = shown(error, longest=300)
        raise ValueError(f"{file} cannot be loaded: {problem}; update muzero_jax, or export the agent again") from error
    config = _within(config, file.parent)
    trust.check(config.own_files, file, trust_in)
    return Stored(file, config, iteration, arrays)


def check_exists(file: Path) -> None:
    """Raises ValueError, which lists the included agents, if there is no such file."""
    if not file.is_file():
        what = f"agent {file.stem!r}" if file.parent == SHIPPED else f"file {file}"
        known = ", ".join(shipped()) or "none"
        raise ValueError(
            f"there is no {what}; the agents are {known}, and {AGENT_PREFIX}PATH{SUFFIX} names a file of yours"
        )


def without_folders(config: Config) -> Config:
    """The config with only the names of the user's files, because their folders are those of this machine."""
    return replace(with_files(config, lambda path: Path(path).name), offline=None, init_from=None)


def _within(config: Config, folder: Path) -> Config:
    """The config with the user's files in `folder`."""
    return with_files(config, lambda name: str((folder / Path(name).name).absolute()))
