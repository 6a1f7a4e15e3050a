"""Conversations to warm a policy up for refining its SQL over turns (Progress-SQL): mistake, feedback, right SQL.

    python data_prep/refinement_traces.py source=data/cold_start.parquet out=data/traces.parquet db_root=sample

`source` is a prepared parquet. With probability `flawed_share` a question that knows a typical flawed chain
(`cocte_flawed`, the sample's) begins with it, with `failing_share` another one begins with a misspelt name; feedback as
the agent loop `verl_sql_refine` gives it follows, and then the right chain. All others are answered right at once.
"""

from pathlib import Path

import hydra
from omegaconf import DictConfig

from verl_sql.database.catalog import DatabaseNotFound
from verl_sql.dataset.refinement_traces import write_refinement_traces


@hydra.main(config_path="conf", config_name="refinement_traces", version_base="1.3")
def main(config: DictConfig) -> None:
    """Write the SFT parquet and say what is in it."""
    source, out, db_root = (Path(config[name]).expanduser() for name in ("source", "out", "db_root"))
    shares = (config.flawed_share, config.failing_share)
    try:
        counts = write_refinement_traces(source, out, db_root, *shares, config.seed, config.workers)
    except (FileNotFoundError, ValueError, DatabaseNotFound) as error:
        raise SystemExit(f"refinement_traces: {error}") from error
    print(
        f"refinement_traces: {counts.written} conversations, {counts.flawed} begin with a flawed SQL, "
        f"{counts.failing} with one that fails, {counts.without} questions had no SQL"
    )


if __name__ == "__main__":
    main()
