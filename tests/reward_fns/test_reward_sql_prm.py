"""Reward-SQL with a process reward model: a small HTTP server that speaks vLLM's protocol judges the steps."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
from verl_sql.reward_fns.reward_sql import compute_score, compute_score_async

from verl_sql.integration.tiny_policy import train_tokenizer
from verl_sql.prm.rendering import STEP_TAG
from verl_sql.prm.served import PRMUnavailable

GOLD = "SELECT count(*) FROM player WHERE age = 30"
ONE = "WITH a AS (SELECT * FROM player WHERE age = 30) SELECT count(*) FROM a"
TWO = "WITH a AS (SELECT * FROM player), b AS (SELECT * FROM a WHERE age = 30) SELECT count(*) FROM b"
WRONG = "WITH a AS (SELECT * FROM player), b AS (SELECT * FROM a WHERE age = 31) SELECT count(*) FROM b"
FAILS = "WITH a AS (SELECT * FROM player), b AS (SELECT nope FROM a) SELECT count(*) FROM b"
CUT = "WITH a AS (SELECT * FROM player), b AS (SELECT * FROM a WHERE"
PROMPT = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "player(age)\nHow many are 30?"}]


class Judge(ThreadingHTTPServer):
    """The n-th tag of a text gets 0.9, 0.4, 0.4, …; `failures` requests are answered with an error first."""

    def __init__(self, tag: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.tag, self.failures, self.asked = tag, 0, []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Judge

    def do_GET(self) -> None:
        self._send(200, {"data": [{"id": "the-model", "max_model_len": 400}]})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(request)
        if self.server.failures > 0:
            self.server.failures -= 1
            return self._send(500, {"error": "not now"})
        scores = iter([0.9, *[0.4] * 99])
        rows = [[1 - p, p] for p in (next(scores) if i == self.server.tag else 0.5 for i in request["input"][0])]
        return self._send(200, {"data": [{"data": rows}]})

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def _send(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture(scope="module")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prm")
    tokenizer = train_tokenizer([ONE, TWO, FAILS] * 20, 400)
    tokenizer.add_special_tokens({"additional_special_tokens": [STEP_TAG]})
    tokenizer.save_pretrained(folder)
    (folder / "tag").write_text(str(tokenizer.convert_tokens_to_ids(STEP_TAG)))
    return folder


@pytest.fixture
def judge(tokenizer_folder: Path) -> Iterator[Judge]:
    server = Judge(int((tokenizer_folder / "tag").read_text()))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def score(judge: Judge, tokenizer_folder: Path, league_root: Path):
    def call(completion: str, mode: str = "prm+rule_or", gold: str = GOLD, info: Any = None, **prm: Any):
        options = {"base_url": judge.url, "tokenizer": str(tokenizer_folder), **prm}
        extra = {"db_id": "league", "raw_prompt": PROMPT, **(info or {})}
        return compute_score("test", completion, gold, extra, mode=mode, prm=options, db_root=str(league_root))

    return call


@pytest.mark.parametrize(
    ("completion", "process", "outcome", "steps"),
    [
        (ONE, 0.9, 1.0, [0.9]),
        (TWO, (0.9 + 0.4) / 2, 1.0, [0.9, 0.4]),
        (WRONG, (0.9 + 0.4) / 2, 0.0, [0.9, 0.4]),
        (GOLD, 0.9, 1.0, [0.9]),  # no CTE: the query is its own single step
        (FAILS, 0.0, 0.0, [0.9, 0.4]),  # does not run: no process reward, though its steps are judged
        (CUT, 0.0, 0.0, [0.9]),  # breaks off: its whole steps are judged
        ("I do not know", 0.0, 0.0, []),
    ],
)
def test_modes(score: Any, judge: Judge, completion: str, process: float, outcome: float, steps: list[float]) -> None:
    by_mode = {mode: score(completion, mode) for mode in ("rule_or", "prm", "prm+rule_or")}
    assert by_mode["rule_or"]["score"] == outcome
    assert by_mode["prm"]["score"] == pytest.approx(process)
    assert by_mode["prm+rule_or"]["score"] == pytest.approx(process + outcome)
    assert json.loads(by_mode["prm"]["step_scores"]) == steps
    assert (by_mode["rule_or"]["step_scores"], by_mode["rule_or"]["prm_asked"]) == ("", 0.0)
    assert len({tuple(row) for row in by_mode.values()}) == 1, "the same keys, whatever the mode"
    assert len(judge.asked) == bool(steps), "equal texts are asked for once"


def test_what_the_model_reads(score: Any, judge: Judge, tokenizer_folder: Path) -> None:
    from transformers import AutoTokenizer

    score(TWO)
    request = judge.asked[0]
    text = AutoTokenizer.from_pretrained(tokenizer_folder).decode(request["input"][0])
    assert (request["model"], request["task"]) == ("the-model", "token_classify")
    assert text.startswith("player(age)\nHow many are 30?\na AS (SELECT * FROM player)\n")
    assert text.count(STEP_TAG) == 2
    assert "be brief" not in text


def test_the_event_loop_gives_the_same(judge: Judge, tokenizer_folder: Path, league_root: Path) -> None:
    prm = {"base_url": judge.url, "tokenizer": str(tokenizer_folder)}
    info = {"db_id": "league", "raw_prompt": PROMPT}
    options = {"mode": "prm", "prm": prm, "db_root": str(league_root)}

    async def all_at_once() -> list[dict[str, Any]]:
        return await asyncio.gather(
            *(compute_score_async("t", text, GOLD, info, **options) for text in [TWO, WRONG, TWO, CUT] * 8)
        )

    rows = asyncio.run(all_at_once())
    assert rows[:4] == [compute_score("t", text, GOLD, info, **options) for text in (TWO, WRONG, TWO, CUT)]
    assert len(judge.asked) == 3


def test_validation_does_without_unless_told(score: Any, judge: Judge) -> None:
    row = score(TWO, "prm", info={"validate": True})
    assert (row["score"], row["prm_asked"], row["step_scores"], judge.asked) == (1.0, 0.0, "", [])
    assert score(TWO, "prm", info={"validate": True}, in_validation=True)["score"] == pytest.approx(0.65)


def test_a_failing_gold_is_neutral_and_nobody_is_asked(score: Any, judge: Judge) -> None:
    row = score(TWO, gold="SELECT nope FROM player")
    assert (row["score"], row["skipped"], row["outcome"], judge.asked) == (0.0, 1.0, "gold_error", [])


def test_a_server_that_fails_is_asked_again(score: Any, judge: Judge) -> None:
    judge.failures = 1
    assert score(ONE, "prm")["score"] == pytest.approx(0.9)
    assert len(judge.asked) == 2


def test_a_server_that_is_down_raises(score: Any, judge: Judge) -> None:
    judge.failures = 99
    with pytest.raises(PRMUnavailable, match="no answer from the process reward model"):
        score(ONE, "prm", tries=1)
    judge.failures = 0
    assert score(ONE, "prm", tries=1)["score"] == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("prm", "info", "said"),
    [
        ({"base_url": None}, {}, r"no process reward model: have verl serve one \(\+prm=served\)"),
        ({"nonsense": 1}, {}, "reward_kwargs.prm knows"),
        ({}, {"raw_prompt": None}, "default_agent_loop=verl_sql_steps"),
    ],
)
def test_what_is_missing_is_said(score: Any, prm: dict[str, Any], info: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        score(ONE, "prm", info=info, **prm)


def test_a_text_longer_than_the_model_loses_its_front(score: Any, judge: Judge) -> None:
    long = [{"role": "user", "content": "schema " * 1000}]
    assert json.loads(score(TWO, info={"raw_prompt": long})["step_scores"]) == [0.9, 0.4]
    assert len(judge.asked[0]["input"][0]) == 400


def test_a_model_in_the_same_process(tmp_path: Path, league_root: Path) -> None:
    from verl_sql.integration.tiny_policy import TinyPolicyShape, build_tiny_policy
    from verl_sql.prm.model import make_prm

    build_tiny_policy([ONE, TWO] * 10, tmp_path / "policy", TinyPolicyShape(vocab_size=400, layers=1))
    make_prm(tmp_path / "policy", tmp_path / "prm")
    info = {"db_id": "league", "raw_prompt": PROMPT}
    options = {"mode": "prm+rule_or", "prm": {"folder": str(tmp_path / "prm")}, "db_root": str(league_root)}

    async def all_at_once() -> list[dict[str, Any]]:
        return await asyncio.gather(
            *(compute_score_async("t", text, GOLD, info, **options) for text in [TWO, ONE, CUT, "nothing"] * 8)
        )

    rows = asyncio.run(all_at_once())
    assert [json.loads(row["step_scores"]) for row in rows[:4]] == [[0.5, 0.5], [0.5], [0.5], []]
    assert [row["score"] for row in rows[:4]] == [1.5, 1.5, 0.0, 0.0]
    assert compute_score("t", TWO, GOLD, info, **options) == rows[0] == rows[-4]
