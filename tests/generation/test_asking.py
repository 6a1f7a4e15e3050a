"""Questions with answers of a fixed form, over real HTTP: order, patience, memory, and whose fault it is."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from verl_sql.generation.asked import Asked, AskingError, Unusable
from verl_sql.generation.asking import Ask, Asker
from verl_sql.generation.replies import UnusableReply


def number(reply: str) -> int:
    if not reply.isdigit():
        raise UnusableReply(f"no number: {reply}")
    return int(reply)


def ask(text: Any) -> Ask[int]:
    return Ask(({"role": "user", "content": str(text)},), number)


def asker(endpoint: Any, folder: Path, **options: Any) -> Asker:
    return Asker(Asked(endpoint.url, **({"model": "m", "timeout": 5.0, "retries": 0} | options)), str(folder))


def said(text: str) -> tuple[int, list[tuple[str, str]]]:
    return 200, [(text, "stop")]


def echo(_: int, body: dict[str, Any]) -> tuple[int, list[tuple[str, str]]]:
    return said(body["messages"][0]["content"])


def test_answers_come_in_order_and_few_requests_are_open(endpoint: Any, tmp_path: Path) -> None:
    lock, now = threading.Lock(), [0, 0]

    def slow(number: int, body: dict[str, Any]) -> tuple[int, list[tuple[str, str]]]:
        with lock:
            now[0] += 1
            now[1] = max(now)
        time.sleep(0.01)
        with lock:
            now[0] -= 1
        return echo(number, body)

    endpoint.reply = slow
    assert asker(endpoint, tmp_path, concurrency=3).ask([ask(i) for i in range(30)]) == list(range(30))
    assert 1 < now[1] <= 3
    assert endpoint.requests[0]["response_format"] == {"type": "json_object"}
    assert endpoint.requests[0]["temperature"] == 0


def test_usable_replies_are_asked_for_once(endpoint: Any, tmp_path: Path) -> None:
    endpoint.reply = lambda n, body: said("7") if body["messages"][0]["content"] == "good" else said("what?")
    found = asker(endpoint, tmp_path).ask([ask("good"), ask("bad")])
    assert found == [7, Unusable("no number: what?")]
    again = asker(endpoint, tmp_path, concurrency=9).ask([ask("good"), ask("bad")])
    assert again == found
    assert [r["messages"][0]["content"] for r in endpoint.requests].count("good") == 1
    assert len(endpoint.requests) == 3


def test_an_unusable_reply_is_asked_again_with_some_temperature(endpoint: Any, tmp_path: Path) -> None:
    endpoint.reply = lambda n, _: said("hm" if n < 3 else "5")
    assert asker(endpoint, tmp_path, retries=2).ask([ask("x")]) == [5]
    assert [r["temperature"] for r in endpoint.requests] == [0, 0.7, 0.7]


def test_what_is_wrong_with_one_question_is_its_own(endpoint: Any, tmp_path: Path) -> None:
    def reply(_: int, body: dict[str, Any]) -> tuple[int, list[tuple[str, str]]]:
        text = body["messages"][0]["content"]
        if text == "slow":
            time.sleep(0.6)
        return (400, []) if text == "long" else (200, []) if text == "silent" else said("1")

    endpoint.reply = reply
    found = asker(endpoint, tmp_path, timeout=0.3).ask([ask(t) for t in ("long", "slow", "silent", "fine")])
    assert found == [Unusable("refused with status 400"), Unusable("no reply within 0.3 s"), Unusable("no number: "), 1]


@pytest.mark.parametrize("status", [401, 404, 500])
def test_a_fault_of_the_endpoint_ends_the_run_and_keeps_what_came(status: int, endpoint: Any, tmp_path: Path) -> None:
    endpoint.reply = lambda n, body: said("3") if n <= 2 else (status, [])
    with pytest.raises(AskingError, match="http://127"):
        asker(endpoint, tmp_path, concurrency=1).ask([ask(i) for i in range(6)])
    endpoint.reply = lambda *_: said("3")
    before = len(endpoint.requests)
    assert asker(endpoint, tmp_path).ask([ask(i) for i in range(6)]) == [3] * 6
    assert len(endpoint.requests) - before == 4


def test_a_failed_request_is_tried_again(endpoint: Any, tmp_path: Path) -> None:
    endpoint.reply = lambda n, _: (503, []) if n == 1 else said("2")
    assert asker(endpoint, tmp_path, retries=1).ask([ask("x")]) == [2]


def test_an_endpoint_that_never_gives_anything_usable_ends_the_run(endpoint: Any, tmp_path: Path) -> None:
    endpoint.reply = lambda *_: said("I am a poet")
    with pytest.raises(AskingError, match="none of the first 20 questions got a usable reply; the last: no number"):
        asker(endpoint, tmp_path).ask([ask(i) for i in range(30)])
    assert len(endpoint.requests) <= 30


def test_nobody_there(tmp_path: Path) -> None:
    nowhere = Asked("http://127.0.0.1:9/v1", timeout=2.0, retries=0)
    with pytest.raises(AskingError, match="lists no model"):
        Asker(nowhere, str(tmp_path)).ask([ask(1)])
    with pytest.raises(AskingError, match=r"127\.0\.0\.1:9/v1: "):
        Asker(Asked(nowhere.base_url, "m", retries=0), str(tmp_path)).ask([ask(1)])


def test_the_first_listed_model_is_taken(endpoint: Any, tmp_path: Path) -> None:
    endpoint.reply = echo
    one = asker(endpoint, tmp_path, model=None)
    assert one.model_name() == "listed-model"
    assert one.ask([ask(4)]) == [4]
    assert endpoint.requests[0]["model"] == "listed-model"


@pytest.mark.parametrize(
    "options", [{"base_url": ""}, {"concurrency": 0}, {"retries": -1}, {"timeout": 0}, {"max_tokens": 0}]
)
def test_senseless_settings_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"base_url|must be positive"):
        Asked(**({"base_url": "http://h/v1"} | options))


def test_places_share_the_requests() -> None:
    assert [Asked("http://h/v1", concurrency=8).shared_by(n).concurrency for n in (1, 3, 20)] == [8, 2, 1]
