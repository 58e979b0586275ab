"""SuPA behind PolyNSI: an agent in Python, and its face of SOAP in Java."""

import json
import os
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from downburst.domain.ordering.providers import Dialect
from downburst_circuits.nsi.refusals import Kind
from kit.nsi.server import Authority
from kit.patience import wait_for
from kit.peers import core, found
from kit.peers.peer import DOMAIN, REQUESTER, Known, Peer, Running
from kit.peers.plane import PORT_MBPS, PORTS, Plane

SOAP, AGENT, FACE, DOCUMENTS = 8443, 50051, 9090, 4321
KNOWN = Known(
    Dialect.P2PS,
    "http://services.ogf.org/nsi/2013/12/descriptions/EVTS.A-GOLE",
    refuses={
        "capacity": Kind.CAPACITY,
        "port": Kind.STP,
        "network": Kind.STP,
        "vlan": Kind.STP,
        "past": Kind.TIME,
    },
    foreign_certificate=frozenset({Kind.CERTIFICATE}),
    stranger=frozenset({Kind.UNKNOWN, Kind.CERTIFICATE}),
    notices_a_cut=True,
)


@contextmanager
def supa(directory: Path, plane: Plane) -> Iterator[Peer]:
    """Both programs, until the end of the block."""
    program, jar = found.prepared("supa/bin/supa", "polynsi.jar")
    java, running, authority = found.java(), Running(directory), Authority(directory, "authority").make()
    url = f"https://127.0.0.1:{SOAP}/soap/connection/provider"
    peer = Peer("supa", url, f"urn:ogf:network:{DOMAIN}:nsa:supa", KNOWN, authority, plane, running)
    try:
        running.start("supa", [str(program), "serve"], _settings(directory, plane))
        flags = ["-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        properties = _properties(directory, authority)
        argv = [str(java), *flags, f"-Dspring.config.additional-location=file:{properties}", "-jar", str(jar)]
        running.start("polynsi", argv, os.environ)
        _await(running)
        yield peer
    finally:
        running.end()


def _await(running: Running) -> None:
    for port in (AGENT, DOCUMENTS, FACE, SOAP):
        wait_for(f"listener on port {port}", partial(_listens, running, port), 180)
    # Ports reach the agent's database only when it makes this document.
    with urllib.request.urlopen(f"http://127.0.0.1:{DOCUMENTS}/topology", timeout=30) as answer:
        answer.read()


def _listens(running: Running, port: int) -> bool:
    running.check()
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _settings(directory: Path, plane: Plane) -> dict[str, str]:
    ports = [{"name": port, "vlans": vlans, "rate_mbps": PORT_MBPS} for port, vlans in PORTS.items()]
    (directory / "ports.json").write_text(json.dumps(ports))
    return {
        **os.environ,
        "PYTHONPATH": str(Path(core.__file__).parent),
        "PEER_CORE": str(plane.describe(directory / "core.json")),
        "PEER_PORTS": str(directory / "ports.json"),
        "database_uri": f"sqlite:///{directory / 'supa.db'}",
        "grpc_server_insecure_host": "127.0.0.1",
        "grpc_server_insecure_port": str(AGENT),
        "grpc_client_insecure_host": "127.0.0.1",
        "grpc_client_insecure_port": str(FACE),
        "document_server_host": "127.0.0.1",
        "document_server_port": str(DOCUMENTS),
        "org_id": DOMAIN,
        "nsa_designator": "nsa:supa",
        "topology": "topology",
        "backend": "supa_core",
        "reserve_timeout": "30",
        "backend_health_check_interval": "5",
    }


def _properties(directory: Path, authority: Authority) -> Path:
    served, names = authority.sign("supa"), "nl.surf.polynsi.client.certificate.distinguished-names"
    lines = [
        f"server.port={SOAP}",
        "server.address=127.0.0.1",
        "server.ssl.enabled=true",
        "server.ssl.client-auth=need",
        "server.ssl.bundle=nsi-soap-server",
        "nl.surf.polynsi.client.certificate.authorize-dn-type=jakarta-servlet-tls-client-cert",
        # Three examples are packaged, and each has to be overwritten.
        *(f"{names}[{number}]=CN={REQUESTER}" for number in range(3)),
        f"spring.grpc.server.port={FACE}",
        f"spring.grpc.client.channel.connection-provider.target=static://127.0.0.1:{AGENT}",
    ]
    for side in ("server", "client"):
        bundle = f"spring.ssl.bundle.pem.nsi-soap-{side}"
        lines += [
            f"{bundle}.keystore.certificate=file:{served.certificate}",
            f"{bundle}.keystore.private-key=file:{served.key}",
            f"{bundle}.truststore.certificate=file:{authority.certificate}",
        ]
    file = directory / "polynsi.properties"
    file.write_text("\n".join(lines) + "\n")
    return file
