"""The client against a small server of our own."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hopedgn import Client, HopedgnError, ServerError


class Handler(BaseHTTPRequestHandler):
    """Answers what the test has put into ``server.answers``, and keeps what was asked."""

    def _answer(self):
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.requests.append((self.command, self.path, dict(self.headers), body))
        status, headers, document = self.server.answers.pop(0)
        if status is None:
            self.close_connection = True
            return
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = _answer

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.answers = [], []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def client(server):
    client = Client(f"http://127.0.0.1:{server.server_address[1]}/", token="secret")
    client.pauses = []
    client._sleep = client.pauses.append
    return client


def test_every_method_asks_for_its_address(server, client):
    server.answers = [
        (200, {}, {"events": 2}),
        (200, {}, {"scores": [{"score": 0.5}]}),
        (200, {}, {"src": "ann", "items": [{"dst": "bob"}]}),
        (200, {}, {"id": "a/b"}),
        (200, {}, {"events": 7}),
    ]
    assert client.ingest([("ann", "bob", 1.0), {"src": "bob", "dst": "cem", "time": 2.0}], key="monday")["events"] == 2
    assert client.score([("ann", "bob")]) == [{"score": 0.5}]
    assert client.recommend("ann", 3, exclude_seen=True)["items"][0]["dst"] == "bob"
    assert client.node("a/b")["id"] == "a/b"
    assert client.status()["events"] == 7
    asked = [(method, path) for method, path, _, _ in server.requests]
    assert asked == [
        ("POST", "/v1/events"),
        ("POST", "/v1/score"),
        ("GET", "/v1/recommend?src=ann&k=3&exclude_seen=true"),
        ("GET", "/v1/nodes/a%2Fb"),
        ("GET", "/v1/status"),
    ]
    _, _, headers, body = server.requests[0]
    assert headers["Idempotency-Key"] == "monday" and headers["Authorization"] == "Bearer secret"
    assert body == {"events": [{"src": "ann", "dst": "bob", "time": 1.0}, {"src": "bob", "dst": "cem", "time": 2.0}]}


def test_a_busy_or_broken_server_is_asked_again_with_the_same_key(server, client):
    server.answers = [
        (429, {"Retry-After": "7"}, {}),
        (503, {}, b"busy"),
        (None, {}, None),
        (200, {}, {"events": 1}),
    ]
    assert client.ingest([("ann", "bob", 1.0)])["events"] == 1
    keys = {headers["Idempotency-Key"] for _, _, headers, _ in server.requests}
    assert len(server.requests) == 4 and len(keys) == 1
    assert client.pauses[0] == 7.0 and 0.5 <= client.pauses[1] <= 1.0 and 1.0 <= client.pauses[2] <= 2.0


def test_errors_of_the_server_are_exceptions_with_its_words(server, client):
    server.answers = [(422, {}, {"error": {"code": "time-backwards", "message": "found the time 1 after 2"}}), (404, {}, b"no")]
    with pytest.raises(ServerError, match="found the time 1 after 2") as error:
        client.ingest([("ann", "bob", 1.0)])
    assert (error.value.code, error.value.status, client.pauses) == ("time-backwards", 422, [])
    again = pickle.loads(pickle.dumps(error.value))
    assert (str(again), again.status) == (str(error.value), 422)
    with pytest.raises(HopedgnError, match="found status 404"):
        client.node("none")


def test_a_server_that_stays_away_is_named(client, server):
    server.shutdown()
    server.server_close()
    with pytest.raises(ServerError, match="could not reach http://127.0.0.1") as error:
        client.status()
    assert error.value.status == 0 and len(client.pauses) == client.retries
    with pytest.raises(HopedgnError, match="expected one that begins with http"):
        Client("localhost:8080")


def test_the_real_server_takes_events_in_and_answers(csv, tmp_path):
    command = [sys.executable, "-m", "hopedgn", "serve", "--data", str(csv), "--log", str(tmp_path / "live"), "--listen", "127.0.0.1:0"]
    with subprocess.Popen([*command, "--json", "--quiet"], stdout=subprocess.PIPE, text=True) as process:
        try:
            document = ""
            for line in process.stdout:
                document += line
                if line.rstrip() == "}":
                    break
            started = json.loads(document)
            client = Client(started["address"])
            before = client.status()["events"]
            assert client.ingest([("zoe", "0", 1e9), ("zoe", "1", 1e9)]) == {"accepted": 2, "duplicates": 0, "first_seq": before + 1, "last_seq": before + 2, "watermark": 1e9}
            score = client.score([("zoe", "0"), ("unheard-of", "0")])
            assert score[0]["known"] == {"src": True, "dst": True} and not score[1]["known"]["src"]
            assert 0 <= score[0]["score"] <= 1
            best = client.recommend("zoe", 3, reasons=True)
            assert len(best["items"]) == 3 and best["seq"] == before + 2
            assert client.node("zoe")["events"] == 2
            with pytest.raises(ServerError, match="at least 1000000000") as error:
                client.ingest([("zoe", "0", 5.0)])
            assert (error.value.code, error.value.status) == ("late-event", 422)
        finally:
            process.terminate()
            assert process.wait(30) == 0
