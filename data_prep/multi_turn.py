"""Prompts for agents that call tools or refine their SQL over turns: a prepared parquet with what their loops read.

    python data_prep/bird.py source=BIRD out=data/bird settings.form=enriched settings.template=retoolsql
    python data_prep/multi_turn.py source=data/bird/train.parquet out=data/bird_tools/train.parquet
    python data_prep/multi_turn.py source=… out=… agent=tool_agent tools=[run_sql,search_literal]
    python data_prep/multi_turn.py source=… out=… agent=my_loop tools=[]
    python data_prep/multi_turn.py source=… out=… agent=single_turn_agent mark=no_tools

`agent` is the name of a registered agent loop of verl: `verl_sql_tools` (ours) or verl's own `tool_agent` and
`single_turn_agent`. Files that are read together must name the same tools, whether their agents call any or not.
"""

from pathlib import Path

import hydra
from omegaconf import DictConfig

from verl_sql.dataset.multi_turn import write_multi_turn


@hydra.main(config_path="conf", config_name="multi_turn", version_base="1.3")
def main(config: DictConfig) -> None:
    """Write the parquet and say how many rows it has."""
    source, out = Path(config.source).expanduser(), Path(config.out).expanduser()
    try:
        count = write_multi_turn(source, out, config.agent, tuple(config.tools), config.mark)
    except (FileNotFoundError, ValueError) as error:
        raise SystemExit(f"multi_turn: {error}") from error
    print(f"multi_turn: {count} rows for {config.agent} in {out}")


if __name__ == "__main__":
    main()
