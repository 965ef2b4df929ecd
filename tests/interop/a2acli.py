"""The command line of the Rust SDK (crates.io a2a-cli), where it is installed: it takes too long to build to be fetched here."""

import json
import os
import shutil
import subprocess

from client import Event, word
from scenes import decision, numbered, state, whole
from stage import PATIENCE, eventually

PROGRAM = os.environ.get("A2ACLI") or shutil.which("a2acli")


def _command(stage, arguments, token):
    given = ["--agent-card", stage.wire.url, "--bearer", token or stage.router, "--output", "json"]
    return [PROGRAM, *arguments, *given]


def _run(stage, *arguments, token=None):
    """What it says, and the A2A code of what it was refused with."""
    ran = subprocess.run(_command(stage, arguments, token), capture_output=True, text=True, timeout=PATIENCE,
                         stdin=subprocess.DEVNULL)
    if ran.returncode == 0:
        return json.loads(ran.stdout), None
    return None, json.loads(ran.stderr.strip().split("\n")[-1])["error"].get("a2aCode")


def _task(answer):
    return answer.get("task", answer)


def _send(stage, kind="allowed"):
    answer, code = _run(stage, "send", "--data-part", json.dumps(stage.spec(kind)), "--async")
    assert code is None, code
    return _task(answer)


class Following:
    def __init__(self, stage, *arguments):
        self.process = subprocess.Popen(_command(stage, arguments, None), text=True, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def told(self):
        out, errors = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, errors
        return [Event(json.loads(line)) for line in out.splitlines() if line.strip()]


def finds_the_gateway(_, stage):
    card, code = _run(stage, "card", "get")
    assert code is None and card["name"] == "handoffd", (card, code)
    extended, code = _run(stage, "card", "get", "--extended")
    [extension] = extended["capabilities"]["extensions"]
    assert code is None and extension["params"]["role"] == "orchestrator", (extended, code)


def follows_work_to_its_end(_, stage):
    spec = stage.spec()
    task = spec["handoffId"]
    following = Following(stage, "send", "--stream", "--data-part", json.dumps(spec))

    def is_there():
        return stage.ask("GET", f"/v1/handoffs/{task}", token=stage.admin)[0] == 200

    eventually("it is decided", is_there)
    beside = Following(stage, "task", "subscribe", task)
    stage.works(task, "task.claimed", "task.started", "artifact.ready")
    stage.works(task, "task.complete")
    seen = following.told()
    assert seen[0].kind == "task" and seen[-1].state == "completed", seen
    assert numbered(seen) == whole(stage, task), seen
    # Whoever came later, perhaps too late, is told the rest or that there is none.
    out, errors = beside.process.communicate(timeout=PATIENCE)
    assert "COMPLETED" in out or "UNSUPPORTED_OPERATION" in errors, (out, errors)


def understands_what_is_refused_and_what_is_asked(_, stage):
    refused, code = _run(stage, "send", "--data-part", json.dumps(stage.spec("denied")))
    assert code is None and state(_task(refused)) == "rejected", (refused, code)
    assert decision(_task(refused))["reasons"][0]["code"] == "A2A_ROUTE_UNKNOWN", refused
    asked, code = _run(stage, "send", "please")
    assert code is None and state(_task(asked)) == "input-required", (asked, code)


def gets_lists_and_cancels(_, stage):
    task = _send(stage)["id"]
    shown, code = _run(stage, "task", "get", task)
    assert code is None and word(_task(shown)["status"]["state"]) == "submitted", (shown, code)
    listed, code = _run(stage, "task", "list")
    assert code is None and listed["tasks"][0]["id"] == task, (listed, code)
    canceled, code = _run(stage, "task", "cancel", task)
    assert code is None and state(_task(canceled)) == "canceled", (canceled, code)
    for arguments, expected in ((("cancel", task), -32002), (("subscribe", task), -32004), (("get", task + "0"), -32001)):
        assert _run(stage, "task", *arguments) == (None, expected), arguments


def is_not_shown_the_tasks_of_others(_, stage):
    task = _send(stage)["id"]
    for verb in ("get", "cancel", "subscribe"):
        assert _run(stage, "task", verb, task, token=stage.stranger) == (None, -32001), verb
        # A token that does not count is not taken for wrong parameters.
        assert _run(stage, "task", verb, task, token="hd_orc_nobody")[1] not in (-32602, -32001), verb
    made, code = _run(stage, "task", "push-config", "create", task, f"{stage.webhook.url}/a2acli")
    assert code is None and made["url"].endswith("/a2acli"), (made, code)
    inside = ("task", "push-config", "create", task, "http://169.254.169.254/latest")
    assert _run(stage, *inside) == (None, -32602)


def _if_installed(scene):
    def played(client, stage):
        return scene(client, stage) if PROGRAM else "absent"

    played.__name__ = scene.__name__
    return played


SCENES = [_if_installed(scene) for scene in (
    finds_the_gateway,
    follows_work_to_its_end,
    understands_what_is_refused_and_what_is_asked,
    gets_lists_and_cancels,
    is_not_shown_the_tasks_of_others,
)]
