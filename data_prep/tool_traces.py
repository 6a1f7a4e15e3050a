"""Tool traces to warm a policy up on (ReToolSQL): calls, the tools' real answers, and SQL that is right.

    python data_prep/tool_traces.py source=data/tools/cold_start.parquet db_root=data/sample out=data/sft.parquet
    python data_prep/tool_traces.py teacher=model source=data/bird_tools/train.parquet db_root=BIRD \\
        out=data/sft.parquet endpoint.base_url=http://…/v1

`teacher=script` knows the sample of look-ups. `teacher=model` shows the gold to the model behind an endpoint, lets it
call the tools, and keeps traces that end in the gold's result and do not tell that they saw it. A policy's own traces
come from verl's dumps: `data_prep/sft.py kind=traces rollouts=[…]`.
"""

from pathlib import Path

import hydra
from omegaconf import DictConfig, OmegaConf

from verl_sql.database.catalog import DatabaseNotFound
from verl_sql.dataset.tool_traces.build import TraceSettings, write_tool_traces
from verl_sql.dataset.tool_traces.scripted import Habits
from verl_sql.generation.endpoint import EndpointSampler
from verl_sql.generation.sampler import Sampling, SamplingError
from verl_sql.tools.desk import ToolLimits


@hydra.main(config_path="conf", config_name="tool_traces", version_base="1.3")
def main(config: DictConfig) -> None:
    """Write the set and say what is in it."""
    try:
        counts = write_tool_traces(
            Path(config.source).expanduser(),
            Path(config.out).expanduser(),
            _settings(config),
            Path(config.db_root).expanduser() if config.db_root else None,
            Path(config.plain).expanduser() if config.plain else None,
            _teacher(config),
            config.workers,
        )
    except (DatabaseNotFound, FileNotFoundError, SamplingError, TypeError, ValueError) as error:
        raise SystemExit(f"tool_traces: {error}") from error
    print(f"tool_traces: {', '.join(f'{name} {count}' for name, count in counts.items())} in {config.out}")


def _settings(config: DictConfig) -> TraceSettings:
    """The settings that the config spells out."""
    values: dict = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    return TraceSettings(
        Habits(**values["habits"]),
        values["plain_share"],
        values["seed"],
        ToolLimits(**values["limits"]),
        Sampling(**values["sampling"]),
        values["max_turns"],
        values["keep"],
    )


def _teacher(config: DictConfig) -> EndpointSampler | None:
    """The model that teaches, None for the script.

    Raises:
        ValueError: there is no such teacher, or no endpoint.
    """
    if config.teacher == "script":
        return None
    if config.teacher != "model":
        raise ValueError(f"teacher={config.teacher}: there are script and model")
    if not config.endpoint.base_url:
        raise ValueError("a model as the teacher needs endpoint.base_url=…")
    return EndpointSampler(**config.endpoint)


if __name__ == "__main__":
    main()
