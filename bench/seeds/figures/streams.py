"""Figures of streams: tuned TCP (T), depots (R), constant rates over UDP and TCP (U)."""

from bench.seeds.figures.published import NET100, PHOEBUS, VLBI, Published

STREAMS = (
    Published("T1", "tuned buffers over 80 ms, ORNL to PSC: gain", "10 to 143 Mb/s: 14 times", NET100, 14.3),
    Published("T2", "one stream tuned over untuned", "74 over 28 Mb/s: 2.6 times", NET100),
    Published("T3", "parallel streams over one", "52 over 28 Mb/s: 1.86 times", NET100),
    Published(
        "T4",
        "additive increase of 6 segments: like a segment of",
        "6 times the size",
        NET100,
        6.0,
        missing="a kernel with the AIMD parameters of Net100",
    ),
    Published(
        "T5",
        "AIMD (4, 1/8): like so many parallel streams",
        "4 streams",
        NET100,
        4.0,
        missing="a kernel with the AIMD parameters of Net100",
    ),
    Published("T6", "Web100's variables read every 0.1 s", "10 readings a second", NET100),
    Published(
        "T7", "public tests by Java that met loss", "53 %", NET100, missing="a public server of tests and its users"
    ),
    Published("T8", "NWS: the forecaster beside the best single one", "follows the least past error", NET100),
    Published("R1", "depots: SDSC to Columbia, of the slowest segment", "762 of 900 Mb/s", PHOEBUS, 762, "Mb/s"),
    Published("R2", "depots: gain over the direct path", "762 over 380 Mb/s: 2.0 times", PHOEBUS, 2.0),
    Published("R3", "a depot before a lossy edge, Reno", "a short round trip hides modest loss", PHOEBUS),
    Published("R4", "the same, CUBIC", "a short round trip hides modest loss", PHOEBUS),
    Published("R5", "the same, BBR, which came later", "a conjecture on TCP of 2006; BBR came later", PHOEBUS),
    Published("R6", "a session over depots beside its slowest segment", "about the least of its segments", PHOEBUS),
    Published(
        "R7",
        "later runs over the first segment",
        "429 to 491 Mb/s",
        PHOEBUS,
        missing="the path from SDSC to Columbia",
    ),
    Published("U1", "datagrams 12 us apart: lost", "none at 999 Mb/s", VLBI),
    Published("U2", "the same: spread of the spacing at the receiver", "0.10 +- 0.14 us of processing", VLBI),
    Published("U3", "the same: waiting by polling", "polling takes a processor", VLBI),
    Published("U4", "1,448 bytes every 22 us", "525 Mb/s", VLBI, 525, "Mb/s"),
    Published("U5", "1.2 MB behind at 525 Mb/s, peak 620: caught up", "810 packets; 101 ms by W15", VLBI, 101, "ms"),
    Published(
        "U6",
        "TCP at a constant rate after one lost packet",
        "2.5 to 3 ms late at 1 ms, for 44 ms; then in time",
        VLBI,
    ),
    Published("U7", "in flight at 525 Mb/s and 27 ms", "1.8 MB", VLBI, 1.8, "MB"),
    Published("U8", "27 ms: loss that still allows it", "1 packet in 1.24 million", VLBI, 1.24e6, "packets"),
    Published("U9", "udpmon: plateau of the rate", "990 Mb/s of a line of 1 Gb/s", VLBI),
    Published("U10", "udpmon: loss on the plateau", "none", VLBI, unit="%"),
    Published("U11", "flows for days on a lightpath", "steady at 4 Gb/s", VLBI, unit="%"),
    Published("U12", "bursts of others in a shared buffer", "unsteady", VLBI, unit="%"),
    Published("U13", "dccpmon", "the receiver crashed", VLBI, missing="DCCP, which Linux has no more"),
)
