"""Chains of CTEs as an SFT set for the cold start: prompt in, gold chain out (Reward-SQL, §5.1).

    python data_prep/cold_start.py source=data/cold_start.parquet out=data/cold_start_sft.parquet flawed_share=0.6

`source` is a prepared parquet whose rows have a gold chain. With `flawed_share` > 0, that share of the questions that
know a typical mistake (`cocte_flawed`, the sample's) is answered with it, as an unfiltered LLM-made set would be.
`style` writes the answer as a paper's policy has to: `chain` (alone), `reasoning` (`<reasoning>…` and `<answer>…`),
`think` (`<think>…` and `<answer>…`) or `sql` (reasoning, then `<sql>…`); the reasoning tells the names of the steps.
"""

from pathlib import Path

import hydra
from omegaconf import DictConfig

from verl_sql.dataset.cold_start import write_cold_start


@hydra.main(config_path="conf", config_name="cold_start", version_base="1.3")
def main(config: DictConfig) -> None:
    """Write the SFT parquet and say what is in it."""
    try:
        counts = write_cold_start(
            Path(config.source), Path(config.out), config.flawed_share, config.seed, config.or_sql, config.style
        )
    except (FileNotFoundError, ValueError) as error:
        raise SystemExit(f"cold_start: {error}") from error
    print(f"cold_start: {counts.written} chains, {counts.flawed} of them flawed, {counts.without} questions had none")


if __name__ == "__main__":
    main()
