"""A real client, driven from here: requests go to its driver, answers and events come back in one shape."""

import json
import os
import queue
import subprocess
import threading

from stage import PATIENCE

TERMINAL = {"completed", "canceled", "failed", "rejected"}


class RpcFailed(Exception):
    def __init__(self, error):
        super().__init__(str(error))
        self.code, self.message = error["code"], error["message"]


def word(state):
    """A state, as 0.3 says it."""
    if isinstance(state, str) and state.startswith("TASK_STATE_"):
        state = state.removeprefix("TASK_STATE_").lower().replace("_", "-")
    return state


class Event:
    """What a stream told, whatever version it came in."""

    def __init__(self, value):
        for name, kind in (("task", "task"), ("statusUpdate", "status"), ("artifactUpdate", "artifact")):
            if name in value and "kind" not in value:
                self.kind, self.value = kind, value[name]
                break
        else:
            self.kind, self.value = value["kind"].removesuffix("-update"), value
        self.task_id = self.value["id" if self.kind == "task" else "taskId"]
        self.state = word(self.value.get("status", {}).get("state"))
        self.seq = self.value.get("metadata", {}).get("streamSeq")
        if self.seq is not None:
            self.seq = int(self.seq)

    def is_last(self):
        return self.state in TERMINAL

    def __repr__(self):
        return f"{self.kind}:{self.state or ''}:{self.seq}"


class Stream:
    def __init__(self, lines):
        self.lines, self.seen = lines, []
        self.ending = None

    def next(self):
        """The next event; None when the stream has ended, as `ending` says."""
        if self.ending is not None:
            return None
        line = self.lines.get(timeout=PATIENCE)
        if "event" in line:
            event = Event(line["event"])
            self.seen.append(event)
            return event
        self.ending = line
        return None

    def until(self, what, is_it):
        while event := self.next():
            if is_it(event):
                return event
        raise AssertionError(f"in vain: {what}; {self.seen}, {self.ending}")

    def rest(self):
        while self.next():
            pass
        return self.seen

    def closed(self):
        """Reads to the end, which has to be a good one."""
        self.rest()
        assert self.ending.get("result") == "closed", (self.ending, self.seen)
        return self.seen

    def broken(self):
        """Reads to the end, and does not mind how it came."""
        self.rest()
        return self.seen


class Client:
    def __init__(self, command, protocol, environment, stage):
        self.stage, self.protocol = stage, protocol
        environment = os.environ | environment | {"GATEWAY": stage.wire.url, "PROTOCOL": protocol}
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.waiting, self.numbers, self.lock = {}, iter(range(1, 1_000_000)), threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            told = json.loads(line)
            self.waiting[told["n"]].put(told)
        for lines in self.waiting.values():
            lines.put({"error": {"code": None, "message": "the driver has ended"}})

    def begin(self, op, token=None, **asked):
        lines = queue.Queue()
        with self.lock:
            n = next(self.numbers)
            self.waiting[n] = lines
            asked |= {"n": n, "op": op, "token": token or self.stage.router}
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
        return Stream(lines)

    def ask(self, op, token=None, **asked):
        stream = self.begin(op, token, **asked)
        stream.rest()
        if "error" in stream.ending:
            raise RpcFailed(stream.ending["error"])
        return stream.ending["result"]

    def fails(self, code, op, token=None, **asked):
        try:
            answer = self.ask(op, token, **asked)
        except RpcFailed as error:
            assert error.code == code, (op, error.code, error.message)
            return error
        raise AssertionError(f"{op} is answered: {answer}")

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
