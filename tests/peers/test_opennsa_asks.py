"""OpenNSA's own requester, by the commands of its command line, reserves from the hub as a provider."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from downburst.domain.circuits import CircuitState
from downburst.ledger import Ledger
from kit.namespaces import run_to_end
from kit.nsi import words
from kit.nsi.server import Authority
from kit.peers import core, found
from kit.ports import free_port
from unit.circuits.nsi.lending import CLOCK, Lending, lending, until

GLOBAL_ID = "urn:uuid:00000000-0000-4000-8000-00000000beef"
ENDS = "north.example:2026:topology"


@dataclass
class OpenNsa:
    """The client, a process for each command."""

    python: Path
    source: Path
    given: dict[str, object]

    async def asks(self, command: str, **more: object) -> str:
        """Carries out a command; its log."""
        script = Path(core.__file__).with_name("opennsa_asks.py")
        process = await asyncio.create_subprocess_exec(
            str(self.python),
            str(script),
            command,
            json.dumps(self.given | more),
            env={**os.environ, "PYTHONPATH": str(self.source)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(90):
            said, _ = await process.communicate()
        print(said.decode())
        assert process.returncode == 0
        return said.decode()


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Lending]:
    files = Authority(tmp_path, "authority").make().sign("lender")
    ledger = Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}", CLOCK)
    async with lending(ledger, files) as opened:
        yield opened
    ledger.close()


@pytest.fixture
def opennsa(tmp_path: Path, hub: Lending) -> OpenNsa:
    twistd, source = found.prepared("opennsa/bin/twistd", "opennsa-source/opennsa")
    authority = Authority(tmp_path, "authority")
    files, trusted = authority.sign("hub"), tmp_path / "trusted"
    trusted.mkdir()
    name = run_to_end(["openssl", "x509", "-hash", "-noout", "-in", str(authority.certificate)]).strip()
    shutil.copy(authority.certificate, trusted / f"{name}.0")
    given = {
        "url": hub.url,
        "provider": words.PROVIDER_NSA,
        "requester": words.REQUESTER_NSA,
        "key": str(files.key),
        "certificate": str(files.certificate),
        "authorities": str(trusted),
        "port": free_port(),
        "source": f"{ENDS}:hub-eth0#vlan=100-119",
        "dest": f"{ENDS}:unl.edu-eth1#vlan=120-139",
        "begin": (datetime.now(UTC) + timedelta(seconds=30)).replace(tzinfo=None).isoformat(),
        "mbps": 50,
        "global_id": GLOBAL_ID,
    }
    return OpenNsa(twistd.parent / "python", source.parent, given)


async def test_opennsa_reserves_provisions_releases_and_terminates(hub: Lending, opennsa: OpenNsa) -> None:
    said = await opennsa.asks("rprt")
    for word in ("created and held", "committed", "provisioned", "released", "terminated"):
        assert word in said
    await until(lambda: not hub.register.open)


async def test_opennsa_reserves_queries_and_terminates_step_by_step(hub: Lending, opennsa: OpenNsa) -> None:
    assert "Reservation committed" in await opennsa.asks("reserve")
    (circuit,) = hub.register.open.values()
    assert (circuit.state, circuit.rate_out_bps) == (CircuitState.ADMITTED, 50_000_000)
    (one,) = hub.agent.book.open()
    assert "provisioned" in await opennsa.asks("provision", connection=one.connection_id)
    for question in ("query", "recursive"):
        listed = await opennsa.asks(question)
        assert one.connection_id in listed
        assert "ReserveStart, Provisioned, Created" in listed
    assert "terminated" in await opennsa.asks("terminate", connection=one.connection_id)
    await until(lambda: not hub.register.open)


async def test_opennsa_shows_the_calendars_refusal(hub: Lending, opennsa: OpenNsa) -> None:
    assert "Reservation committed" in await opennsa.asks("reserve", mbps=900)
    said = await opennsa.asks("reserve", mbps=200, global_id=GLOBAL_ID.replace("beef", "cafe"))
    assert "circuit 1 holds 900 Mb/s out" in said
    assert len(hub.register.open) == 1
