"""The twenty conversions of docs/cocte.md are those that the code makes."""

import os
import random
from pathlib import Path

from verl_sql.dataset.cocte.reasons import ChainOutcome

PAGE = Path(__file__).parents[3] / "docs" / "cocte.md"
BEGIN, END = "<!-- conversions:begin -->\n", "<!-- conversions:end -->"
SEED = 5


def entry(number: int, one) -> str:
    """One conversion as the page shows it."""
    result = one.result
    head = f"**{number}. {one.database.stem}**, stages: {result.stages}, steps: {result.steps}"
    return f"{head}\n```sql\n-- gold\n{' '.join(one.gold.split())}\n-- chain\n{result.chain}\n```\n"


def drawn(golds: list, count: int) -> list:
    chains = [one for one in golds if one.result.outcome is ChainOutcome.CHAIN]
    return random.Random(SEED).sample(chains, count)


def test_conversions_are_those_of_the_code(spider: list, superhero: list) -> None:
    shown = [*drawn(spider, 15), *drawn(superhero, 5)]
    text = "".join(entry(number, one) for number, one in enumerate(shown, 1))
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    tail = rest[rest.index(END) :]
    if os.environ.get("VERL_SQL_UPDATE_DOCS"):
        PAGE.write_text(head + BEGIN + text + tail, encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")
    assert page == head + BEGIN + text + tail
