"""Does with a2a-sdk 1.3 what the scenes ask for: a JSON object a line in, answers and events out.

PROTOCOL=0.3 makes it speak 0.3: it is shown a card that names nothing else.
"""

import asyncio
import json
import os
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.types import a2a_pb2 as types
from a2a.utils.errors import JSON_RPC_ERROR_CODE_MAP
from google.protobuf import json_format

URL = os.environ["GATEWAY"]
PROTOCOL = os.environ.get("PROTOCOL", "1.0")


def say(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def plain(message):
    return json_format.MessageToDict(message)


def read(value, message):
    return json_format.ParseDict(value, message)


class Driver:
    async def start(self):
        # Time-outs are the SDK's own: five seconds of silence end a stream.
        self.http = {}
        self.card = await A2ACardResolver(httpx.AsyncClient(), URL).get_agent_card()

    def client(self, token, streaming=True):
        key = (token, streaming)
        if key not in self.http:
            card = types.AgentCard()
            card.CopyFrom(self.card)
            spoken = [one for one in card.supported_interfaces if one.protocol_version == PROTOCOL]
            assert spoken, card
            del card.supported_interfaces[:]
            card.supported_interfaces.extend(spoken)
            http = httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"})
            self.http[key] = ClientFactory(ClientConfig(streaming=streaming, httpx_client=http)).create(card)
        return self.http[key]

    def request(self, asked):
        parts = [{"data": asked["spec"]}] if "spec" in asked else []
        parts += [{"text": asked["text"]}] if "text" in asked else []
        message = {"messageId": asked.get("messageId", str(uuid.uuid4())), "role": "ROLE_USER", "parts": parts}
        if "taskId" in asked:
            message["taskId"] = asked["taskId"]
        configuration = {"returnImmediately": not asked.get("wait", False)}
        return read({"message": message, "configuration": configuration}, types.SendMessageRequest())

    async def run(self, asked, tell):
        op, client = asked["op"], self.client(asked["token"], asked["op"] != "send")
        if op == "card":
            return plain(self.card)
        if op == "extended":
            return plain(await client.get_extended_agent_card(types.GetExtendedAgentCardRequest()))
        if op == "send":
            async for answer in client.send_message(self.request(asked)):
                return plain(answer)["task"]
        if op == "stream":
            async for event in client.send_message(self.request(asked)):
                tell(plain(event))
            return "closed"
        if op == "subscribe":
            headers = {"Last-Event-ID": str(asked["last"])} if "last" in asked else {}
            context = ClientCallContext(service_parameters=headers)
            request = types.SubscribeToTaskRequest(id=asked["id"])
            async for event in client.subscribe(request, context=context):
                tell(plain(event))
            return "closed"
        if op == "get":
            return plain(await client.get_task(types.GetTaskRequest(id=asked["id"])))
        if op == "cancel":
            return plain(await client.cancel_task(types.CancelTaskRequest(id=asked["id"])))
        if op == "list":
            request = types.ListTasksRequest(context_id=asked["contextId"], page_size=asked["pageSize"])
            request.page_token = asked.get("pageToken", "")
            return plain(await client.list_tasks(request))
        if op == "push_set":
            config = {"taskId": asked["id"], "id": asked["configId"], "url": asked["url"], "token": asked["secret"]}
            return plain(await client.create_task_push_notification_config(
                read(config, types.TaskPushNotificationConfig())))
        if op == "push_get":
            return plain(await client.get_task_push_notification_config(
                types.GetTaskPushNotificationConfigRequest(task_id=asked["id"], id=asked["configId"])))
        if op == "push_list":
            listed = await client.list_task_push_notification_configs(
                types.ListTaskPushNotificationConfigsRequest(task_id=asked["id"]))
            return [plain(one) for one in listed.configs]
        if op == "push_delete":
            await client.delete_task_push_notification_config(
                types.DeleteTaskPushNotificationConfigRequest(task_id=asked["id"], id=asked["configId"]))
            return None
        raise AssertionError(op)


async def main():
    driver = Driver()
    await driver.start()
    running = set()

    async def answer(asked):
        n = asked["n"]
        try:
            say({"n": n, "result": await driver.run(asked, lambda event: say({"n": n, "event": event}))})
        except Exception as error:
            code = JSON_RPC_ERROR_CODE_MAP.get(type(error))
            say({"n": n, "error": {"code": code, "message": f"{type(error).__name__}: {error}"}})

    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        task = asyncio.create_task(answer(json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)
    # Nobody asks any more; what still runs is of no interest.
    os._exit(0)


asyncio.run(main())
