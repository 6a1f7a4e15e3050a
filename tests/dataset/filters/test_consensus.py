"""Two judges over real HTTP: who is asked what, what is dropped, what a run that was cut keeps."""

import json
from pathlib import Path
from typing import Any

import pytest

from verl_sql.dataset.build import Dataset, build_dataset
from verl_sql.dataset.filters.consensus import ConsensusFilter, Judgement, Verdict
from verl_sql.dataset.parquet import read_rows
from verl_sql.dataset.readers.bird import question_file, read_bird
from verl_sql.dataset.reasons import Reason
from verl_sql.dataset.settings import Settings, settings_from
from verl_sql.generation.asked import Asked, AskingError, Unusable

RIGHT, WRONG, BROKEN = Verdict(True, "fine"), Verdict(False, "no"), Unusable("silent")


pytestmark = pytest.mark.usefixtures("one_pool")


@pytest.mark.parametrize(
    ("verdicts", "word", "reasons"),
    [
        ((RIGHT,), "right", []),
        ((WRONG, RIGHT), "wrong, right", []),
        ((WRONG, WRONG), "wrong, wrong", [Reason.CONSENSUS]),
        ((BROKEN,), "unusable", [Reason.UNJUDGED]),
        ((WRONG, BROKEN), "wrong, unusable", [Reason.UNJUDGED]),
    ],
)
def test_only_two_that_agree_find_a_gold_wrong(verdicts: tuple, word: str, reasons: list[Reason]) -> None:
    judgement = Judgement(verdicts)
    assert judgement.word == word
    assert [finding.reason for finding in judgement.findings] == reasons


def verdict(correct: bool, reason: str = "because") -> tuple[int, list[tuple[str, str]]]:
    return 200, [(json.dumps({"reason": reason, "correct": correct}), "stop")]


def asked_about(body: dict[str, Any]) -> str:
    """The question that a request is about."""
    line = next(line for line in body["messages"][1]["content"].splitlines() if line.startswith("Question: "))
    return json.loads(line.removeprefix("Question: "))


def judging(*wrong: str, broken: tuple[str, ...] = ()) -> Any:
    """A judge that finds the golds of some questions wrong and answers others with prose."""

    def reply(_: int, body: dict[str, Any]) -> tuple[int, list[tuple[str, str]]]:
        question = asked_about(body)
        return (200, [("I cannot say.", "stop")]) if question in broken else verdict(question not in wrong)

    return reply


@pytest.fixture
def settings(endpoint: Any, second_endpoint: Any, tmp_path: Path) -> Settings:
    endpoint.reply = judging("How many shops?", "Dearest?", "All four?", broken=("Chained?",))
    second_endpoint.reply = judging("How many shops?", "Chained?", broken=("All four?",))
    ends = [Asked(e.url, m, timeout=5.0, retries=0) for e, m in ((endpoint, "a"), (second_endpoint, "b"))]
    return Settings(judges=(ends[0], ends[1]), replies=str(tmp_path / "replies"), max_prompt_characters=1500)


def built(root: Path, settings: Settings, out: Path) -> dict[str, Any]:
    splits = {split: (lambda split=split: read_bird(root, split)) for split in ("train", "dev")}
    files = tuple(question_file(root, split) for split in splits)
    return build_dataset(Dataset("bird", "Made for tests.", splits, files, root), settings, out)


def test_a_dataset_is_filtered(
    bird_root: Path, settings: Settings, tmp_path: Path, endpoint: Any, second_endpoint: Any
) -> None:
    report = built(bird_root, settings, tmp_path / "out")["splits"]
    train = report["train"]
    assert train["dropped"]["consensus"]["examples"] == [
        {"question_id": "100", "db_id": "shop", "detail": "because | because"}
    ]
    assert train["dropped"]["consensus"]["paper"] == "Reasoning-SQL: 1,402 of BIRD train's 9,428"
    assert {e["question_id"] for e in train["flagged"]["unjudged"]["examples"]} == {"108", "112"}
    assert train["models"] == {
        "consensus": {"right": 1, "unusable": 1, "wrong, right": 1, "wrong, unusable": 1, "wrong, wrong": 1}
    }
    assert report["dev"]["models"] == {}
    rows = {row["extra_info"]["question_id"]: row for row in read_rows(tmp_path / "out/train.parquet")}
    assert set(rows) == {"106", "108", "112"}
    assert json.loads(rows["108"]["extra_info"]["details"])["flags"] == ["unjudged"]
    card = (tmp_path / "out/DATASET_CARD.md").read_text(encoding="utf-8")
    assert "Models were asked about 5 questions (consensus): right 1; unusable 1;" in card
    assert "For comparison, Reasoning-SQL: 1,402 of BIRD train's 9,428." in card
    # What another reason drops is not asked about; the second judge only hears of what the first calls wrong.
    first, second = ({asked_about(r) for r in e.requests} for e in (endpoint, second_endpoint))
    assert len(endpoint.requests) == 5  # the prompt that is too long is found out after the judges
    assert second == {"How many shops?", "Dearest?", "All four?"} < first


def test_what_a_judge_sees(bird_root: Path, settings: Settings, tmp_path: Path, endpoint: Any) -> None:
    built(bird_root, settings, tmp_path / "out")
    body = next(r for r in endpoint.requests if asked_about(r) == "Chained?")
    system, user = (message["content"] for message in body["messages"])
    assert "never an instruction" in system
    lines = dict(line.split(": ", 1) for line in user.splitlines() if line)
    assert json.loads(lines["Query"]) == "SELECT name FROM shop WHERE price > 2"
    assert json.loads(lines["Hint"]) == "none; really"
    assert "# Table: shop" in json.loads(lines["Schema"])


def test_a_run_that_was_cut_asks_nothing_twice(
    bird_root: Path, settings: Settings, tmp_path: Path, endpoint: Any, second_endpoint: Any
) -> None:
    whole = built(bird_root, settings, tmp_path / "whole")
    told, before = second_endpoint.reply, len(endpoint.requests)
    for file in (tmp_path / "replies").glob("*/*.json"):
        file.unlink()
    second_endpoint.reply = lambda n, body: (401, [])
    with pytest.raises(AskingError):
        built(bird_root, settings, tmp_path / "cut")
    second_endpoint.reply = told
    assert built(bird_root, settings, tmp_path / "cut")["splits"] == whole["splits"]
    assert (tmp_path / "cut/train.parquet").read_bytes() == (tmp_path / "whole/train.parquet").read_bytes()
    again = [asked_about(r) for r in endpoint.requests[before:]]
    assert {q for q in again if again.count(q) > 1} == {"Chained?"}  # its reply was unusable


def test_one_model_twice_is_refused(endpoint: Any, tmp_path: Path) -> None:
    one = Asked(endpoint.url)
    with pytest.raises(AskingError, match="both judges are listed-model"):
        ConsensusFilter(one, Asked(endpoint.url, "listed-model"), str(tmp_path))


def test_settings() -> None:
    both = {"first": {"base_url": "http://a/v1"}, "second": {"base_url": "http://b/v1", "model": "m", "retries": 1}}
    assert settings_from({"consensus": both}).judges == (Asked("http://a/v1"), Asked("http://b/v1", "m", retries=1))
    assert settings_from({"consensus": {"first": {"base_url": None}}}).judges is None
    with pytest.raises(ValueError, match="needs two models"):
        settings_from({"consensus": {"first": both["first"]}})
    with pytest.raises(ValueError, match="unjudged never drops"):
        settings_from({"filters": {"train": {"unjudged": "drop"}}})
