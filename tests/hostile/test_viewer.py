"""The live viewer among strangers: foreign pages, rebound names, long paths, junk; nothing gets in,
nothing is printed."""

import asyncio
import contextlib
import http.client
import random
import re
import socket

import pytest

import psiphi as pp
from psiphi import viewer
from psiphi.apps.viewer.live import server_security
from tests.hostile.junk import JUNK

viser = pytest.importorskip("viser", reason="viser is not installed (pip install 'psiphi[viewer]')")
pack = pytest.importorskip("msgspec").msgpack.encode


@pytest.fixture(scope="module")
def shown():
    with viewer.view(pp.load("ur5"), port=8460) as running:
        yield running


@pytest.fixture(autouse=True)
def _silence(capfd):
    """Whatever strangers do, the user's terminal stays as it was."""
    yield
    assert capfd.readouterr() == ("", "")


def get(shown, path: str, **headers: str) -> int:
    line = http.client.HTTPConnection("127.0.0.1", shown.server.get_port(), timeout=10)
    line.request("GET", path, headers=headers)
    return line.getresponse().status


def connect(shown, origin, host=None, version=viser.__version__, messages=()) -> str:
    """Open a connection, send; "open", or why not."""
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidStatus

    async def talk() -> str:
        port = shown.server.get_port()
        options = {
            "subprotocols": [f"viser-v{version}"],
            "host": "127.0.0.1",
            "port": port,
            "max_size": None,
        }
        try:
            async with connect(
                f"ws://{host or f'127.0.0.1:{port}'}", origin=origin, **options
            ) as line:
                for message in messages:
                    await line.send(message)
                await asyncio.wait_for(line.recv(), 10)
                await asyncio.wait_for(await line.ping(), 10)
                return "open"
        except InvalidStatus as error:
            return str(error.response.status_code)
        except Exception as error:
            return type(error).__name__

    return asyncio.run(talk())


def test_its_own_page_is_let_in(shown):
    port = shown.server.get_port()
    assert get(shown, "/") == get(shown, "/", Host=f"localhost:{port}") == 200
    assert connect(shown, shown.url) == "open"
    assert connect(shown, "http://localhost:9000", "localhost:9000") == "open", (
        "a port that was forwarded"
    )


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "2130706433",
        "",
        "x" * 500,
    ],
)
def test_a_rebound_name_is_not_answered(shown, host):
    named = f"{host}:{shown.server.get_port()}"
    assert get(shown, "/", Host=named) == 403
    if re.fullmatch(r"[\w.]+", host):
        assert connect(shown, f"http://{named}", named) == "403"


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        None,
        "https://127.0.0.1",
        "http://127.0.0.1:1",
        "file://",
        "x",
    ],
)
def test_a_foreign_page_is_not_let_in(shown, origin):
    assert connect(shown, origin) == "403"


PATHS = [
    "/" + "a" * 300,
    "/" + "a" * 4000,
    "/%00",
    "/" + "a/" * 450,
    "/../../etc/passwd",
    "/..%2f..%2fetc/passwd",
    "/%2e%2e/x",
    "//x",
]


@pytest.mark.parametrize("path", PATHS, ids=[path[:20] for path in PATHS])
def test_paths_that_lead_nowhere(shown, path):
    assert get(shown, path) == 404


def test_junk_is_dropped_and_the_rest_heard(shown):
    slider = next(iter(shown._sliders.values()))
    uuid, rng = slider._impl.uuid, random.Random(5)
    updates = [{"value": x} for x in ("abc", float("nan"), [[]], None, {}, float("inf"))] + [
        {"update_cb": [1]},
        {},
        7,
    ]
    junk = [
        "text",
        b"",
        b"\xff" * 100,
        b"\x91" * 100_000,
        pack([1]),
        pack({"type": "Nope"}),
        pack({"type": ["x"]}),
    ]
    junk += [
        pack({"type": kind})
        for kind in ("GuiUpdateMessage", "ViewerCameraMessage", "FileTransferPart")
    ]
    junk += [
        pack({"type": "GuiUpdateMessage", "uuid": uuid, "updates": update}) for update in updates
    ]
    junk += [bytes(rng.randrange(256) for _ in range(rng.randrange(60))) for _ in range(100)]
    word = pack({"type": "GuiUpdateMessage", "uuid": uuid, "updates": {"value": 0.25}})
    assert connect(shown, shown.url, messages=[*junk, word]) == "open"
    for _ in range(100):
        if slider.value == 0.25:
            break
        asyncio.run(asyncio.sleep(0.05))
    assert slider.value == 0.25 and slider._impl.update_cb != [1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["pose", "seek"])
def test_junk_in_its_own_calls(shown, name):
    for value in JUNK.values():
        with contextlib.suppress(pp.Error):
            getattr(shown, name)(value)


def test_another_version_and_raw_bytes(shown):
    assert connect(shown, shown.url, version="0.0.1") == "ConnectionClosedError"
    for raw in (
        b"\r\n\r\n",
        b"\x16\x03\x01" * 50,
        b"GET / HTTP/1.1\r\nA: " + b"x" * 100_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\n\r\nabc",
    ):
        with socket.create_connection(("127.0.0.1", shown.server.get_port()), timeout=10) as line:
            line.sendall(raw)
    assert get(shown, "/") == 200


def test_a_viser_without_a_gate_is_not_started(monkeypatch):
    class Ungated:
        def __init__(self, **_):
            pass

        def stop(self):
            pass

    monkeypatch.setattr(viser, "ViserServer", Ungated)
    with pytest.raises(pp.Error, match="foreign pages"):
        viewer.view(pp.load("acrobot"), port=8461)


def test_one_host_one_origin():
    assert server_security.refusal("/", "[::1]:80", "http://[::1]:80", socket=True) is None
    for host in (None, "", "localhost:x", "localhost:123456", "localhost\n", "::1"):
        assert server_security.refusal("/", host, None, socket=False) == 403
