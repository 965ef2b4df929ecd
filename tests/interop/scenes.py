"""What every client must be able to do with the gateway. Each scene is one promise."""

import json
import time

from client import word
from stage import eventually


def state(task):
    return word(task["status"]["state"])


def numbered(events):
    return [event.seq for event in events if event.seq is not None]


def whole(stage, task):
    """The numbers of all events of a task that has ended, but for the first, which is the task itself."""
    told = stage.told(task)
    numbers = [number for number, _, _ in told]
    assert numbers == sorted(set(numbers)), numbers
    assert told[0][1] == "task" and told[-1][1] == "final" and told[-1][2]["final"] is True, told
    return numbers[1:]


def decision(task):
    artifact = next(one for one in task["artifacts"] if one["artifactId"] == "decision")
    return next(part["data"] for part in artifact["parts"] if "data" in part)


def finds_the_gateway(client, stage):
    card = client.ask("card")
    assert card["name"] == "handoffd" and card["capabilities"]["streaming"] is True, card
    extended = client.ask("extended")
    [extension] = extended["capabilities"]["extensions"]
    assert extension["params"]["role"] == "orchestrator", extension
    assert "submit" in extension["params"]["may"], extension


def follows_work_to_its_end(client, stage):
    spec = stage.spec()
    stream = client.begin("stream", spec=spec)
    first = stream.next()
    assert first and (first.kind, first.state) == ("task", "submitted"), (first, stream.ending)
    assert first.task_id == spec["handoffId"] and first.value["contextId"] == spec["correlationId"], first.value
    stage.works(first.task_id, "task.claimed", "task.started", "artifact.ready")
    stream.until("an artifact", lambda event: event.kind == "artifact")
    stage.works(first.task_id, "task.complete")
    seen = stream.closed()
    assert seen[-1].state == "completed" and not any(event.is_last() for event in seen[:-1]), seen
    assert numbered(seen) == whole(stage, first.task_id), seen
    task = client.ask("get", id=first.task_id)
    assert state(task) == "completed" and task["artifacts"][0]["artifactId"] == "report", task


def is_not_cut_off_while_nothing_happens(client, stage):
    """Python's client gives up after five seconds of silence."""
    stream = client.begin("stream", spec=stage.spec())
    task = stream.next().task_id
    stage.works(task, "task.claimed", "task.started")
    stream.until("it works", lambda event: event.state == "working")
    # The one wait of all scenes that is about time: silence of more than five seconds is what it is about, and whoever
    # waited for something instead would have none.
    time.sleep(6)
    stage.works(task, "task.failed")
    assert stream.closed()[-1].state == "failed", stream.seen


def sends_a_message_again_safely(client, stage):
    spec = stage.spec()
    first = client.ask("send", spec=spec, messageId=f"m-{spec['handoffId']}")
    again = client.ask("send", spec=spec, messageId=f"m-{spec['handoffId']}")
    assert first["id"] == again["id"] == spec["handoffId"], (first, again)
    assert state(first) == "submitted", first
    client.fails(-32602, "send", spec=stage.spec(), messageId=f"m-{spec['handoffId']}")


def _goes_on(client, stage, interrupt):
    """What is missed between the end of a stream and the next one is told by the next one."""
    spec = stage.spec()
    stream = client.begin("stream", spec=spec)
    task = stream.next().task_id
    stage.works(task, "task.claimed", "task.started")
    stream.until("it works", lambda event: event.state == "working")
    interrupt()
    before = stream.broken()
    assert not before[-1].is_last(), before
    stage.works(task, "artifact.ready", "task.blocked")
    resumed = client.begin("subscribe", id=task, last=numbered(before)[-1])
    resumed.until("it is blocked", lambda event: event.state == "input-required" and event.kind == "status")
    plain = client.begin("subscribe", id=task)
    now = plain.next()
    assert (now.kind, now.state) == ("task", "input-required"), now
    assert [one["artifactId"] for one in now.value["artifacts"]] == ["report"], now.value
    stage.works(task, "task.started", "task.complete")
    after = resumed.closed()
    told = whole(stage, task)
    assert numbered(before) + numbered(after) == told, (before, after, told)
    last = plain.closed()
    assert last[-1].state == "completed", last
    # The task as it was, and what came behind: nothing of it twice.
    assert numbered(last) == told[-len(numbered(last)):], (last, told)


def goes_on_after_a_cut(client, stage):
    _goes_on(client, stage, stage.wire.cut)


def goes_on_after_a_restart(client, stage):
    def restart():
        stage.kill()
        stage.wire.cut()
        stage.start()

    _goes_on(client, stage, restart)


def cancels_from_every_open_state(client, stage):
    for kind, reports, open_state in (
        ("allowed", [], "submitted"),
        ("allowed", ["task.claimed"], "working"),
        ("allowed", ["task.claimed", "task.started"], "working"),
        ("allowed", ["task.claimed", "task.started", "task.blocked"], "input-required"),
        ("waiting", [], "auth-required"),
    ):
        stream = client.begin("stream", spec=stage.spec(kind))
        task = stream.next().task_id
        if reports:
            stage.works(task, *reports)
        shown = client.ask("get", id=task)
        assert state(shown) == open_state, (reports, shown)
        canceled = client.ask("cancel", id=task)
        assert state(canceled) == "canceled" and canceled["metadata"]["canceled"] is True, canceled
        seen = stream.closed()
        assert seen[-1].state == "canceled" and not any(event.is_last() for event in seen[:-1]), seen
        assert numbered(seen) == whole(stage, task), seen
        client.fails(-32002, "cancel", id=task)
        # Whatever the target still says comes too late.
        assert stage.report(task, "task.claimed") == 409
    if client.protocol == "1.0":
        ended = client.begin("subscribe", id=task)
        ended.rest()
        assert ended.ending["error"]["code"] == -32004, ended.ending


def understands_a_refusal(client, stage):
    rejected = client.ask("send", spec=stage.spec("denied"))
    assert state(rejected) == "rejected", rejected
    reasons = decision(rejected)
    assert reasons["decision"] == "denied" and reasons["reasons"][0]["code"] == "A2A_ROUTE_UNKNOWN", reasons
    stream = client.begin("stream", spec=stage.spec("denied"))
    seen = stream.closed()
    assert seen[0].kind == "task" and seen[-1].state == "rejected", seen
    client.fails(-32002, "cancel", id=seen[0].task_id)


def waits_for_a_person(client, stage):
    stream = client.begin("stream", spec=stage.spec("waiting"))
    task = stream.next().task_id
    stream.until("a person is asked", lambda event: event.state == "auth-required")
    stage.approve(task)
    stage.works(task, "task.claimed", "task.started", "artifact.ready", "task.complete")
    seen = stream.closed()
    assert seen[-1].state == "completed" and numbered(seen) == whole(stage, task), seen


def is_asked_for_a_task_spec(client, stage):
    spec = stage.spec()
    # A TaskSpec inside a text is no handoff.
    asked = client.ask("send", text="do this: " + json.dumps(spec))
    assert state(asked) == "input-required" and asked["id"].startswith("task_"), asked
    assert stage.ask("GET", f"/v1/handoffs/{spec['handoffId']}", token=stage.admin)[0] == 404
    again = client.ask("send", taskId=asked["id"], spec=spec)
    assert again["id"] == asked["id"] and again["metadata"]["handoffId"] == spec["handoffId"], again
    assert state(again) == "submitted", again
    stage.works(spec["handoffId"], "task.claimed", "task.started", "artifact.ready", "task.complete")
    assert state(client.ask("get", id=asked["id"])) == "completed"
    # One that nothing came of is canceled like any other.
    idle = client.ask("send", text="never mind")["id"]
    assert state(client.ask("cancel", id=idle)) == "canceled"
    client.fails(-32002, "cancel", id=idle)


def is_not_shown_the_tasks_of_others(client, stage):
    task = client.ask("send", spec=stage.spec())["id"]
    for op in ("get", "cancel"):
        client.fails(-32001, op, token=stage.stranger, id=task)
        client.fails(-32001, op, id=task + "0")
    for id_, token in ((task, stage.stranger), (task + "0", None)):
        stream = client.begin("subscribe", token=token, id=id_)
        stream.rest()
        assert not stream.seen and "error" in stream.ending, (stream.seen, stream.ending)
    # A token that does not count is told so, and learns nothing.
    for op in ("get", "cancel"):
        asked = client.begin(op, token="hd_orc_nobody", id=task)
        asked.rest()
        assert "error" in asked.ending and task not in str(asked.ending), asked.ending
    assert state(client.ask("get", id=task)) == "submitted"


def lists_its_tasks(client, stage):
    if client.protocol != "1.0":
        return "absent"
    spec = stage.spec()
    tasks = [client.ask("send", text=f"talk {n}")["id"] for n in range(2)]
    tasks.append(client.ask("send", spec=spec)["id"])
    of_context = client.ask("list", contextId=spec["correlationId"], pageSize=10)
    assert [task["id"] for task in of_context["tasks"]] == [spec["handoffId"]], of_context
    seen, token, pages = [], "", 0
    while len(seen) < 3:
        page = client.ask("list", contextId="", pageSize=2, pageToken=token)
        seen += [task["id"] for task in page["tasks"]]
        token, pages = page.get("nextPageToken", ""), pages + 1
        assert pages < 10, seen
    # The newest first, and none twice.
    assert seen[:3] == tasks[::-1] and len(set(seen)) == len(seen), (seen, tasks)
    theirs = client.ask("list", token=stage.stranger, contextId="", pageSize=10)
    assert not theirs.get("tasks"), theirs


def is_told_by_a_webhook(client, stage):
    task = client.ask("send", spec=stage.spec())["id"]
    path = f"/hook/{client.protocol}/{task}"
    at = {"id": task, "configId": "mine", "url": stage.webhook.url + path, "secret": "s3cret"}
    client.ask("push_set", **at)
    got = json.dumps(client.ask("push_get", **at))
    assert at["url"] in got and "mine" in got, got
    listed = client.ask("push_list", **at)
    assert listed == "absent" or len(listed) == 1, listed
    client.fails(-32001, "push_set", token=stage.stranger, **at)
    # An address of the inside that nobody allowed.
    inside = at | {"configId": "inside", "url": "http://169.254.169.254/latest/meta-data"}
    client.fails(-32602, "push_set", **inside)
    stage.works(task, "task.claimed", "task.started", "artifact.ready", "task.complete")

    def delivered():
        told = stage.webhook.deliveries(path)
        return told if told and "completed" in json.dumps(told[-1][1]).lower() else None

    told = eventually("the webhook is told of the end", delivered)
    numbers = [_seq(body) for _, body in told]
    numbers = [number for number in numbers if number]
    # At least once, and in order.
    assert sorted(numbers) == numbers and set(whole(stage, task)) >= set(numbers), numbers
    headers = {name.lower(): value for name, value in told[0][0].items()}
    assert headers["x-a2a-notification-token"] == "s3cret", headers
    client.ask("push_delete", **at)


def _seq(body):
    for value in (body, *(body.get(name, {}) for name in ("statusUpdate", "artifactUpdate"))):
        if "streamSeq" in value.get("metadata", {}):
            return int(value["metadata"]["streamSeq"])
    return None


SCENES = [
    finds_the_gateway,
    follows_work_to_its_end,
    sends_a_message_again_safely,
    goes_on_after_a_cut,
    goes_on_after_a_restart,
    cancels_from_every_open_state,
    understands_a_refusal,
    waits_for_a_person,
    is_asked_for_a_task_spec,
    is_not_shown_the_tasks_of_others,
    lists_its_tasks,
    is_told_by_a_webhook,
    is_not_cut_off_while_nothing_happens,
]
