"""Runs every scene with every client, and says which promise does not hold.

Called by scripts/interop, which prepares the clients: run.py BINARY CLIENTS [CLIENT…] [--scene NAME]
"""

import argparse
import concurrent.futures
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import a2acli  # noqa: E402
import ours  # noqa: E402
import pages  # noqa: E402
from client import Client  # noqa: E402
from scenes import SCENES  # noqa: E402
from stage import Stage  # noqa: E402


def clients(prepared):
    """Every client: how it is started, and the version that it speaks."""
    python = {version: [prepared / f"python-{version}/bin/python"] for version in ("1.3", "0.3")}
    script = {version: ["node", prepared / f"javascript-{version}/driver.mjs"] for version in ("1.3", "0.3")}
    asked = {"ASKED": (HERE / "drivers/asked.mjs").as_uri()}
    return {
        "python-1.3": (python["1.3"] + [HERE / "drivers/python_1_3.py"], "1.0", {}),
        "python-1.3-speaking-0.3": (python["1.3"] + [HERE / "drivers/python_1_3.py"], "0.3", {}),
        "python-0.3": (python["0.3"] + [HERE / "drivers/python_0_3.py"], "0.3", {}),
        "javascript-1.3": (script["1.3"], "1.0", asked),
        "javascript-1.3-speaking-0.3": (script["1.3"], "0.3", asked),
        "javascript-0.3": (script["0.3"], "0.3", asked),
        # Have scenes of their own, and no driver.
        "a2acli": None,
        "handoffd": None,
        "pages": None,
    }


def play(name, how, binary, scenes):
    """All scenes with one client, on a stage of their own; what went wrong."""
    lines, failed = [], 0
    stage = Stage(binary, HERE.parent.parent / "docs/examples")
    client = how and Client(*how, stage)
    try:
        for scene in scenes:
            began, why = time.monotonic(), ""
            try:
                outcome = "absent" if scene(client, stage) == "absent" else "ok"
            except Exception:
                outcome, why, failed = "FAILED", "\n" + traceback.format_exc(), failed + 1
            lines.append(f"{outcome:7} {name}: {scene.__name__} ({time.monotonic() - began:.1f} s){why}")
    finally:
        if client:
            client.end()
        stage.end()
    return lines, failed


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("binary", type=Path)
    arguments.add_argument("prepared", type=Path)
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--scene", action="append")
    arguments.add_argument("--jobs", type=int, default=3)
    given = arguments.parse_args()
    known = clients(given.prepared)
    names = given.names or list(known)
    failed = played_scenes = 0

    of_pages = pages.scenes(HERE.parent.parent / "docs/a2a.md", given.prepared / "python-1.3/bin/python",
                            given.prepared / "javascript-1.3")

    def scenes(name):
        all_scenes = {"a2acli": a2acli.SCENES, "handoffd": ours.SCENES, "pages": of_pages}.get(name, SCENES)
        return [scene for scene in all_scenes if not given.scene or scene.__name__ in given.scene]

    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        played = {name: pool.submit(play, name, known[name], given.binary, scenes(name)) for name in names}
        for one in played.values():
            lines, count = one.result()
            failed, played_scenes = failed + count, played_scenes + len(lines)
            print("\n".join(lines), flush=True)
    print(f"{len(names)} clients, {played_scenes} scenes played, {failed} failed")
    sys.exit(1 if failed or not played_scenes else 0)


main()
