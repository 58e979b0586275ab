"""OpenNSA with its PostgreSQL."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from downburst.domain.ordering.providers import Dialect
from downburst_circuits.nsi.refusals import Kind
from kit.namespaces import run_to_end
from kit.nsi.server import Authority
from kit.patience import wait_for
from kit.peers import core, found
from kit.peers.peer import DOMAIN, REQUESTER, Known, Peer, Running
from kit.peers.plane import PORT_MBPS, PORTS, Plane
from kit.postgres import PASSWORD, ROLE, Postgres, postgres

PORT = 9443
KNOWN = Known(
    Dialect.NONE,
    "http://services.ogf.org/nsi/2013/07/descriptions/EVTS.A-GOLE",
    refuses={
        # It looks at no rates.
        "capacity": None,
        "port": Kind.STP,
        "network": Kind.STP,
        "vlan": Kind.STP,
        "past": Kind.TIME,
    },
    foreign_certificate=frozenset({Kind.CERTIFICATE}),
    stranger=frozenset({Kind.UNKNOWN, Kind.CERTIFICATE}),
    notices_a_cut=False,
)


@contextmanager
def opennsa(directory: Path, plane: Plane) -> Iterator[Peer]:
    """The agent and its database, until the end of the block."""
    twistd, source, schema = found.prepared(
        "opennsa/bin/twistd", "opennsa-source/opennsa", "opennsa-source/datafiles/schema.sql"
    )
    running, authority = Running(directory), Authority(directory, "authority").make()
    url = f"https://127.0.0.1:{PORT}/NSI/services/CS2"
    peer = Peer("opennsa", url, f"urn:ogf:network:{DOMAIN}:nsa", KNOWN, authority, plane, running)
    with postgres() as server:
        database = server.database()
        server.execute(schema.read_text(), database)
        _configure(directory, authority, server, database)
        places = [str(source.parent), str(Path(core.__file__).parent)]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(places),
            "PGPORT": str(server.port),
            "PEER_CORE": str(plane.describe(directory / "core.json")),
        }
        try:
            running.start("opennsa", [str(twistd), "--nodaemon", "--no_save", "--python", "agent.tac"], environment)
            wait_for("OpenNSA", lambda: _listens(running), 60)
            yield peer
        finally:
            running.end()


def _listens(running: Running) -> bool:
    running.check()
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", PORT)) == 0


def _configure(directory: Path, authority: Authority, server: Postgres, database: str) -> None:
    served, trusted = authority.sign("opennsa"), directory / "authorities"
    trusted.mkdir()
    shutil.copy(authority.certificate, trusted / f"{_hash(authority.certificate)}.0")
    ports = [f"ethernet {port} - vlan:{vlans} {PORT_MBPS} {port} -" for port, vlans in PORTS.items()]
    (directory / "ports.nrm").write_text("\n".join(ports) + "\n")
    (directory / "agent.conf").write_text(
        f"""[service]
domain={DOMAIN}
host=127.0.0.1
port={PORT}
tls=true
key={served.key}
certificate={served.certificate}
certdir={trusted}
allowedhosts={REQUESTER}
logfile=
dbhost={server.host}
database={database}
dbuser={ROLE}
dbpassword={PASSWORD}

[custombackend:topology]
module=opennsa_core
nrmmap={directory / "ports.nrm"}
"""
    )
    (directory / "agent.tac").write_text(
        f"from opennsa import setup\napplication = setup.createApplication({str(directory / 'agent.conf')!r})\n"
    )


def _hash(certificate: Path) -> str:
    return run_to_end(["openssl", "x509", "-hash", "-noout", "-in", str(certificate)]).strip()
