"""Scores do not depend on batches or on who serves the model."""

import json
import math
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
import torch
import transformers

from verl_sql.prm.encoding import encode
from verl_sql.prm.model import init_prm, make_prm, reads_final
from verl_sql.prm.rendering import STEP_TAG
from verl_sql.prm.scoring import EndpointScorer, TransformersScorer
from verl_sql.prm.served import PRMUnavailable

TEXTS = [f"question {n}\n" + f"s AS (SELECT {n})\n{n} rows: a{STEP_TAG}\n" * (n % 4) for n in range(12)]


class Server:
    """vLLM's `/pooling` in small: reads the tokens, answers with the model's probabilities, token for token."""

    def __init__(self, folder: Path) -> None:
        self.model = transformers.AutoModelForTokenClassification.from_pretrained(folder, dtype=torch.float32).eval()
        self.asked: list[dict[str, Any]] = []
        self.status: Callable[[int], int] = lambda number: 200
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send(200, {"data": [{"id": "prm", "max_model_len": 512}]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append(body)
                status = server.status(len(server.asked))
                self._send(status, server.answer(body) if status == 200 else {"error": "not now"})

            def _send(self, status: int, body: dict[str, Any]) -> None:
                payload = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *_: Any) -> None:
                return

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.address = f"127.0.0.1:{self.http.server_port}"

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        with torch.inference_mode():
            found = self.model(input_ids=torch.tensor(body["input"])).logits.softmax(-1)
        return {"data": [{"index": i, "data": rows.tolist()} for i, rows in enumerate(found)]}


@pytest.fixture
def server(prm: Path) -> Iterator[Server]:
    running = Server(prm)
    yield running
    running.http.shutdown()
    running.http.server_close()


@pytest.fixture(scope="module")
def expected(prm: Path) -> list[list[float]]:
    """One text at a time, by hand."""
    model = transformers.AutoModelForTokenClassification.from_pretrained(prm, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(prm)
    scores = []
    for text in TEXTS:
        ids, tags = encode(tokenizer, text)
        logits = model(input_ids=torch.tensor([ids])).logits[0].tolist()
        scores.append([1 / (1 + math.exp(logits[tag][0] - logits[tag][1])) for tag in tags])
    return scores


@pytest.mark.parametrize("batch_tokens", [1, 200, 16_384])
def test_batches_do_not_matter(prm: Path, expected: list[list[float]], batch_tokens: int) -> None:
    scorer = TransformersScorer(prm, batch_tokens, device="cpu")
    found = scorer.score(TEXTS)
    assert [len(own) for own in found] == [n % 4 for n in range(12)]
    assert [value for own in found for value in own] == pytest.approx([v for own in expected for v in own], abs=1e-5)
    assert scorer.score([]) == []
    assert not scorer.score_final


async def test_a_server_gives_the_same(prm: Path, server: Server, expected: list[list[float]]) -> None:
    scorer = EndpointScorer(server.address, tokenizer=prm, timeout=5.0)
    found = scorer.score(TEXTS)
    assert [value for own in found for value in own] == pytest.approx([v for own in expected for v in own], abs=1e-5)
    assert await scorer.ascore(TEXTS[3]) == found[3]
    body = server.asked[0]
    assert (body["model"], body["task"], body["encoding_format"]) == ("prm", "token_classify", "float")


def test_a_server_that_stumbles_is_asked_again(prm: Path, server: Server) -> None:
    server.status = lambda number: 503 if number == 1 else 200
    (scores,) = EndpointScorer(f"http://{server.address}/v1", "prm", tokenizer=prm, tries=2).score([TEXTS[1]])
    assert len(scores) == 1
    assert len(server.asked) == 2


def test_a_server_that_is_down_raises_and_no_step_is_wrong_for_it(prm: Path) -> None:
    scorer = EndpointScorer("http://127.0.0.1:9", tokenizer=prm, tries=1)
    with pytest.raises(PRMUnavailable, match=r"127\.0\.0\.1:9"):
        scorer.score([TEXTS[1]])


def test_a_step_that_nobody_can_read_is_not_called_correct(prm: Path, tmp_path: Path) -> None:
    model, tokenizer = init_prm(prm)
    model.config.max_position_embeddings = 30
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    step = f"s AS (SELECT 1)\n{'x' * 30}{STEP_TAG}\n"
    assert TransformersScorer(tmp_path, device="cpu").score([step * 3])[0] == pytest.approx([0.0, 0.0, 0.5], abs=1e-3)


def test_an_untrained_model_is_undecided_and_a_policy_is_none(policy: Path, tmp_path: Path) -> None:
    made = make_prm(policy, tmp_path / "orm", outcome=True)
    scorer = TransformersScorer(made, device="cpu")
    assert scorer.score([TEXTS[3]]) == [[0.5, 0.5, 0.5]]
    assert scorer.score_final
    assert reads_final(made)
    with pytest.raises(ValueError, match="holds no process reward model"):
        TransformersScorer(policy)
    with pytest.raises(FileNotFoundError, match="no model folder"):
        make_prm(tmp_path / "nothing", tmp_path / "x")
