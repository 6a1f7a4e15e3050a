"""What the tests of best-of-N ask: three questions on `league`, a policy that recites, reward models that count."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import RL_SCHEMA, rl_row, write_rows
from verl_sql.generation.sampler import Completion, Prompt, Sampling

CITY = "WITH c AS (SELECT * FROM team WHERE city = 'Rome'), d AS (SELECT name FROM c) SELECT name FROM d"
GOLDS = ["SELECT name FROM team WHERE city = 'Rome'", "SELECT COUNT(*) FROM player", "SELECT MAX(age) FROM player"]
RECITED = [
    # greedy, then four samples: wrong filter, right in two steps, right written otherwise, does not execute
    ["SELECT name FROM team", "SELECT nam FROM team", CITY, "SELECT 'Foxes' UNION SELECT 'Lions'", CITY],
    # right, no answer at all, wrong, wrong with the same result, right
    ["SELECT 5", "I do not know.", "SELECT 4", "SELECT 2 + 2", "SELECT COUNT(id) FROM player"],
    # a chain that was cut off, with one whole step; everything else fails
    ["WITH c AS (SELECT age FROM player), d AS (SELECT", "SELECT x", "SELECT y", "SELECT z", "SELECT x"],
]


def write_questions(path: Path) -> Path:
    """The parquet of the three questions."""
    rows = []
    for number, gold in enumerate(GOLDS):
        asked = Example(
            source="league", split="dev" if number < 2 else "unseen", question_id=str(number), db_id="league",
            question=f"Question {number}?", evidence="", gold_sql=gold, gold_chain="", difficulty="simple", details={},
        )  # fmt: skip
        rows.append(rl_row(asked, [{"role": "user", "content": f"schema\nQuestion {number}?"}], number))
    write_rows(path, rows, RL_SCHEMA)
    return path


class Reciting:
    """A sampler that knows its lines: the first of a question when it is greedy, the others when it samples."""

    def __init__(self) -> None:
        """Nothing was asked yet."""
        self.asked: list[tuple[int, Sampling]] = []

    def sample(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        """See `Sampler`."""
        self.asked.append((len(prompts), sampling))
        numbers = [int(prompt.messages[-1]["content"][-2]) for prompt in prompts]
        lines = [RECITED[number][:1] if sampling.temperature == 0 else RECITED[number][1:] for number in numbers]
        return [[Completion(text, not text.endswith("(SELECT")) for text in own[: sampling.n]] for own in lines]


class Counting:
    """A reward model that likes long chains: step j of a text scores (j + 1) / 4."""

    def __init__(self, score_final: bool = False) -> None:
        """Nothing was scored yet."""
        self.score_final = score_final
        self.texts: list[str] = []

    def score(self, texts: Sequence[str]) -> list[list[float]]:
        """See `StepScorer`."""
        self.texts += texts
        return [[(j + 1) / 4 for j in range(text.count("<|step|>"))] for text in texts]


def lines(path: Path) -> list[dict[str, Any]]:
    """A file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
