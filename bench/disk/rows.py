"""From runs to rows: the figures of a disk that are compared, and their goals."""

from collections.abc import Mapping, Sequence

from bench.disk.durable import Durable
from bench.disk.giant import Giant
from bench.disk.site_cpu import SiteCpu
from bench.disk.writing import Writing
from bench.harness.memory import Memory
from bench.harness.report import Goal, Row, median

UFTP = "uftp"
MULTICAST, UNICAST = "multicast", "unicast"

TITLES = {
    "1": "bytes written to the disk per product byte, at a site and at the hub: 1 MB, 100 kB, 50 MB",
    "2": "CPU of a site per delivered GB: 1 MB to files, as fast as it goes",
    "3": "a product of 5 GB beside 50 warnings a second: their p99, memory of hub and site",
    "4": "100 kB products that survive a power cut: rate of the hub's node",
}


def rows_of_writing(size: str, runs: Sequence[Writing], peer: Sequence[Writing]) -> list[Row]:
    """Row 1, products of one size."""
    theirs = median(run.at_site for run in peer) if peer else None
    case = f"{size} by HTTP"
    rows = _rows_of_written("1", case, runs, theirs)
    on_device = [run.by_device for run in runs if run.by_device is not None]
    if on_device:
        what, processes = f"{case}: written to the disk, both, the device", sum(row.ours for row in rows)
        rows.append(Row("1", what, PER_BYTE, median(on_device), "their processes", processes, len(runs)))
    return rows


def _rows_of_written(row: str, case: str, runs: Sequence[Writing], theirs: float | None) -> list[Row]:
    """The site's and the hub's figure, whose processes count together."""
    goal, against = Goal("ours", "<=", MOST_WRITTEN), "-" if theirs is None else UFTP
    at_site, at_hub = (median(figures) for figures in zip(*((run.at_site, run.at_hub) for run in runs), strict=True))
    return [
        Row(row, f"{case}: written to the disk at the site", PER_BYTE, at_site, against, theirs, len(runs), goal),
        Row(row, f"{case}: written to the disk at the hub", PER_BYTE, at_hub, "-", None, len(runs), goal),
    ]


def note_of_writing(size: str, runs: Sequence[Writing]) -> str:
    """The parts of row 1."""
    parts = [
        f"{part} {median(run.by_part[part].to_disk / run.product_bytes for run in runs):.3f} to the disk and "
        f"{median(run.by_calls(part) for run in runs):.3f} in write calls"
        for part in runs[0].by_part
    ]
    rate = median(run.product_bytes / run.took_s / 1e6 for run in runs)
    return f"Row 1, {size}, per product byte: {'; '.join(parts)}. {rate:.0f} MB/s from upload to file."


def rows_of_site_cpu(runs: Mapping[str, Sequence[SiteCpu]]) -> list[Row]:
    """Row 2, by transport."""
    goals = {MULTICAST: Goal("ours", "<=", MOST_CPU_S_PER_GB)}
    case = "a site's CPU, 1 MB to files by"
    return [
        Row("2", f"{case} {name}", "s/GB", median(run.per_gb_s for run in of), "-", None, len(of), goals.get(name))
        for name, of in runs.items()
    ]


def note_of_site_cpu(name: str, runs: Sequence[SiteCpu]) -> str:
    """The threads of row 2; one that some runs lack counts as nothing there."""
    by_run = [run.threads_per_gb_s() for run in runs]
    shares = {thread: median(run.get(thread, 0.0) for run in by_run) for thread in by_run[0]}
    described = ", ".join(f"{thread} {share:.2f}" for thread, share in shares.items() if share >= 0.005)
    goodput = median(run.goodput_bps for run in runs) / 1e6
    return f"Row 2, {name}, s/GB by thread: {described}. {goodput:.0f} Mb/s."


def rows_of_giant(runs: Sequence[Giant]) -> list[Row]:
    """Row 3."""
    case, count = f"{runs[0].size_bytes / 1e9:.3g} GB by HTTP beside warnings", len(runs)
    travelling = median(run.p99_travelling_ms for run in runs)
    uploading = median(run.p99_uploading_ms for run in runs)
    rate = median(run.size_bytes / run.travelled_s / 1e6 for run in runs)
    limit = Goal("ours", "<=", MOST_P99_MS)
    rows = [
        Row("3", f"{case}: their p99 while it travels", "ms", travelling, "-", None, count, limit),
        Row("3", f"{case}: their p99 during its upload", "ms", uploading, "-", None, count),
        Row("3", f"{case}: from the hub's answer to its file", "MB/s", rate, "-", None, count),
    ]
    rows += _rows_of_written("3", case, [run.writing for run in runs], None)
    for part in runs[0].memory:
        rows += _rows_of_memory(part, [run.memory[part] for run in runs])
    return rows


def _rows_of_memory(part: str, runs: Sequence[Memory]) -> list[Row]:
    growth, peak = (
        median(figures) / MIB
        for figures in zip(*((run.growth_bytes, run.peak_resident_bytes) for run in runs), strict=True)
    )
    flat = Goal("ours", "<=", MOST_GROWTH_MIB)
    return [
        Row("3", f"growth of anonymous memory, {part}", "MiB", growth, "-", None, len(runs), flat),
        Row("3", f"peak of resident memory, {part}", "MiB", peak, "-", None, len(runs)),
    ]


def note_of_giant(runs: Sequence[Giant]) -> str:
    """The spans of row 3, and the spread of memory."""
    spread = ", ".join(
        f"{part} {median(run.memory[part].spread_bytes for run in runs) / MIB:.0f} MiB" for part in runs[0].memory
    )
    uploaded, travelled = (
        median(figures) for figures in zip(*((run.uploaded_s, run.travelled_s) for run in runs), strict=True)
    )
    rates = (
        median(run.warnings_uploading / run.uploaded_s for run in runs),
        median(run.warnings_travelling / run.travelled_s for run in runs),
    )
    return (
        f"Row 3: upload {uploaded:.1f} s with {rates[0]:.0f} warnings a second, from there to the file "
        f"{travelled:.1f} s with {rates[1]:.0f}; spread of anonymous memory: {spread}."
    )


def rows_of_durable(window: int, runs: Sequence[Durable]) -> list[Row]:
    """Row 4, with this number of products unanswered."""
    ours, raw = (
        median(figures) for figures in zip(*((run.acknowledged_per_s, run.raw_per_s) for run in runs), strict=True)
    )
    case = f"100 kB, durability power, {window} unanswered: acknowledged"
    against = f"write + fdatasync of {window}"
    return [Row("4", case, "products/s", ours, against, raw, len(runs))]


MIB = 1 << 20
MOST_WRITTEN = 1.05
MOST_CPU_S_PER_GB = 2.0
MOST_P99_MS = 50.0
MOST_GROWTH_MIB = 64.0
PER_BYTE = "bytes/byte"
