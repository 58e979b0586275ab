"""One published figure."""

from dataclasses import dataclass

Value = float | str
"""A number, or a decision such as `multicast`."""


@dataclass(frozen=True)
class Published:
    """A figure of a study, under a number of its own: a letter for the subject, and a count."""

    id: str
    figure: str
    """The subject of the figure."""
    published: str
    """As it was published, in words."""
    source: str
    value: Value | None = None
    """As the models give it; None where no model has such a figure."""
    unit: str = ""
    missing: str = ""
    """The device, service or data that a measurement would need and that a plain machine lacks."""


UVA, NET100, PHOEBUS, DYNES, VLBI = "UVA 2012", "Net100 2002", "Phoebus 2006", "DYNES 2013", "VLBI 2006"
FMTP, MPUP, DRFSM = "FMTP 2015", "MPUP 2016", "DRFSM 2022"
HNTES, SC12, ANI, WORKED = "HNTES 2012", "SC12 2012", "ANI 2012", "worked example"
SOURCES = {
    UVA: "University of Virginia, review of IDD, LDM and VCMTP",
    NET100: "Oak Ridge National Laboratory, Net100 and its Work-Around Daemon",
    PHOEBUS: "Phoebus, depots between segments of a path",
    DYNES: "DYNES, circuits by OSCARS, shaped with tc",
    VLBI: "VLBI over UDP: vlbi_udp, tcpdelay and udpmon",
    FMTP: "Chen et al., FMTP",
    MPUP: "Chen et al., MPUP",
    DRFSM: "Tan et al., Cluster Computing (10.1007/s10586-021-03519-6)",
    HNTES: "Yan, Veeraraghavan et al., hybrid traffic engineering, HPSR 2012 and 2013",
    SC12: "Liu et al., SC12",
    ANI: "tests on ESnet's network and its testbed of 100 Gb/s, as reported with the UVA review",
    WORKED: "example of the selection model, from figures of these studies",
}
"""The sources by their short names."""
