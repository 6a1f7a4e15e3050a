"""Conversion of prepared parquet: chains, report, taking up a killed run, chains of a language model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from verl_sql.database.catalog import DatabaseNotFound
from verl_sql.database.executor import Executor
from verl_sql.dataset.cocte.build import convert_file
from verl_sql.dataset.cocte.llm import ChainWriter, conversion_messages
from verl_sql.dataset.cocte.reasons import ChainOutcome
from verl_sql.dataset.cocte.settings import ChainSettings, SamplingSettings, chain_settings_from
from verl_sql.dataset.cocte.verify import verify_chains
from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import RL_SCHEMA, read_rows, rl_row, write_rows
from verl_sql.generation.sampler import Completion, Prompt, Sampling

GOLDS = [
    ("shop", 'SELECT name FROM customer WHERE id IN (SELECT customer_id FROM "order")', ""),
    ("shop", "SELECT name FROM customer", ""),
    ("shop", "SELECT name FROM customer", "WITH mine AS (SELECT name FROM customer) SELECT name FROM mine"),
    ("shop", "SELECT nosuch(1) FROM customer", ""),
    ("gone", "SELECT 1", ""),
]
GOOD = "WITH buyers AS (SELECT DISTINCT customer_id FROM `order`) SELECT name FROM customer WHERE id IN buyers"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    examples = [
        Example("own", "train", str(i), db_id, "Who?", "", gold, gold_chain=chain, details={"i": i})
        for i, (db_id, gold, chain) in enumerate(GOLDS)
    ]
    rows = [rl_row(e, [{"role": "user", "content": "Who?"}], i) for i, e in enumerate(examples)]
    write_rows(tmp_path / "train.parquet", rows, RL_SCHEMA)
    return tmp_path / "train.parquet"


def chains(path: Path) -> list[str]:
    return [row["extra_info"]["gold_chain"] for row in read_rows(path)]


def test_rows_get_chains_and_the_report_counts(source: Path, shop_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "train.parquet"
    report = convert_file(source, out, shop_root, ChainSettings(), workers=1)
    found = chains(out)
    assert found[0].startswith("WITH customer_id_of_order AS (SELECT DISTINCT customer_id FROM `order`)")
    assert found[1:] == ["SELECT name FROM customer", GOLDS[2][2], "", ""]
    assert report["outcomes"] == {"chain": 1, "gold_fails": 1, "kept": 1, "no_database": 1, "single": 1}
    assert [(e["question_id"], e["reason"]) for e in report["without_chain"]] == [
        ("3", "gold_fails"),
        ("4", "no_database"),
    ]
    assert (report["more_than_one_stage"], report["more_than_one_stage_but_one_step"]) == (1, 0)
    assert json.loads(out.with_suffix(".cocte.json").read_text(encoding="utf-8")) == report
    before, after = list(read_rows(source)), list(read_rows(out))
    assert [r | {"extra_info": None} for r in before] == [r | {"extra_info": None} for r in after]


def test_earlier_parts_are_taken_up(
    source: Path, shop_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, resumed = tmp_path / "a" / "train.parquet", tmp_path / "b" / "train.parquet"
    convert_file(source, whole, shop_root, ChainSettings(), workers=1)
    monkeypatch.setattr("verl_sql.dataset.cocte.build.shutil.rmtree", lambda *_, **__: None)
    convert_file(source, resumed, shop_root, ChainSettings(), workers=1)
    resumed.unlink()
    report = convert_file(source, resumed, tmp_path, ChainSettings(), workers=1)
    assert report["outcomes"]["chain"] == 1
    assert whole.read_bytes() == resumed.read_bytes()


def test_mistakes_are_told(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VERL_SQL_DB_ROOT", raising=False)
    with pytest.raises(DatabaseNotFound, match="VERL_SQL_DB_ROOT"):
        convert_file(source, tmp_path / "o.parquet", None, ChainSettings())
    with pytest.raises(FileNotFoundError):
        convert_file(tmp_path / "none.parquet", tmp_path / "o.parquet", tmp_path, ChainSettings())
    for wrong in ({"diversity": 2.0}, {"llm": {"rows": "some"}}, {"llm": {"samples": 0}}):
        with pytest.raises(ValueError, match="is"):
            chain_settings_from(wrong)


class Canned:
    """A sampler that knows its answers."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.prompts: list[Prompt] = []

    def sample(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        self.prompts += prompts
        return [[Completion(text, True) for text in self.texts] for _ in prompts]


def asked(shop: Path) -> tuple[Path, dict[str, Any], str]:
    return shop, {"question": "Who bought?", "evidence": "a buyer has an order"}, GOLDS[0][1]


def test_the_prompt_shows_schema_question_and_gold(shop: Path) -> None:
    messages = conversion_messages(*asked(shop))
    assert [m["role"] for m in messages] == ["system", *["user", "assistant"] * 3, "user"]
    last = messages[-1]["content"]
    assert "CREATE TABLE" in last
    assert all(part in last for part in ("Home Town", "Who bought?", "a buyer has an order", GOLDS[0][1]))


def test_chains_are_read_out_of_completions(shop: Path) -> None:
    texts = (f"Here:\n```sql\n{GOOD}\n```", f"```sql\n{GOOD}\n```", "SELECT name FROM customer", "no idea")
    assert ChainWriter(SamplingSettings(), Canned(*texts)).write([asked(shop)]) == [[GOOD]]
    assert ChainWriter(SamplingSettings(), Canned("x")).write([]) == []


def test_written_chains_are_verified(shop: Path, executor: Executor) -> None:
    gold = GOLDS[0][1]
    texts = [
        GOOD,
        GOOD.replace("IN buyers", "NOT IN buyers"),
        "WITH buyers AS (SELECT 1), broken AS (SELECT abs(-9223372036854775808)) " + gold,
        "WITH buyers AS (SELECT DISTINCT customer_id FROM `order`), cut AS (SELECT",
        gold,
    ]
    results = verify_chains([(shop, gold, text) for text in texts], executor)
    outcomes = ["chain", "differs", "prefix_fails", "not_split", "single"]
    assert [str(r.outcome) for r in results] == outcomes
    assert results[0].outcome is ChainOutcome.CHAIN
    assert results[0].steps == 1


def test_chains_of_a_model_join_those_of_the_rules(
    source: Path, shop_root: Path, tmp_path: Path, endpoint: Any
) -> None:
    other = f"```sql\n{GOOD} ORDER BY (SELECT 1), (SELECT 2)\n```"
    endpoint.reply = lambda _, body: (200, [(f"```sql\n{GOOD}\n```", "stop"), (other, "stop"), ("no", "stop")])
    llm = SamplingSettings(base_url=endpoint.url, rows="all", samples=3)
    out = tmp_path / "out" / "train.parquet"
    report = convert_file(source, out, shop_root, ChainSettings(diversity=0.1, llm=llm), workers=1)
    info = next(read_rows(out))["extra_info"]
    assert info["gold_chain"].startswith("WITH customer_id_of_order")
    assert json.loads(info["details"]) == {"i": 0, "more_chains": [GOOD, f"{GOOD} ORDER BY (SELECT 1), (SELECT 2)"]}
    assert report["llm_completions"] == {"chain": 2, "differs": 2}
    assert report["chains_kept_by_threshold"]["0.0"] > report["chains_kept_by_threshold"]["0.5"]


def test_processes_give_the_same_bytes(
    source: Path, shop_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verl_sql.dataset.cocte.build.PART", 2)
    for workers in (1, 2):
        convert_file(source, tmp_path / f"{workers}.parquet", shop_root, ChainSettings(), workers=workers)
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()
    assert (tmp_path / "1.cocte.json").read_bytes() == (tmp_path / "2.cocte.json").read_bytes()
