"""The other datasets' layouts, with their official field names."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from verl_sql.dataset.readers import crt_qa, kaggledbqa, questions, spider_dk, spider_realistic, spider_syn, synsql
from verl_sql.dataset.readers import text_to_sql_v1 as v1
from verl_sql.dataset.readers.records import MissingField

SPIDER = {"db_id": "d", "query": "SELECT 1", "question": "One?", "query_toks": ["SELECT"], "sql": {"a": 1}}


def put(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize("folder", ["Spider-Syn/", ""])
def test_spider_syn(tmp_path: Path, folder: str) -> None:
    record = {k: v for k, v in SPIDER.items() if k != "question"}
    put(tmp_path / f"{folder}train_spider.json", [record | {"SpiderQuestion": "One?", "SpiderSynQuestion": "Single?"}])
    (example,) = spider_syn.read_spider_syn(tmp_path, "train")
    assert (example.question, example.details) == ("Single?", {"SpiderQuestion": "One?"})


def test_spider_dk_and_realistic(tmp_path: Path) -> None:
    put(tmp_path / "Spider-DK.json", [SPIDER | {"type": "34"}])
    put(tmp_path / "spider-realistic.json", [SPIDER, SPIDER])
    (example,) = spider_dk.read_spider_dk(tmp_path, "dev")
    assert (example.source, example.details) == ("spider_dk", {"type": "34"})
    assert [e.question_id for e in spider_realistic.read_spider_realistic(tmp_path, "dev")] == ["0", "1"]


def test_kaggledbqa(tmp_path: Path) -> None:
    for name in ("Pesticide", "Pesticide_test", "Pesticide_fewshot", "Soccer_test"):
        put(tmp_path / f"examples/{name}.json", [SPIDER])
    ids = {split: [e.question_id for e in kaggledbqa.read_kaggledbqa(tmp_path, split)] for split in ("test", "all")}
    assert ids == {"test": ["Pesticide_test-0", "Soccer_test-0"], "all": ["Pesticide-0"]}


def test_synsql(tmp_path: Path) -> None:
    record = {"db_id": "d", "sql": "SELECT 1", "question": "One?", "external_knowledge": "one is 1", "cot": "think"}
    put(tmp_path / "data.json", [record | {"sql_complexity": "Simple", "question_style": "Formal"}])
    (example,) = synsql.read_synsql(tmp_path, "train")
    assert (example.evidence, example.difficulty) == ("one is 1", "Simple")
    assert example.details == {"cot": "think", "question_style": "Formal"}


def test_text_to_sql_v1(tmp_path: Path) -> None:
    record = {"instruction": "One?", "input": "CREATE TABLE t (a)", "response": "SELECT a FROM t", "source": "wikisql"}
    put(
        tmp_path / "texttosqlv2.jsonl",
        json.dumps(record | {"text": "all"}) + "\n" + json.dumps(record | {"input": None}),
    )
    first, second = v1.read_text_to_sql_v1(tmp_path, "train")
    assert (first.db_id, first.schema_text, first.details) == ("wikisql", "CREATE TABLE t (a)", {})
    assert (second.question_id, second.schema_text) == ("1", "")


@pytest.mark.parametrize("table", ["city#people\nRome#2,800,000\n", 'city,people\nRome,"2,800,000"\n'])
def test_crt_qa(tmp_path: Path, table: str) -> None:
    question = {"Question name": "How many?", "Title": "cities", "step1": {"type": "Operation"}, "Answer": 3}
    put(tmp_path / "dataset.json", {"2-1.csv": [question]})
    put(tmp_path / "all_csv/2-1.csv", table)
    (example,) = crt_qa.read_crt_qa(tmp_path, "test")
    assert example.schema_text == "cities\ncity | people\nRome | 2,800,000"
    assert (example.gold_sql, example.ability, example.question_id) == ("3", "table_qa", "2-1.csv-0")
    assert example.details == {"Title": "cities", "step1": {"type": "Operation"}}


def test_crt_qa_without_an_answer(tmp_path: Path) -> None:
    put(tmp_path / "dataset.json", {"a.csv": [{"Question name": "How many?"}]})
    put(tmp_path / "all_csv/a.csv", "a\n1\n")
    with pytest.raises(MissingField, match=r"question a\.csv-0 has no Answer"):
        list(crt_qa.read_crt_qa(tmp_path, "test"))


def test_own_questions(tmp_path: Path) -> None:
    put(tmp_path / "train.jsonl", json.dumps({"db_id": "d", "question": "One?", "sql": "SELECT 1", "by": "me"}) + "\n")
    (example,) = questions.read_questions(tmp_path, "train")
    assert (example.gold_sql, example.details) == ("SELECT 1", {"by": "me"})


@pytest.mark.parametrize(
    "find",
    [
        crt_qa.question_files,
        kaggledbqa.question_files,
        questions.question_files,
        spider_dk.question_files,
        spider_realistic.question_files,
        spider_syn.question_files,
        synsql.question_files,
        v1.question_files,
    ],
)
def test_missing_files_are_named(tmp_path: Path, find: Callable[[Path, str], tuple[Path, ...]]) -> None:
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        find(tmp_path, "dev")
