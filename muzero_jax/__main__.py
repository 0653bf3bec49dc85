"""The commands of the installed package: python -m muzero_jax train --env hex --board-size 5 --minutes 5"""

from muzero_jax.apps.commands.entry import main

if __name__ == "__main__":
    main()
