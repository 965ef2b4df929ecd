"""Our own client, through a wire that is cut: it goes on by itself, and tells everything once."""

import json
import os
import subprocess
import threading

from client import Event
from scenes import numbered, whole
from stage import PATIENCE, eventually


class Following:
    """`handoffd a2a` as somebody runs it, with its events as they come."""

    def __init__(self, stage, *arguments):
        environment = os.environ | {"HANDOFFD_TOKEN": stage.router}
        command = [stage.binary, "--json", "a2a", *arguments, "--url", stage.wire.url]
        self.process = subprocess.Popen(command, env=environment, cwd=stage.workspace, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.timer = threading.Timer(PATIENCE, self.process.kill)
        self.timer.start()
        self.seen = []

    def until(self, is_it):
        for line in self.process.stdout:
            self.seen.append(Event(json.loads(line)))
            if is_it(self.seen[-1]):
                return self.seen[-1]
        raise AssertionError((self.seen, self.process.stderr.read()))

    def end(self):
        self.seen += [Event(json.loads(line)) for line in self.process.stdout]
        said = self.process.stderr.read()
        self.timer.cancel()
        return self.process.wait(), said


def _follow(stage, protocol):
    spec = stage.spec()
    (stage.workspace / "spec.json").write_text(json.dumps(spec))
    task = spec["handoffId"]
    following = Following(stage, "stream", "spec.json", "--protocol", protocol)
    following.until(lambda event: event.kind == "task")
    stage.wire.cut()
    stage.works(task, "task.claimed", "task.started")
    following.until(lambda event: event.state == "working")
    # It is away for a while, and what it missed was told when it comes back.
    stage.wire.cut()
    stage.works(task, "artifact.ready", "task.blocked")
    stage.kill()
    stage.wire.cut()
    stage.start()
    following.until(lambda event: event.state == "input-required")
    stage.works(task, "task.started", "task.complete")
    exit_code, said = following.end()
    assert exit_code == 0, said
    assert [event.kind for event in following.seen].count("task") == 1, following.seen
    assert numbered(following.seen) == whole(stage, task), (following.seen, said)


def goes_on_by_itself_in_1_0(_, stage):
    _follow(stage, "newest")


def goes_on_by_itself_in_0_3(_, stage):
    _follow(stage, "0.3")


def sends_again_what_was_lost(_, stage):
    """The answer is lost with the wire, while the send waits for it; the handoff is made once."""
    spec = stage.spec()
    (stage.workspace / "spec.json").write_text(json.dumps(spec))
    sending = Following(stage, "send", "spec.json")

    def is_there():
        return stage.ask("GET", f"/v1/handoffs/{spec['handoffId']}", token=stage.admin)[0] == 200

    eventually("it is decided", is_there)
    stage.wire.cut()
    stage.works(spec["handoffId"], "task.claimed", "task.started", "task.blocked")
    answer, said = sending.process.communicate(timeout=PATIENCE)
    sending.timer.cancel()
    task = json.loads(answer)
    assert task["id"] == spec["handoffId"] and task["status"]["state"] == "input-required", (task, said)
    assert "asking again" in said, said
    shown = stage.done("GET", f"/v1/handoffs/{spec['handoffId']}")
    assert shown["attempt"] == 1, shown


SCENES = [goes_on_by_itself_in_1_0, goes_on_by_itself_in_0_3, sends_again_what_was_lost]
