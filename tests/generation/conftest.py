"""An OpenAI-compatible endpoint on this machine whose answers a test writes."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Reply = Callable[[int, dict[str, Any]], tuple[int, list[tuple[str, str]]]]


class Endpoint:
    """Keeps every request; `reply(number, body)` gives a status and (text, finish reason) for each choice."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.reply: Reply = lambda _, body: (200, [("text", "stop")] * body["n"])
        lock = threading.Lock()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send(200, {"object": "list", "data": [{"id": "listed-model", "object": "model"}]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    endpoint.requests.append(body)
                    number = len(endpoint.requests)
                status, texts = endpoint.reply(number, body)
                choices = [
                    {"index": i, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
                    for i, (text, reason) in enumerate(texts)
                ]
                whole = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": choices}
                self._send(status, whole if status == 200 else {"error": {"message": "refused"}})

            def _send(self, status: int, body: dict[str, Any]) -> None:
                payload = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *_: Any) -> None:
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    running = Endpoint()
    yield running
    running.close()
