#!/usr/bin/env python3
"""What scripts/bench has measured, as one JSON document, and as docs/performance.md and docs/performance.svg.

    benches/report.py FIGURES OUTPUT [--run NAME=VALUE]… [--versions DIR] [--write]
    benches/report.py OUTPUT --write        once more from a document that there is

FIGURES has a line of JSON for each figure, as the benches write them. For the standard library of Python 3.9 or newer.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import re
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- figures: made by scripts/bench --write -->", "<!-- end of figures -->"

# In the order of the tables: what each is called there, whether it is durable, and its colour.
ROWS = {
    "bare": ("bare axum handler", False, "#6b7280"),
    "check": ("**handoffd check**", False, "#0e7490"),
    "cedar": ("Cedar in the handler", False, "#b45309"),
    "regorus": ("regorus in the handler", False, "#ca8a04"),
    "submit": ("**handoffd submit**", True, "#1d4ed8"),
    "send": ("**handoffd message/send**", True, "#7c3aed"),
    "insert": ("PostgreSQL insert", True, "#15803d"),
    "fastify-1": ("Fastify service, one process", True, "#be185d"),
    "fastify": ("Fastify service, a process a core", True, "#f472b6"),
    "fastapi-1": ("FastAPI service, one process", True, "#dc2626"),
    "fastapi": ("FastAPI service, a process a core", True, "#f87171"),
}

# What handoffd is to reach of the bare handler.
AIMS = [("check", 64, 0.80), ("check", 256, 0.80), ("submit", 64, 0.50), ("submit", 256, 0.55)]


def gather(figures, run, prepared):
    lines = [json.loads(line) for line in pathlib.Path(figures).read_text().splitlines()]
    kinds = {kind: [line for line in lines if line["kind"] == kind] for kind in ("row", "stream", "growth", "active")}
    disk, decision = (next(line for line in lines if line["kind"] == kind) for kind in ("disk", "decision"))
    run = {**run, "date": datetime.date.today().isoformat(), "decision_bytes": decision["bytes"]}
    return {"run": run, "machine": machine(disk),
            "versions": versions(pathlib.Path(prepared)), **kinds}


def machine(disk):
    cpus = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", cpus)
    memory = re.search(r"MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text())
    kind = told("findmnt", "--noheadings", "--output", "FSTYPE", "--target", os.environ.get("TMPDIR", "/var/tmp"))
    return {"cores": os.cpu_count(), "processor": model[1] if model else platform.machine(),
            "memory_gib": round(int(memory[1]) / 1024 ** 2), "kernel": platform.release().split("-")[0], "file_system": kind,
            "sync_p50_us": disk["p50_us"], "sync_p99_us": disk["p99_us"]}


def versions(prepared):
    pins = dict(line.split("==") for line in (ROOT / "benches/peers/fastapi/requirements.txt").read_text().split())
    packages = json.loads((ROOT / "benches/peers/fastify/package.json").read_text())["dependencies"]
    lock = dict(re.findall(r'name = "(\S+)"\nversion = "(\S+)"', (ROOT / "benches/peers/engines/Cargo.lock").read_text()))
    return {"Rust": told("rustc", "--version").split()[1],
            "Python": told(prepared / "fastapi/bin/python", "--version").split()[1], "FastAPI": pins["fastapi"], "uvicorn": pins["uvicorn"],
            "Node.js": told("node", "--version").lstrip("v"), "Fastify": packages["fastify"],
            "better-sqlite3": packages["better-sqlite3"], "Cedar": lock["cedar-policy"], "regorus": lock["regorus"],
            "PostgreSQL": max(path.parent.name for path in pathlib.Path("/usr/lib/postgresql").glob("*/bin"))}


def told(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def time(us):
    """A time as people read it."""
    for unit, size in (("µs", 1), ("ms", 1e3), ("s", 1e6)):
        value = us / size
        if abs(value) < 999.5 or unit == "s":
            return f"{value:.{0 if unit == 'µs' or abs(value) >= 99.5 else 1 if abs(value) >= 9.95 else 2}f} {unit}"


def table(heads, rows):
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def by_place(results):
    return {(row["name"], row["connections"]): row for row in results["row"]}


def markdown(results):
    run, at, rows = results["run"], results["machine"], by_place(results)
    levels = sorted({connections for _, connections in rows})
    parts = [
        f"Measured on {run['date']}: {run['rounds']} rounds of {run['seconds']} s for each row and number of connections, {int(run['took_s']) // 60 + 1} "
        f"minutes in all. {at['cores']} cores ({at['processor']}), {at['memory_gib']} GiB, Linux {at['kernel']}, {at['file_system']}; 4 KiB "
        f"and an fdatasync take {time(at['sync_p50_us'])} (p99 {time(at['sync_p99_us'])}). A decision has {run['decision_bytes']:,} bytes in "
        f"the ledger. {quiet(int(run['busy']))}"
        + ", ".join(f"{name} {version}" for name, version in results["versions"].items()) + ".",
        "![Requests per second by connections, and latency at 64 connections](performance.svg)",
    ]
    for connections in levels:
        parts += [f"### {connections} connection{'s' if connections > 1 else ''}", level(rows, connections)]
    parts += ["### The aims", aims(rows), "### Beside what is as durable", beside(rows, levels)]
    if results["stream"]:
        parts += ["### From the commit to who follows", stream(results["stream"])]
    if results["growth"]:
        heads = ["entries in the ledger", "start-up", "resident then", "decisions submitted", "decisions/s (spread)", "CPU per decision"]
        lines = [[f"{one['entries']:,}", f"{one['start_ms']} ms", f"{one['resident_mib']} MiB",
                  f"{one['rounds']} × {one['decisions']:,}", spread(one), f"{one['cpu_us']} µs"]
                 for one in results["growth"]]
        parts += ["### With history", table(heads, lines)]
    if results["active"]:
        lines = [[f"{one['handoffs']:,}", spread(one)] for one in results["active"]]
        parts += ["### With handoffs under way", table(["active handoffs", "allowed and cancelled/s (spread)"], lines)]
    return "\n\n".join(parts)


def quiet(busy):
    """What others did just before; nothing to say if they did nothing."""
    return "" if busy < 10 else f"**Others used {busy} % of the processors when it began: these figures are preliminary.** "


def spread(one):
    return f"{one['rate']:,.0f} ({one['rate_min']:,.0f} to {one['rate_max']:,.0f})"


def level(rows, connections):
    heads = ["", "durable", "requests/s", "of bare (spread)", "p50", "p99", "p99.9", "CPU s/1000", "resident MiB"]
    lines = []
    for name, (title, durable, _) in ROWS.items():
        row = rows.get((name, connections))
        if row:
            ratio = f"{row['ratio']:.2f} ({row['ratio_min']:.2f} to {row['ratio_max']:.2f})"
            lines.append([title, "yes" if durable else "no", f"{row['rate']:,.0f}", ratio, time(row["p50_us"]), time(row["p99_us"]),
                          time(row["p999_us"]), f"{row['cpu_s_per_1000']:.3f}", f"{row['resident_mib']:.0f}"])
    return table(heads, lines)


def aims(rows):
    lines = []
    for name, connections, aim in AIMS:
        row = rows.get((name, connections))
        if row:
            result = "reached" if row["ratio"] >= aim else f"**not reached**, {row['ratio'] / aim:.0%} of it"
            lines.append([f"{name} at {connections} connections", f"{aim:.2f}", f"{row['ratio']:.2f}", result])
    return table(["of the bare handler", "aim", "measured", ""], lines)


# What is as durable as submit, and the rows of it: of one that was run in several ways, the better one counts.
DURABLE = [("FastAPI service", ("fastapi", "fastapi-1")), ("Fastify service", ("fastify", "fastify-1")),
           ("PostgreSQL insert", ("insert",))]


def factors(rows, names, connections):
    """How many times as many durable decisions as the better one of these: the middle, the smallest and the largest of all
    rounds, each beside the same round of the other. Nothing if it was not run."""
    there = [rows[name, connections] for name in names if (name, connections) in rows]
    if not there:
        return None
    better = max(there, key=lambda row: row["rate"])
    each = [own / other for own, other in zip(rows["submit", connections]["rates"], better["rates"])]
    return statistics.median(each), min(each), max(each)


def beside(rows, levels):
    measured = {title: [factors(rows, names, connections) for connections in levels] for title, names in DURABLE}
    measured = {title: each for title, each in measured.items() if all(each)}
    lines = [[f"submit, to {title}", *(f"{middle:.2f} × ({low:.2f} to {high:.2f})" for middle, low, high in each)]
             for title, each in measured.items()]
    return plainly(measured, levels) + "\n\n" + table(
        ["times the requests/s (spread)", *(f"at {connections}" for connections in levels)], lines)


def plainly(measured, levels):
    """Where submit is not ahead, before anybody has to look for it in a table."""
    behind, unsure = [], []
    for title, each in measured.items():
        for kind, holds in ((behind, lambda middle, low: middle <= 1), (unsure, lambda middle, low: low <= 1 < middle)):
            at = [str(connections) for connections, (middle, low, _) in zip(levels, each) if holds(middle, low)]
            if at:
                kind.append(f"{title} at {listed(at)} connection{'' if at == ['1'] else 's'}")
    if not behind and not unsure:
        return "`submit` is ahead of each of them at every number of connections, in every round."
    words = []
    if behind:
        words.append(f"**`submit` is not ahead of {listed(behind)}.**")
    if unsure:
        words += [f"Its median is ahead of that of {one}, though not in every round." for one in unsure]
    return " ".join([*words, "Everywhere else it is ahead, in every round."])


def listed(words):
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def stream(stages):
    heads = ["submitters, submits/s, followers", "answer to event p50", "p99", "max", "request to event p50", "p99"]
    return table(heads, [
        [f"{one['submitters']}, {one['rate']:.0f}, {one['followers']}", time(one["answer_p50_us"]), time(one["answer_p99_us"]),
         time(one["answer_max_us"]), time(one["request_p50_us"]), time(one["request_p99_us"])] for one in stages])


def plot(results):
    """Two panels on a background of their own, so that a dark page does not matter."""
    rows = by_place(results)
    levels = sorted({connections for _, connections in rows})
    shown = [name for name in ROWS if (name, levels[0]) in rows]
    near = min(levels, key=lambda connections: abs(connections - 64))
    width, height = 980, 470
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        'aria-label="Requests per second and latency" font-family="system-ui, sans-serif" font-size="12" fill="#1f2937">',
        f'<rect width="{width}" height="{height}" rx="8" fill="#fbfbf9" stroke="#d1d5db"/>',
        text(24, 30, "Requests per second, by connections", weight=600),
        text(24, 48, "log scale; solid lines are durable, dashed ones are not", color="#6b7280"),
        text(560, 30, f"Latency at {near} connections", weight=600),
        text(560, 48, "log scale; the bar goes from p50 to p99, the line on to p99.9", color="#6b7280"),
    ]
    parts += lines(rows, levels, shown, (70, 70, 300, 350))
    parts += bars(rows, near, shown, (700, 70, 255, 350))
    return "\n".join([*parts, "</svg>"]) + "\n"


def text(x, y, words, anchor="start", color="#1f2937", weight=400):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}" font-weight="{weight}">{words}</text>'


def decades(low, high):
    return [10 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def title(name):
    return ROWS[name][0].strip("*")


def lines(rows, levels, shown, box):
    left, top, width, height = box
    rates = [rows[name, connections]["rate"] for name in shown for connections in levels]
    marks = decades(min(rates), max(rates))
    y = lambda rate: top + height - height * math.log10(rate / marks[0]) / math.log10(marks[-1] / marks[0])
    x = lambda place: left + width * (place + 0.5) / len(levels)
    for mark in marks:
        yield f'<line x1="{left}" x2="{left + width}" y1="{y(mark):.1f}" y2="{y(mark):.1f}" stroke="#e5e7eb"/>'
        yield text(left - 8, y(mark) + 4, f"{mark:,}", "end", "#6b7280")
    for place, connections in enumerate(levels):
        yield text(x(place), top + height + 20, connections, "middle", "#6b7280")
    # Names stand beside where the lines end, and make room for one another.
    ends = sorted(shown, key=lambda name: -rows[name, levels[-1]]["rate"])
    below = top - 15
    for name in ends:
        _, durable, color = ROWS[name]
        points = " ".join(f"{x(place):.1f},{y(rows[name, connections]['rate']):.1f}" for place, connections in enumerate(levels))
        dash = "" if durable else ' stroke-dasharray="5 4"'
        yield f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"{dash}/>'
        for point in points.split():
            yield '<circle cx="{}" cy="{}" r="3" fill="{}"/>'.format(*point.split(","), color)
        at = y(rows[name, levels[-1]]["rate"])
        below = max(at, below + 15)
        yield text(left + width - 22, below + 4, title(name), color=color, weight=600 if "handoffd" in title(name) else 400)


def bars(rows, connections, shown, box):
    left, top, width, height = box
    here = {name: rows[name, connections] for name in shown}
    marks = decades(min(row["p50_us"] for row in here.values()), max(row["p999_us"] for row in here.values()))
    x = lambda us: left + width * math.log10(max(us, marks[0]) / marks[0]) / math.log10(marks[-1] / marks[0])
    for mark in marks:
        yield f'<line x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{top}" y2="{top + height}" stroke="#e5e7eb"/>'
        yield text(x(mark), top + height + 20, time(mark).replace(".00", "").replace(".0", ""), "middle", "#6b7280")
    step = height / len(here)
    for place, (name, row) in enumerate(here.items()):
        y, color = top + step * (place + 0.5), ROWS[name][2]
        p50, p99, p999 = (x(row[figure]) for figure in ("p50_us", "p99_us", "p999_us"))
        yield text(left - 10, y + 4, title(name), "end", color, 600 if "handoffd" in title(name) else 400)
        yield f'<line x1="{p50:.1f}" x2="{p999:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{color}" stroke-width="2"/>'
        yield f'<rect x="{p50:.1f}" y="{y - 7:.1f}" width="{max(p99 - p50, 2):.1f}" height="14" rx="2" fill="{color}"/>'


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--run", action="append", default=[])
    parser.add_argument("--versions")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    output = pathlib.Path(arguments.files[-1])
    if len(arguments.files) > 1:
        results = gather(arguments.files[0], dict(pair.split("=", 1) for pair in arguments.run), arguments.versions)
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(results, indent=1) + "\n")
        print(f"all figures: {output}")
    if arguments.write:
        results = json.loads(output.read_text())
        page = ROOT / "docs/performance.md"
        before, rest = page.read_text().split(BEGIN)
        page.write_text(f"{before}{BEGIN}\n\n{markdown(results)}\n\n{END}{rest.split(END)[1]}")
        (ROOT / "docs/performance.svg").write_text(plot(results))
        print("written: docs/performance.md, docs/performance.svg")


if __name__ == "__main__":
    main()
