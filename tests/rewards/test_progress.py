"""What the turns of a completion did: repairs, and alignment with either form of the gold."""

from pathlib import Path

import pytest
from verl_sql.reward_fns.progress_sql import REWARD, compute_score

from verl_sql.rewards.attempts import every_answer
from verl_sql.rewards.settings import Settings
from verl_sql.sqltext.diagnosis import nearest_gold
from verl_sql.sqltext.extract import extract_answer
from verl_sql.sqltext.items import NO_SCHEMA

GOLD = "SELECT name FROM team"
CHAIN = "WITH a AS (SELECT name FROM team) SELECT name FROM a"


@pytest.mark.parametrize(
    ("attempts", "first", "repaired", "spoiled"),
    [
        ([GOLD], 1, 0, 0),
        (["SELECT nam FROM team", GOLD], 0, 1, 0),
        ([GOLD, "SELECT nam FROM team"], 1, 0, 1),
        (["SELECT 1", "SELECT 2"], 0, 0, 0),
        (["", GOLD], 0, 1, 0),
    ],
)
def test_repairs(league_root: Path, attempts: list[str], first: int, repaired: int, spoiled: int):
    info = {"db_id": "league", "attempts": attempts}
    row = compute_score("", "", GOLD, info, db_root=str(league_root))
    assert (row["first_right"], row["repaired"], row["spoiled"]) == (first, repaired, spoiled)
    assert row["n_sql_turns"] == len(attempts)


def test_a_chain_is_aligned_with_the_chain_of_the_gold(league_root: Path):
    info = {
        "db_id": "league",
        "attempts": [CHAIN],
        "gold_chain": CHAIN.replace(" a ", " b ").replace("FROM a", "FROM b"),
    }
    settings = Settings(db_root=str(league_root))
    with_chain = REWARD.score("", GOLD, info, settings).facts["alignment"]
    without = REWARD.score("", GOLD, info | {"gold_chain": ""}, settings).facts["alignment"]
    assert with_chain == pytest.approx(0.5 + 0.5 * (1 - 2 / 13))  # two of 13 tokens: what the step is called
    assert without < with_chain
    assert nearest_gold(CHAIN, [GOLD, info["gold_chain"]], NO_SCHEMA) == info["gold_chain"]
    assert nearest_gold(GOLD, [GOLD, info["gold_chain"]], NO_SCHEMA) == GOLD


def test_the_turns_of_a_dump():
    text = "SELECT 1\nuser\n<tool_response>\nSQL_diagnosis:\n- x\n</tool_response>\nassistant\nSELECT 2"
    assert every_answer(text, extract_answer(text), {}) == ["SELECT 1", "SELECT 2"]
    tagged = text.replace("SELECT 1", "<answer>SELECT 1</answer>")
    assert every_answer(tagged, extract_answer(tagged), {}) == ["SELECT 1", "SELECT 2"]
