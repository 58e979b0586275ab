"""`downburst-node tracer` records connections of other processes, and names their limits."""

import csv
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from downburst_app.cli import main
from kit.patience import wait_for
from kit.programs import built

pytestmark = pytest.mark.system

COUNTERS = ("bytes_acked", "busy_time", "rwnd_limited")

READER = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
reads, got = sys.argv[1] == "reads", 1
for _ in iter(lambda: connection.recv(65536) if reads else time.sleep(0.1) or b"x", b""):
    pass
"""

SENDER = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
while True:
    connection.sendall(bytes(65536))
"""


@dataclass
class Flow:
    """A process that sends to another one."""

    port: int
    """Of the reader."""
    sender: int
    """Its process."""

    def is_of(self, row: dict[str, str]) -> bool:
        """True for a sample of this connection, of either end."""
        return f":{self.port}" in row["local"] + " " + row["peer"]


@contextmanager
def flow(*, reads: bool) -> Iterator[Flow]:
    argv = [sys.executable, "-c", READER, "reads" if reads else "stalls"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        port = int(reader.stdout.readline())
        with subprocess.Popen([sys.executable, "-c", SENDER, str(port)], stderr=subprocess.DEVNULL) as sender:
            try:
                yield Flow(port, sender.pid)
            finally:
                sender.kill()
                reader.kill()


def tracer(*options: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    argv = [str(built("downburst-node")), "tracer", *map(str, options)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    return done


def rows(ring: Path, *options: object) -> list[dict[str, str]]:
    return list(csv.DictReader(tracer("--read", "--ring", ring, "--csv", "-", *options).stdout.splitlines()))


def of_sender(found: list[dict[str, str]], it: Flow) -> list[dict[str, str]]:
    return [row for row in found if row["peer"] == f"127.0.0.1:{it.port}"]


def test_a_reader_that_stalls_is_named_and_other_ports_are_not_recorded(tmp_path: Path) -> None:
    ring = tmp_path / "own.ring"
    with flow(reads=False) as stalled, flow(reads=True) as other:
        told = tracer("--port", stalled.port, "--ring", ring, "--seconds", 3).stdout
        sent = told.split(f"127.0.0.1:{stalled.port} (other), from", 1)[1].splitlines()
        assert sent[1].startswith("  receiver: "), told
        assert "the peer" in sent[1]
        assert "stall of" in told
        assert str(other.port) not in told
        found = rows(ring)
        assert found
        assert all(stalled.is_of(row) for row in found)


def test_deltas_add_up_to_the_values_and_only_the_chosen_variables_are_written(tmp_path: Path) -> None:
    ring = tmp_path / "own.ring"
    with flow(reads=True) as busy:
        tracer("--process", busy.sender, "--ring", ring, "--seconds", 2)
        values, deltas = (
            of_sender(rows(ring, "--variables", ",".join(COUNTERS), *more), busy) for more in ((), ("--deltas",))
        )
    assert list(values[0])[4:] == list(COUNTERS)
    assert len(deltas) == len(values) - 1 > 5
    for name in COUNTERS:
        assert sum(int(row[name]) for row in deltas) == int(values[-1][name]) - int(values[0][name])
    assert int(values[-1]["bytes_acked"]) > int(values[0]["bytes_acked"])
    moments = [datetime.fromisoformat(row["time"]) for row in values]
    assert moments == sorted(moments)


def test_a_ring_is_bounded_read_while_it_grows_and_ended_by_a_signal(tmp_path: Path) -> None:
    ring, file = tmp_path / "own.ring", tmp_path / "live.csv"
    with flow(reads=True) as busy:
        options = ["--port", busy.port, "--every-ms", 10, "--ring", ring, "--ring-bytes", 10_000, "--csv", file]
        argv = [str(built("downburst-node")), "tracer", *map(str, options)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
            try:
                wait_for("the ring is full twice over", lambda: file.is_file() and file.read_text().count("\n") > 80)
                assert recorder.poll() is None
                assert 0 < len(rows(ring)) <= 38
                told = tracer("--ring", ring, "--seconds", 1, code=1).stderr
                assert "another process records into it" in told
            finally:
                recorder.send_signal(signal.SIGINT)
            shown, complaints = recorder.communicate(timeout=20)
        assert recorder.returncode == 0, complaints
    assert f"127.0.0.1:{busy.port} (other), from" in shown
    assert ring.stat().st_size == 9_984


def test_the_hubs_command_reads_a_ring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ring, table, plots = (tmp_path / name for name in ("own.ring", "own.csv", "own.html"))
    with flow(reads=False) as stalled:
        tracer("--port", stalled.port, "--ring", ring, "--seconds", 2)
    argv = ["tracer", "--file", str(ring), "--csv", str(table), "--html", str(plots), "--last", "1m"]
    with pytest.raises(SystemExit) as end:
        main(argv)
    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert f"127.0.0.1:{stalled.port} (other)" in shown
    assert "receive" in shown
    assert "data-seconds" in plots.read_text()
    with table.open(newline="") as lines:
        assert all(stalled.is_of(row) for row in csv.DictReader(lines))


def test_what_can_not_be_seen_is_said(tmp_path: Path) -> None:
    ring = tmp_path / "own.ring"
    assert "no process has the id 4000000000" in tracer("--process", 4_000_000_000, "--ring", ring, code=1).stderr
    assert "there are ca_state" in tracer("--variables", "cwnd", "--ring", ring, code=2).stderr
    assert not ring.exists()
    ring.write_text("a text")
    assert "is no ring of samples" in tracer("--ring", ring, "--seconds", 1, code=1).stderr
    assert ring.read_text() == "a text"


@pytest.mark.root
def test_a_user_without_the_right_to_see_a_process_is_told(tmp_path: Path) -> None:
    argv = [str(built("downburst-node")), "tracer", "--process", "1", "--ring", "/nonexistent/own.ring"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, user=65534, check=False, timeout=20)
    except PermissionError:
        pytest.skip("another user can't run the program where it is")
    assert done.returncode == 1
    assert "the sockets of process 1 can't be seen" in done.stderr
    assert "run this as root" in done.stderr
