"""Runs a scene: starts hub and sites, plays, waits for the last receipt, checks the sites' files, reports."""

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from downburst.foundation.errors import BadInput, Failure
from downburst.settings.hub import load_settings
from downburst_app.demo.checker import PlayRecord, SiteVerdict, check_all
from downburst_app.demo.children import Children
from downburst_app.demo.hub import Document, HubApi, HubPlace, settle, until_true
from downburst_app.demo.report import Outcome, as_json, closing_words, feeds_table, sites_table
from downburst_app.demo.scene import Scene, SiteSpec
from downburst_app.demo.view import View
from downburst_app.demo.waiting import last_figures, last_receipts
from downburst_app.play.player import Player
from downburst_worker.binary import find_node


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a scene's run."""

    exit: bool
    report: Path | None
    keep: Path | None
    http_port: int
    concurrency: int


async def demonstrate(scene: Scene, options: Options, console: Console) -> int:
    """Runs the whole demonstration; the exit code is 0 only if every site holds exactly the expected products."""
    home = _home(options.keep)
    good = False
    try:
        _check_room(scene, home)
        stage = Stage(scene, options, console, home)
        try:
            good = (await stage.run()).good
        except asyncio.CancelledError:
            good = stage.outcome is None or stage.outcome.good
            raise
        finally:
            await stage.close()
    finally:
        _leave(home, keep=options.keep is not None, good=good, console=console)
    return 0 if good else 1


def checked_report_path(report: Path | None) -> Path | None:
    """The path of the report, checked to be writable before anything runs."""
    if report is None:
        return None
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        there = report.exists()
        report.touch()
        if not there:
            report.unlink()
    except OSError as error:
        raise BadInput(
            f"the report {report} can't be written ({error.strerror}); give --report another path"
        ) from error
    return report


class Stage:
    """The processes, records and figures of one demonstration."""

    def __init__(self, scene: Scene, options: Options, console: Console, home: Path) -> None:
        self._scene = scene
        self._options = options
        self._console = console
        self._home = home
        self._node = find_node(load_settings().node)
        self._place: HubPlace = settle(
            home, http_port=options.http_port, time_scale=scene.time_scale, node=self._node
        )
        self._api = HubApi(self._place.url)
        self._children = Children(home / "logs")
        self._record = PlayRecord(home / "played.jsonl")
        self._player = Player(self._place.url, concurrency=options.concurrency, before_send=self._record.add)
        self._phase = "starting"
        self._began_s = time.monotonic()
        self.outcome: Outcome | None = None
        """Set when everything has been played and checked."""

    async def run(self) -> Outcome:
        """Plays the scene to its end; without `exit` it continues until cancelled."""
        return await self._unless_a_child_ends(self._perform())

    async def close(self) -> None:
        """Ends every remaining process."""
        self._record.close()
        await self._api.close()
        await self._children.stop()

    async def _perform(self) -> Outcome:
        self._say(f"[bold]Downburst demonstration[/bold]: {self._scene.title}, {len(self._scene.sites)} sites")
        await self._start()
        self._say(f"the page is at [bold]{self._place.url}[/bold]; all files are in {self._home}")
        with View(self._console, address=self._place.url) as view:
            showing = asyncio.create_task(self._show(view))
            try:
                self.outcome = await self._play_and_check()
                report = self._written(self.outcome)
                if not self._options.exit:
                    self._tell(report)
                    self._phase = "done, Ctrl-C ends"
                    await asyncio.Event().wait()
            finally:
                showing.cancel()
                with suppress(asyncio.CancelledError):
                    await showing
        self._tell(report)
        return self.outcome

    async def _start(self) -> None:
        """Starts the hub, configures it, then starts the sites."""
        await self._children.start("hub", self._place.argv())
        await until_true(self._api.up, limit_s=START_LIMIT_S, what="the hub did not come up")
        for feed in self._scene.feeds:
            await self._api.add_feed(feed)
        for site in self._scene.sites:
            token = self._home / "tokens" / f"{site.name}.token"
            token.parent.mkdir(mode=0o700, exist_ok=True)
            token.touch(mode=0o600)
            token.write_text(await self._api.add_site(site) + "\n", encoding="utf-8")
            where = ("--hub", self._place.sites, "--token-file", str(token), "--dir", str(self._directory(site)))
            await self._children.start(site.name, [str(self._node), "receive", *where])
        await until_true(self._all_connected, limit_s=START_LIMIT_S, what="not all sites connected")

    async def _all_connected(self) -> bool:
        """True if every site has a session with all its subscribed feeds."""
        told = {site["site"]: site for site in (await self._api.overview())["sites"]}
        return all(
            told[site.name]["connected"]
            and {wish.feed for wish in site.subscriptions} <= {feed["feed"] for feed in told[site.name]["feeds"]}
            for site in self._scene.sites
        )

    async def _play_and_check(self) -> Outcome:
        self._phase = "playing"
        play = await self._player.play(self._scene.products())
        self._phase = "waiting for the last receipt"
        directories = {site.name: self._directory(site) / "received" for site in self._scene.sites}
        troubles = []
        try:
            await last_receipts(self._api, self._scene.sites, directories, self._record.sent)
        except Failure as error:
            # The check below names the missing products, so it is worth more than the bare failure.
            troubles.append(error.sentence)
        wall_s = time.monotonic() - self._began_s
        latency = await last_figures(self._api)
        plans = {feed.name: await self._api.plans(feed.name) for feed in self._scene.feeds}
        egress_bytes = await self._api.egress_bytes()
        self._phase = "checking every file"
        if self._options.exit:
            troubles += await self._stop_sites()
        verdicts = await self._check(directories)
        return Outcome(
            scene=self._scene.title,
            played=self._record.played,
            verdicts=verdicts,
            plans=plans,
            latency=latency,
            hub_egress_bytes=egress_bytes,
            play=play,
            wall_s=wall_s,
            troubles=troubles,
        )

    async def _check(self, directories: dict[str, Path]) -> list[SiteVerdict]:
        return await asyncio.to_thread(check_all, self._scene.sites, directories, self._record.sent)

    async def _stop_sites(self) -> list[str]:
        """Ends the sites before their files are read, so that no file arrives after the check."""
        return [f"{name} did not end cleanly; see its log" for name in await self._children.stop(kind="site-")]

    async def _show(self, view: View) -> None:
        while True:
            with suppress(Failure):
                view.show(await self._api.overview(), self._player.summary, phase=self._phase)
            await asyncio.sleep(view.every_s)

    def _written(self, outcome: Outcome) -> Document:
        report = as_json(outcome)
        for path in filter(None, (self._options.report, self._home / "report.json")):
            path.write_text(json.dumps(report, indent=1, default=str) + "\n", encoding="utf-8")
        return report

    def _tell(self, report: Document) -> None:
        self._console.print(feeds_table(report), sites_table(report))
        for line in closing_words(report):
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _directory(self, site: SiteSpec) -> Path:
        return self._home / "sites" / site.name

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)

    async def _unless_a_child_ends(self, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        doing = asyncio.create_task(work)
        watching = asyncio.create_task(self._children.first_end())
        try:
            done, _ = await asyncio.wait((doing, watching), return_when=asyncio.FIRST_COMPLETED)
            if doing in done:
                return doing.result()
            raise watching.result()
        finally:
            for task in (doing, watching):
                task.cancel()
            await asyncio.gather(doing, watching, return_exceptions=True)


def _home(keep: Path | None) -> Path:
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="downburst-demo-"))
    home = keep.expanduser().absolute()
    if home.is_dir() and any(home.iterdir()):
        raise BadInput(f"{home} is not empty; give --keep a directory that is empty or does not exist")
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{home} can't be made ({error.strerror}); give --keep another directory") from error
    return home


def _check_room(scene: Scene, home: Path) -> None:
    """Hub and sites each keep a log, and each site keeps files beside it."""
    if scene.total_bytes is None:
        return
    needed = scene.total_bytes * (1 + 2 * len(scene.sites)) + SPARE_BYTES
    free = shutil.disk_usage(home).free
    if free < needed:
        raise Failure(
            f"this demonstration writes up to {needed / 1e9:.1f} GB below {home} and {free / 1e9:.1f} GB are free; "
            "give --keep a directory on a larger disk, fewer --minutes or fewer --sites"
        )


def _leave(home: Path, *, keep: bool, good: bool, console: Console) -> None:
    if keep or not good:
        console.print(f"kept for inspection: {home}", highlight=False, soft_wrap=True)
    else:
        shutil.rmtree(home, ignore_errors=True)


START_LIMIT_S = 60.0
SPARE_BYTES = 200_000_000
