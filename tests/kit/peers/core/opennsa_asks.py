"""OpenNSA's own requester, driven by the commands of its command line; OpenNSA's Python runs it.

opennsa_asks.py COMMAND '{"url": ..., "provider": ..., ...}'
"""

import json
import sys
from datetime import datetime
from typing import Any

from opennsa import nsa
from opennsa.cli import commands
from opennsa.opennsaTlsContext import opennsa2WayTlsContext
from opennsa.protocols import nsi2
from twisted.internet import defer, reactor, task
from twisted.python import log


def asked(given: dict[str, Any], client: Any, header: Any) -> Any:
    """The command's own function, with what it needs."""
    connection = given.get("connection")
    ends = given.get("source"), given.get("dest"), datetime.fromisoformat(given["begin"]), None
    reserving = (*ends, given["mbps"], None, None, given["global_id"])
    calls = {
        "rprt": lambda: commands.rprt(client, header, *reserving),
        "reserve": lambda: commands.reserve(client, header, *reserving),
        "provision": lambda: commands.provision(client, header, connection, False),
        "query": lambda: commands.querySummary(client, header, None, None),
        "recursive": lambda: commands.queryRecursive(client, header, None, None),
        "terminate": lambda: commands.terminate(client, header, connection),
    }
    return calls[sys.argv[1]]()


def main(_reactor: Any) -> Any:
    """Listens for callbacks, and carries out one command."""
    log.startLogging(sys.stdout)
    given = json.loads(sys.argv[2])
    context = opennsa2WayTlsContext(given["key"], given["certificate"], given["authorities"], True)
    service = nsa.NetworkServiceAgent(given["provider"], given["url"])
    client, site = nsi2.createRequester(
        "127.0.0.1", given["port"], service.endpoint, tls=True, ctx_factory=context, callback_timeout=30
    )
    reactor.listenSSL(given["port"], site, context, interface="127.0.0.1")
    header = nsa.NSIHeader(given["requester"], given["provider"], reply_to=client.requester_client.reply_to)
    return defer.maybeDeferred(asked, given, client, header)


task.react(main)
