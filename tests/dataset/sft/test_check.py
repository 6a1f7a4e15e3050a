"""Which traces may be learned from."""

from pathlib import Path

import pytest

from verl_sql.database.executor import Executor
from verl_sql.dataset.sft.check import Trace, TraceFault, TraceRules, check_traces, tells

GOLD = "SELECT name FROM team WHERE city = 'Rome'"
WORDS = "The question asks for the names of teams, so I filter the table team by its city."


@pytest.mark.parametrize(
    ("text", "finished", "fault"),
    [
        (f"{WORDS}\n```sql\n{GOLD}\n```", True, None),
        (f"{WORDS}\n```sql\nSELECT name FROM team WHERE city IN ('Rome')\n```", True, None),
        (f"<think>{WORDS}</think><answer>{GOLD}</answer>", True, None),
        (f"{WORDS}\n```sql\nSELECT name FROM team\n```", True, TraceFault.WRONG),
        (f"{WORDS}\n```sql\nSELECT nothing FROM team\n```", True, TraceFault.WRONG),
        (f"```sql\n{GOLD}\n```", True, TraceFault.NO_REASONING),
        (f"{WORDS}\n```sql\n{GOLD}\n```", False, TraceFault.CUT),
        ("I do not know.", True, TraceFault.NO_ANSWER),
        (f"As the reference query shows, {WORDS}\n```sql\n{GOLD}\n```", True, TraceFault.TELLS),
    ],
)
def test_faults(text: str, finished: bool, fault: TraceFault | None, league_root: Path, executor: Executor) -> None:
    trace = Trace(text, league_root / "league" / "league.sqlite", GOLD, finished, secret=True)
    assert list(check_traces([trace], executor, TraceRules(reasoning=True))) == [fault]


def test_a_gold_that_fails_says_nothing(league_root: Path, executor: Executor) -> None:
    trace = Trace(f"```sql\n{GOLD}\n```", league_root / "league" / "league.sqlite", "SELECT nothing FROM team")
    assert list(check_traces([trace], executor, TraceRules())) == [TraceFault.GOLD_FAILS]


def test_a_stricter_comparator(league_root: Path, executor: Executor) -> None:
    gold, doubled = "SELECT city FROM team WHERE id = 1", "SELECT city FROM team WHERE city = 'Rome'"
    trace = Trace(f"```sql\n{doubled}\n```", league_root / "league" / "league.sqlite", gold)
    assert list(check_traces([trace], executor, TraceRules())) == [None]
    assert list(check_traces([trace], executor, TraceRules(comparator="bag"))) == [TraceFault.WRONG]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("The gold SQL filters by city.", True),
        ("According to the ground-truth query we join.", True),
        ("The given query joins team and player.", True),
        ("The provided solution counts.", True),
        ("This query was shown to me.", True),
        ("the hint says so", True),
        ("We are given a schema with two tables.", False),
        ("The expected number of rows is one.", False),
        ("I filter by city, since the question asks for Rome.", False),
        ("The target column is name.", False),
    ],
)
def test_what_tells(text: str, told: bool) -> None:
    assert tells(text, None) is told
    assert not tells(f"I write {text}", text)
