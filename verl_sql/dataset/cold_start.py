"""The cold start's SFT set: prompts of a prepared parquet, answered with the gold chain of CTEs (Reward-SQL, §5.1).

In another paper's answer format, the chain stands in its tags, after a short text made from the names of its steps.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verl_sql.dataset.answer_styles import AnswerForm, written
from verl_sql.dataset.parquet import SFT_SCHEMA, read_rows, write_rows


@dataclass(slots=True)
class ColdStartCounts:
    """What went into the file: chains written, how many of them flawed, and questions left out for want of a chain."""

    written: int = 0
    flawed: int = 0
    without: int = 0


def write_cold_start(
    source: Path,
    out: Path,
    flawed_share: float = 0.0,
    seed: int = 0,
    or_sql: bool = False,
    style: AnswerForm | str = AnswerForm.CHAIN,
) -> ColdStartCounts:
    """Write `out` in SFT_SCHEMA from the rows of `source` that have a gold chain.

    Args:
        source: a parquet in RL_SCHEMA.
        out: the parquet to write.
        flawed_share: the probability in [0, 1] that a question whose details know a flawed chain is answered with it.
        seed: decides which; the same for a question wherever it stands in the file.
        or_sql: answer a question that has no chain with its gold SQL (a query without a CTE is one step, itself).
        style: how an answer is written around the chain.

    Raises:
        FileNotFoundError: there is no `source`.
        ValueError: `flawed_share` is no probability, `style` is none of ours, or no row has a chain.
    """
    form = AnswerForm(style)
    if not 0 <= flawed_share <= 1:
        raise ValueError(f"flawed_share={flawed_share} is not between 0 and 1")
    if not source.is_file():
        raise FileNotFoundError(f"no parquet {source}; prepare one with data_prep first")
    counts = ColdStartCounts()
    write_rows(out, _rows(source, flawed_share, seed, or_sql, form, counts), SFT_SCHEMA)
    if not counts.written:
        out.unlink()
        raise ValueError(f"no row of {source} has a gold chain; convert the golds to chains of CTEs first")
    return counts


def _rows(
    source: Path, flawed_share: float, seed: int, or_sql: bool, form: AnswerForm, counts: ColdStartCounts
) -> Iterator[dict[str, Any]]:
    for row in read_rows(source):
        info = row["extra_info"]
        flawed = json.loads(info["details"]).get("cocte_flawed", "")
        use_flawed = bool(flawed) and random.Random(f"{seed}/{info['question_id']}").random() < flawed_share
        chain = flawed if use_flawed else info["gold_chain"] or (row["reward_model"]["ground_truth"] if or_sql else "")
        if not chain:
            counts.without += 1
            continue
        counts.written += 1
        counts.flawed += use_flawed
        answer = {"role": "assistant", "content": written(chain, form)}
        yield {"messages": [*row["prompt"], answer], "extra_info": info}
