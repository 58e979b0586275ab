"""Child processes: watched, ended by their id, and gone even if the demonstration is killed."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from downburst_app.demo.children import Children

SLEEP = ["/bin/sleep", "1000"]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - other processes set no event
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def test_children_end_when_told(tmp_path: Path) -> None:
    children = Children(tmp_path)
    hub = await children.start(
        "hub", ["/bin/sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done"]
    )
    site = await children.start("site-1", SLEEP)
    await until(lambda: "up" in hub.log.read_text())
    assert await children.stop(kind="site-") == ["site-1"]
    assert not alive(site.pid)
    assert alive(hub.pid)
    assert await children.stop() == []
    assert not alive(hub.pid)
    assert "bye" in hub.log.read_text()


async def test_one_that_ignores_the_signal_is_killed(tmp_path: Path) -> None:
    children = Children(tmp_path)
    child = await children.start("hub", ["/bin/sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.01; done"])
    await until(lambda: "up" in child.log.read_text())
    assert not await child.stop(patience_s=0.05)
    assert not alive(child.pid)


async def test_an_end_by_itself_is_told_with_the_last_words(tmp_path: Path) -> None:
    children = Children(tmp_path)
    await children.start("site-1", SLEEP)
    await children.start("site-2", ["/bin/sh", "-c", "echo refused: token used; exit 3"])
    failure = await children.first_end()
    assert "site-2 ended with exit code 3" in failure.sentence
    assert "refused: token used" in failure.sentence
    await children.stop()


async def test_a_child_started_later_is_watched_too(tmp_path: Path) -> None:
    children = Children(tmp_path)
    await children.start("hub", SLEEP)
    watching = asyncio.create_task(children.first_end())
    await asyncio.sleep(0.05)
    site = await children.start("site-1", SLEEP)
    os.kill(site.pid, signal.SIGKILL)
    assert "site-1 was ended by signal 9" in (await watching).sentence
    await children.stop()


async def test_no_child_outlives_a_killed_parent(tmp_path: Path) -> None:
    program = (
        "import asyncio, pathlib, sys, time\n"
        "from downburst_app.demo.children import Children\n"
        "async def main():\n"
        f"    child = await Children(pathlib.Path({str(tmp_path)!r})).start('hub', {SLEEP!r})\n"
        "    print(child.pid, flush=True)\n"
        "    await asyncio.sleep(1000)\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    await until(lambda: "sleep" in Path(f"/proc/{pid}/cmdline").read_text())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    await until(lambda: not alive(pid))
