"""LDM's files are read as LDM reads them, and errors name the line."""

from pathlib import Path

import pytest

from downburst.foundation.errors import BadInput
from downburst.ldm.hosts import named_hosts
from downburst.ldm.registry import read_registry, size_bytes
from downburst.ldm.server_file import Accept, Allow, Exec, Multicast, Request, read_server_file

SITE = Path(__file__).parent / "site"


def test_a_server_file_is_read_with_what_it_includes() -> None:
    found = read_server_file(SITE / "ldmd.conf")
    kinds = [type(one) for one in found]
    assert kinds == [Exec] * 3 + [Request] * 5 + [Allow] * 4 + [Accept] * 2 + [Multicast]
    requests = [one for one in found if isinstance(one, Request)]
    assert (requests[0].feeds, requests[0].pattern, requests[0].port) == (0xAF, ".*", 388)
    assert (requests[3].host, requests[3].port) == ("idd.unl.edu", 3880)
    allow = [one for one in found if isinstance(one, Allow)]
    assert (allow[1].feeds, allow[1].ok, allow[1].not_ok) == (11, ".*", "^SECRET")
    assert allow[2].feeds == 0xFFFF_FFFF - (1 << 28)
    assert str(allow[3].spot) == f"{SITE / 'allow.conf'}:4"


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("REQEST WMO .* host", "REQEST is not a keyword"),
        ("REQUEST WMO .*", "the upstream's host is missing"),
        ("REQUEST WOM .* host", "no feed is called WOM"),
        ("REQUEST WMO .* host:99999", "is not host or host:port"),
        ('REQUEST WMO ".* host', "a quotation mark is not closed"),
        ("REQUEST WMO .* host PRIMARY more", "too many words for this line"),
        ("EXEC pqact -f etc/pqact.conf", "put words with blanks in double quotes"),
        ('INCLUDE "ldmd.conf"', "never ends"),
        ('INCLUDE "absent.conf"', "can't be read"),
    ],
)
def test_errors_of_a_server_file_name_the_line(tmp_path: Path, line: str, part: str) -> None:
    (tmp_path / "ldmd.conf").write_text(f"# first\n{line}\n")
    with pytest.raises(BadInput, match=part) as error:
        read_server_file(tmp_path / "ldmd.conf")
    assert "absent" in line or "ldmd.conf:2: " in error.value.sentence


def test_a_registry_is_read_by_its_keys(tmp_path: Path) -> None:
    found = read_registry(SITE / "registry.xml")
    assert found["/hostname"] == "ldm.example.edu"
    assert found["/queue/size"] == "2G"
    for content, part in ((b"<registry>", "is not XML"), (b"<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", "defines entities")):
        (tmp_path / "registry.xml").write_bytes(content)
        with pytest.raises(BadInput, match=part):
            read_registry(tmp_path / "registry.xml")


def test_sizes_have_units() -> None:
    assert [size_bytes(text) for text in ("500M", "2g", "1000", "2X", "", "G")] == [
        500_000_000,
        2_000_000_000,
        1000,
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("pattern", "hosts"),
    [
        (r"^idd\.unl\.edu$", ["idd.unl.edu"]),
        (r"^(A\.edu|b[.]edu)$", ["a.edu", "b.edu"]),
        (r"\.edu$", None),
        (r"^idd[0-9]\.edu$", None),
        (r"^(a|b)\.edu$", None),
        (r"^a\.edu", None),
        (".*", None),
    ],
)
def test_patterns_that_name_hosts_one_by_one_are_known(pattern: str, hosts: list[str] | None) -> None:
    assert named_hosts(pattern) == hosts
