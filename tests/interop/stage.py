"""A gateway on a workspace of its own, a wire to it that can be cut, and everybody else who takes part."""

import http.client
import http.server
import json
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

ROUTE = "crypto-sage.execution-plane.v1"
SOURCE, TARGET = "decision-router", "crypto-sage"
PATIENCE = 30


def eventually(what, ask):
    """Asks until there is an answer; waiting in vain is a failure."""
    until = time.monotonic() + PATIENCE
    while True:
        answer = ask()
        if answer:
            return answer
        assert time.monotonic() < until, f"in vain: {what}"
        time.sleep(0.02)


class Wire:
    """Carries bytes between clients and the gateway, wherever it listens now, until it is cut."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.upstream = None
        self.held = set()
        self.lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            near, _ = self.listener.accept()
            try:
                far = socket.create_connection(self.upstream)
            except OSError:
                near.close()
                continue
            with self.lock:
                self.held |= {near, far}
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self):
        """Ends every connection at once, in the middle of whatever it carried."""
        with self.lock:
            held, self.held = self.held, set()
        for one in held:
            try:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()


class Webhook:
    """Takes in what it is told, by path; it is also the health of the target agent."""

    def __init__(self):
        hook = self
        self.told = {}
        self.lock = threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.answer()

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with hook.lock:
                    hook.told.setdefault(self.path, []).append((dict(self.headers), json.loads(body)))
                self.answer()

            def answer(self):
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def deliveries(self, path):
        with self.lock:
            return list(self.told.get(path, []))


class Stage:
    def __init__(self, binary, examples):
        self.binary = binary
        self.minimal = json.loads((examples / "taskspec-minimal.json").read_text())
        self.scratch = tempfile.TemporaryDirectory(prefix="interop-")
        self.workspace = Path(self.scratch.name) / "workspace"
        self.wire, self.webhook = Wire(), Webhook()
        self.daemon = None
        self.numbers = iter(range(1, 1_000_000))
        subprocess.run([binary, "--workspace", self.workspace, "init"], check=True, stdout=subprocess.DEVNULL)
        (self.workspace / "handoffd.toml").write_text(
            f'[a2a]\npublic_url = "{self.wire.url}"\npush_allow = ["127.0.0.0/8"]\n')
        table = self.workspace / "policies/routes.json"
        routes = json.loads(table.read_text())
        route = routes["routes"][ROUTE]
        # Nothing is known of the route yet; and what is dispatched in live need not be signed.
        del route["stage"], route["signingKeyId"]
        route["requireSignature"], route["probeUrl"] = False, f"{self.webhook.url}/health"
        table.write_text(json.dumps(routes))
        self.start()
        self.admin = (self.workspace / "memory/admin.token").read_text().strip()
        self.router = self.token("router", "orchestrator", SOURCE)
        self.stranger = self.token("stranger", "orchestrator", "somebody-else")
        self.sage = self.token("sage", "agent", TARGET)
        self.rita = self.token("rita", "operator")
        self.go_live()

    # The gateway.

    def start(self):
        log = self.workspace.parent / "log"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HANDOFFD_")}
        with open(log, "wb") as out:
            self.daemon = subprocess.Popen(
                [self.binary, "--workspace", self.workspace, "serve", "--listen", "127.0.0.1:0"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment)

        def listening():
            assert self.daemon.poll() is None, log.read_text()
            if "listening" not in log.read_text():
                return None
            lock = json.loads((self.workspace / "memory/.lock").read_text())
            return lock["address"] if lock["pid"] == self.daemon.pid else None

        host, port = eventually("the gateway listens", listening).rsplit(":", 1)
        self.wire.upstream = (host, int(port))
        eventually("the gateway is ready", lambda: self.ask("GET", "/readyz")[0] == 200)

    def kill(self):
        self.daemon.send_signal(signal.SIGKILL)
        self.daemon.wait()

    def end(self):
        self.kill()
        self.scratch.cleanup()

    def ask(self, method, path, body=None, token=None, headers=()):
        connection = http.client.HTTPConnection(*self.wire.upstream, timeout=PATIENCE)
        sent = {"Content-Type": "application/json", **dict(headers)}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            reply = connection.getresponse()
            text = reply.read().decode()
        finally:
            connection.close()
        is_json = "json" in (reply.headers.get("Content-Type") or "")
        return reply.status, json.loads(text) if is_json else text

    def done(self, method, path, body=None, token=None):
        status, answer = self.ask(method, path, body, token or self.admin)
        assert 200 <= status < 300, (method, path, status, answer)
        return answer

    def token(self, name, role, agent=None):
        new = {"name": name, "role": role} | ({"agentId": agent} if agent else {})
        return self.done("POST", "/v1/tokens", new)["token"]

    # What is handed over, and what becomes of it.

    def spec(self, kind="allowed", mode="dev"):
        spec = json.loads(json.dumps(self.minimal))
        name = f"interop_{next(self.numbers):06}"
        spec["handoffId"], spec["correlationId"] = f"hs_{name}", f"corr_{name}"
        spec["audit"] = {"requestId": f"req_{name}", "idempotencyKey": f"idem_{name}"}
        spec["mode"] = mode
        # What goes through a client that has only one kind of number.
        spec["intent"]["input"] = {"chain": "solana"}
        if kind == "denied":
            spec["routing"]["routeKey"] = "nowhere.execution-plane.v1"
        if kind == "waiting":
            spec["mode"], spec["safety"]["requiresHumanApproval"] = "live", True
        return spec

    def report(self, handoff, *kinds):
        """The target agent says what became of a handoff; the status of its last report."""
        payloads = {
            "artifact.ready": {"artifact_id": "report", "uri": "s3://reports/1", "version": 1,
                               "hash": "sha256:" + "0" * 64},
            "task.blocked": {"reason": "which account?"},
            "task.complete": {"artifact_ids": ["report"], "verification": {"mechanical": "pass"}},
            "task.failed": {"code": "EXECUTION_FAILED", "message": "it did not work"},
        }
        categories = {"task.blocked": "input_required", "task.complete": "completed", "task.failed": "failed"}
        status = None
        for kind in kinds:
            shown = self.done("GET", f"/v1/handoffs/{handoff}")
            attempt = next(one for one in shown["history"] if one["attempt"] == shown["attempt"])
            event = {
                "wire": "1.1",
                "wire_id": f"wire_interop{next(self.numbers):012}",
                "type": kind,
                "ts": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "sender": f"agent:{TARGET}",
                "payload": payloads.get(kind, {}),
                "state": {"category": categories.get(kind, "working"),
                          "terminal": kind in ("task.complete", "task.failed")},
                "stream": {
                    "stream_id": f"task:{handoff}:attempt:{shown['attempt']}",
                    "stream_seq": len(attempt["timeline"]) + 1,
                    "context_id": shown["correlationId"],
                    "correlation_id": shown["correlationId"],
                },
            }
            status, answer = self.ask("POST", f"/v1/handoffs/{handoff}/events", event, self.sage)
            assert status == 201 or kind == kinds[-1], (kind, status, answer)
        return status

    def works(self, handoff, *kinds):
        assert self.report(handoff, *kinds) == 201, kinds

    def approve(self, handoff):
        self.done("POST", f"/v1/approvals/{handoff}", {"decision": "approve", "reason": "looked at it"}, self.rita)

    def told(self, task, token=None, start=1):
        """All that `GET /stream/{id}` tells of a task that has ended: (number, event name, data)."""
        status, text = self.ask("GET", f"/stream/{urllib.parse.quote(task)}?from={start}", token=token or self.router)
        assert status == 200, text
        events = []
        for block in text.split("\n\n"):
            fields = dict(re.findall(r"^(id|event|data): ?(.*)$", block, re.M))
            if "data" in fields:
                events.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
        return events

    def go_live(self):
        """Brings the route to live, so that there is work that waits for a person."""

        def run(mode):
            spec = self.spec(mode=mode)
            self.done("POST", "/v1/handoffs", spec, self.router)
            self.works(spec["handoffId"], "task.claimed", "task.started", "artifact.ready", "task.complete")
            return spec["handoffId"]

        def gate(name, body):
            answer = self.done("POST", f"/v1/routes/{ROUTE}/gates/{name}", body, self.rita)
            assert answer["status"] == "passed", answer

        run("dev")
        gate("G0", {})
        gate("G1", {})
        last = [run("simulated") for _ in range(3)][-1]
        gate("G2", {})
        gate("G3", {"handoffId": last, "evidence": {"runId": "run-1"}})
        gate("G4", {})
