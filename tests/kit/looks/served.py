"""The real api and page of a hub in a fixed state, served on the loopback interface; its node is in memory."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import uvicorn

from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst_api.app import create_app
from downburst_api.runtime import Runtime
from factories import AUTHORIZATION, runtime
from kit.looks.fleet import NOW

DIST = Path(__file__).resolve().parents[3] / "services" / "dashboard" / "dist"
HISTORY = timedelta(days=30)
"""The age of the hub."""
HEADERS = AUTHORIZATION
"""Of a browser that has all rights."""


@contextmanager
def served(scratch: Path, fill: Callable[[Runtime], None]) -> Iterator[str]:
    """The address of a hub that was filled and then stands still."""
    assert (DIST / "index.html").exists(), "the page is not built; run: make setup-test"
    # The interpreter's own time goes into no picture: the clock of the hub stands.
    clock = FakeClock(NOW - HISTORY)
    ledger = Ledger.open(f"sqlite:///{scratch / 'ledger.sqlite'}", clock=clock)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        hub, _ = runtime(scratch / "hub", ledger, clock)
        fill(hub)
        clock.advance((NOW - clock.now()).total_seconds())
        server = uvicorn.Server(uvicorn.Config(create_app(hub, page=DIST), log_level="error"))
        serving = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
        serving.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            hub.bus.close()
            serving.join()
            ledger.close()
