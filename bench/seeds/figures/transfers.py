"""Figures of bulk transfers and their logs, and of networks of 10 and 100 Gb/s."""

from bench.seeds.figures.published import ANI, SC12, UVA, VLBI, Published

LOGS = "the logs of these transfers (GridFTP usage statistics)"
TRANSFERS = (
    Published("B1", "parallel streams for each flow of a transfer node", "4, by ESnet's advice", ANI, 4),
    Published(
        "B2",
        "throughput by the number of stripes, NCAR",
        "follows it from 3 servers to 1",
        UVA,
        missing="three GridFTP servers behind one name",
    ),
    Published("B3", "processor time of GridFTP", "100 % at 5.4 Gb/s: 1.48 s/GB", ANI, unit="s/GB"),
    Published(
        "B4", "processor time of GridFTP over that of iperf", "iperf 34 % at 9.4 Gb/s, 0.29 s/GB: 5.1 times", ANI
    ),
    Published("B5", "sessions of NCAR-NICS, gap 1 minute", "217 of 52,519 transfers", UVA),
    Published("B6", "sessions of SLAC-BNL, gap 1 minute", "2,233 of 133,346 transfers", UVA, missing=LOGS),
    Published("B7", "sessions that suit a circuit of 1 minute set-up", "NCAR 63 %, SLAC 13.4 %", UVA, missing=LOGS),
    Published("B8", "the same in the paper", "NCAR 56 %, 90 % of the transfers", SC12, missing=LOGS),
    Published("B9", "longest session", "2.4 TB in 48,420 s", UVA, missing=LOGS),
    Published("B10", "largest session", "2.7 TB in 7.5 h: 808 Mb/s", UVA, 800, "Mb/s", LOGS),
    Published(
        "B11",
        "145 transfers of 32 GB: throughput against concurrency",
        "correlation 0.03; the disk is suspected",
        UVA,
    ),
    Published(
        "B12", "the same: spread of the throughput", "0.76 to 3.64 Gb/s, quartiles 695 Mb/s apart", UVA, missing=LOGS
    ),
    Published(
        "B13",
        "ten streams over 48.6 ms",
        "97.9 Gb/s",
        ANI,
        missing="a network card and a path of 100 Gb/s",
    ),
    Published("B14", "RoCE on a circuit", "99 % of its rate", ANI, missing="a network card with RDMA"),
    Published("B15", "one stream on 10 GE", "4 Gb/s", VLBI, missing="two hosts with 10 GE cards"),
    Published("B16", "both directions on 10 GE", "3.8 and 2.2 Gb/s", VLBI, missing="two hosts with 10 GE cards"),
)
