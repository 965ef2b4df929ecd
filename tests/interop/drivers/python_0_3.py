"""Does with a2a-sdk 0.3 what the scenes ask for: a JSON object a line in, answers and events out."""

import asyncio
import json
import os
import sys
import uuid

import httpx
from a2a import types
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientJSONRPCError
from a2a.client.middleware import ClientCallContext

URL = os.environ["GATEWAY"]


def say(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class Driver:
    async def start(self):
        self.clients = {}
        self.card = await A2ACardResolver(httpx.AsyncClient(), URL).get_agent_card()

    def client(self, token, streaming=True, polling=False):
        key = (token, streaming, polling)
        if key not in self.clients:
            http = httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"})
            config = ClientConfig(streaming=streaming, polling=polling, httpx_client=http)
            self.clients[key] = ClientFactory(config).create(self.card)
        return self.clients[key]

    def message(self, asked):
        parts = [types.Part(root=types.DataPart(data=asked["spec"]))] if "spec" in asked else []
        parts += [types.Part(root=types.TextPart(text=asked["text"]))] if "text" in asked else []
        return types.Message(
            message_id=asked.get("messageId", str(uuid.uuid4())),
            role=types.Role.user,
            parts=parts,
            task_id=asked.get("taskId"),
        )

    async def run(self, asked, tell):
        op = asked["op"]
        client = self.client(asked["token"], op != "send", op == "send" and not asked.get("wait", False))
        if op == "card":
            return plain(self.card)
        if op == "extended":
            return plain(await client.get_card())
        if op == "send":
            async for task, _ in client.send_message(self.message(asked)):
                return plain(task)
        if op == "stream":
            async for task, update in client.send_message(self.message(asked)):
                tell(plain(update or task))
            return "closed"
        if op == "subscribe":
            headers = {"Last-Event-ID": str(asked["last"])} if "last" in asked else {}
            context = ClientCallContext(state={"http_kwargs": {"headers": headers}})
            async for task, update in client.resubscribe(types.TaskIdParams(id=asked["id"]), context=context):
                tell(plain(update or task))
            return "closed"
        if op == "get":
            return plain(await client.get_task(types.TaskQueryParams(id=asked["id"])))
        if op == "cancel":
            return plain(await client.cancel_task(types.TaskIdParams(id=asked["id"])))
        if op == "push_set":
            config = types.PushNotificationConfig(id=asked["configId"], url=asked["url"], token=asked["secret"])
            return plain(await client.set_task_callback(
                types.TaskPushNotificationConfig(task_id=asked["id"], push_notification_config=config)))
        if op == "push_get":
            return plain(await client.get_task_callback(types.GetTaskPushNotificationConfigParams(
                id=asked["id"], push_notification_config_id=asked["configId"])))
        # This SDK has no way to list or delete them, and 0.3 none to list tasks.
        return "absent"


async def main():
    driver = Driver()
    await driver.start()
    running = set()

    async def answer(asked):
        n = asked["n"]
        try:
            say({"n": n, "result": await driver.run(asked, lambda event: say({"n": n, "event": event}))})
        except A2AClientJSONRPCError as error:
            say({"n": n, "error": {"code": error.error.code, "message": error.error.message}})
        except Exception as error:
            say({"n": n, "error": {"code": None, "message": f"{type(error).__name__}: {error}"}})

    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        task = asyncio.create_task(answer(json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)
    os._exit(0)


asyncio.run(main())
