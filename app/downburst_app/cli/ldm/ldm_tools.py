"""`downburst notifyme`, `feedme`, `ldmping`: LDM's tools with their usual options, by the node's `ldm`."""

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from downburst.foundation.errors import BadInput, Failure
from downburst_app.cli.numbers import A_DAY_S, A_YEAR_S, real_number
from downburst_worker.binary import find_node

Host = Annotated[str, typer.Option("-h", help="Servers: HOST[:PORT].")]
Feed = Annotated[str, typer.Option("-f", help="LDM's feed types, for example NGRID or 'IDS|DDPLUS'.")]
Pattern = Annotated[str, typer.Option("-p", help="Identifiers that match this extended regular expression.")]
Offset = Annotated[int, typer.Option("-o", help="Start with products created this many seconds ago.")]
Total = Annotated[float | None, real_number("-T", least=0, most=A_YEAR_S, help="End after this many seconds.")]
Count = Annotated[int | None, typer.Option("-n", help="End after this many products.")]


def notifyme(  # noqa: PLR0913
    *,
    host: Host = "localhost",
    feed: Feed = "ANY",
    pattern: Pattern = ".*",
    offset: Offset = 0,
    total_s: Total = None,
    count: Count = None,
    verbose: Annotated[
        bool, typer.Option("-v", help="For compatibility with LDM; each product is always reported.")
    ] = False,
    logfile: Annotated[str, typer.Option("-l", help="Log file; - is standard output.")] = "-",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Print a line for each product that an LDM gets: time, size, creation time, feed type, number, identifier.

    Example: downburst notifyme -v -l- -h idd.unidata.ucar.edu -f 'IDS|DDPLUS' -p '^W' -o 3600
    """
    del verbose
    asked = ["notify", host, "--feed", feed, "--pattern", pattern, "--since", str(offset)]
    asked += ["--json"] if as_json else []
    out = sys.stdout if logfile == "-" else _opened(logfile)
    for line in _lines(total_s, *asked, *_counted(count)):
        print(line, end="", file=out, flush=True)


def feedme(  # noqa: PLR0913
    *,
    host: Host = "localhost",
    feed: Feed = "ANY",
    pattern: Pattern = ".*",
    offset: Offset = 0,
    total_s: Total = None,
    count: Count = None,
    verbose: Annotated[bool, typer.Option("-v", help="Report each product on standard error.")] = False,
) -> None:
    """Write the products that an LDM has to standard output, one after the other.

    Example: downburst feedme -v -h idd.unidata.ucar.edu -f NEXRAD3 -p /pN0RFTG -n 1 > volume
    """
    with tempfile.TemporaryDirectory(prefix="downburst-feedme-") as directory:
        asked = ["fetch", host, "--feed", feed, "--pattern", pattern, "--since", str(offset), "--to", directory]
        for line in _lines(total_s, *asked, *_counted(count)):
            product = json.loads(line)
            _copied(Path(product["file"]))
            if verbose:
                print(_described(product), file=sys.stderr, flush=True)


def ldmping(
    servers: Annotated[list[str] | None, typer.Argument(help="Servers: HOST[:PORT].")] = None,
    *,
    host: Annotated[str | None, typer.Option("-h", help="Server, as in the arguments.")] = None,
    interval_s: Annotated[int, typer.Option("-i", help="Seconds between two requests; 0: one request.")] = 0,
    timeout_s: Annotated[
        float, real_number("-t", least=0.001, most=A_DAY_S, help="How long to wait for an answer, in seconds.")
    ] = 10.0,
    verbose: Annotated[
        bool, typer.Option("-v", help="For compatibility with LDM; each answer is always reported.")
    ] = False,
) -> None:
    """Ask whether LDMs answer, and print state, time, port and host of each; exits with 0 if all of the last
    answers came.

    Example: downburst ldmping -i 0 -h idd.unidata.ucar.edu
    """
    del verbose
    asked = [*([host] if host else []), *(servers or [])] or ["localhost"]
    print(f"{_now()}      State    Elapsed Port   Remote_Host           rpc_stat")
    while True:
        answers = [_ping(server, timeout_s) for server in asked]
        if interval_s <= 0:
            raise typer.Exit(0 if all(answers) else 1)
        time.sleep(interval_s)


def _ping(server: str, timeout_s: float) -> bool:
    began = time.monotonic()
    command = [node_path(), "ldm", "ping", "--json", "--timeout", str(timeout_s), server]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    elapsed_s = time.monotonic() - began
    name, port = _split(server)
    if done.returncode == 0:
        found = json.loads(done.stdout)
        elapsed_s = (found["connect_us"] + found["answer_us"]) / 1e6
        state, why = "RESPONDING", ""
    elif done.returncode == BAD_USE:
        raise BadInput(sentence_of(done.stderr))
    else:
        why = sentence_of(done.stderr)
        state = "NAMED" if "can't be reached" in why else "ADDRESSED"
    print(f"{_now()} {state:>10} {elapsed_s:10.6f} {port:>4}   {name:<20}  {why}".rstrip(), flush=True)
    return done.returncode == 0


def _lines(total_s: float | None, *arguments: str) -> Iterator[str]:
    """The output lines of the node's tool, until it ends or is stopped after `total_s`; raises its error."""
    is_over = threading.Event()
    with tempfile.TemporaryFile("w+") as errors:
        tool = subprocess.Popen(
            [node_path(), "ldm", *arguments], stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1
        )

        def end() -> None:
            is_over.set()
            tool.terminate()

        timer = threading.Timer(total_s, end) if total_s is not None else None
        try:
            if timer is not None:
                timer.start()
            with suppress(KeyboardInterrupt):
                yield from tool.stdout or ()
                if tool.wait() and not is_over.is_set():
                    errors.seek(0)
                    raise (BadInput if tool.returncode == BAD_USE else Failure)(sentence_of(errors.read()))
        finally:
            if timer is not None:
                timer.cancel()
            tool.terminate()
            tool.communicate()


def _copied(path: Path) -> None:
    with path.open("rb") as product:
        while piece := product.read(1 << 20):
            sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
    path.unlink()


def _described(product: dict[str, Any]) -> str:
    made = datetime.fromtimestamp(product["created_us"] / 1e6, UTC)
    stamp = f"{made:%Y%m%d%H%M%S}.{made.microsecond // 1000:03}"
    head = f"{_now()} {product['size']:>8} {stamp} {product['feed']:>7} {product['sequence']:03}"
    return f"{head}  {product['id']}"


def _counted(count: int | None) -> list[str]:
    return [] if count is None else ["-n", str(count)]


def _opened(logfile: str) -> Any:
    try:
        return Path(logfile).open("a")
    except OSError as error:
        raise BadInput(f"{logfile} can't be written: {error.strerror}; choose another file") from error


def node_path() -> str:
    """The path of the node's binary, from the settings."""
    from downburst.settings.hub import load_settings

    return str(find_node(load_settings().node))


def _split(server: str) -> tuple[str, str]:
    name, colon, port = server.rpartition(":")
    if colon and port.isdecimal() and (":" not in name or name.endswith("]")):
        return name, port
    return server, "388"


def sentence_of(errors: str) -> str:
    """The sentence with which the node ended."""
    said = errors.strip().splitlines() or ["the tool printed nothing"]
    told = next((line for line in said if line.startswith(("downburst-node: ", "error: "))), said[-1])
    return told.removeprefix("downburst-node: ").removeprefix("error: ")


def _now() -> str:
    return f"{datetime.now(UTC):%b %d %H:%M:%S}"


BAD_USE = 2
"""Exit code of the node's tools after bad usage."""
