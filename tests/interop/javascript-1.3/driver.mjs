// Does with @a2a-js/sdk 1.3 what the scenes ask for. PROTOCOL=0.3 makes it speak 0.3: it is shown a card that names
// nothing else.

import { randomUUID } from 'node:crypto';
import * as types from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';

const { serve } = await import(process.env.ASKED);

const protocol = process.env.PROTOCOL ?? '1.0';
const card = await new DefaultAgentCardResolver().resolve(process.env.GATEWAY);
const spoken = { ...card, supportedInterfaces: card.supportedInterfaces.filter((one) => one.protocolVersion === protocol) };
const client = await new ClientFactory({
  transports: [new JsonRpcTransportFactory({ legacyCompat: { enabled: true } })],
}).createFromAgentCard(spoken);
const extending = (token) => client.transport.getExtendedAgentCard({ tenant: '' }, options({ token }));

const options = ({ token, last }) => ({
  serviceParameters: {
    Authorization: `Bearer ${token}`,
    ...(last === undefined ? {} : { 'Last-Event-ID': String(last) }),
  },
});

function request(asked) {
  const parts = [];
  if (asked.spec !== undefined) parts.push({ data: asked.spec });
  if (asked.text !== undefined) parts.push({ text: asked.text });
  const message = { messageId: asked.messageId ?? randomUUID(), role: 'ROLE_USER', parts, taskId: asked.taskId };
  return types.SendMessageRequest.fromJSON({ message, configuration: { returnImmediately: !asked.wait } });
}

async function told(events, tell) {
  for await (const event of events) tell(types.StreamResponse.toJSON(event));
  return 'closed';
}

await serve(async (asked, tell) => {
  const { op, id } = asked;
  switch (op) {
    case 'card':
      return types.AgentCard.toJSON(card);
    case 'extended':
      return types.AgentCard.toJSON(await extending(asked.token));
    case 'send':
      return types.Task.toJSON(await client.sendMessage(request(asked), options(asked)));
    case 'stream':
      return told(client.sendMessageStream(request(asked), options(asked)), tell);
    case 'subscribe':
      return told(client.resubscribeTask({ id, tenant: '' }, options(asked)), tell);
    case 'get':
      return types.Task.toJSON(await client.getTask({ id, tenant: '' }, options(asked)));
    case 'cancel':
      return types.Task.toJSON(await client.cancelTask({ id, tenant: '' }, options(asked)));
    case 'list': {
      const params = types.ListTasksRequest.fromJSON(asked);
      return types.ListTasksResponse.toJSON(await client.listTasks(params, options(asked)));
    }
    case 'push_set': {
      const { configId, url, secret } = asked;
      const config = types.TaskPushNotificationConfig.fromJSON({ taskId: id, id: configId, url, token: secret });
      return types.TaskPushNotificationConfig.toJSON(await client.createTaskPushNotificationConfig(config, options(asked)));
    }
    case 'push_get': {
      const params = { tenant: '', taskId: id, id: asked.configId };
      return types.TaskPushNotificationConfig.toJSON(await client.getTaskPushNotificationConfig(params, options(asked)));
    }
    case 'push_list': {
      const params = types.ListTaskPushNotificationConfigsRequest.fromJSON({ taskId: id });
      const listed = await client.listTaskPushNotificationConfig(params, options(asked));
      return listed.configs.map((one) => types.TaskPushNotificationConfig.toJSON(one));
    }
    case 'push_delete':
      return client.deleteTaskPushNotificationConfig({ tenant: '', taskId: id, id: asked.configId }, options(asked));
    default:
      throw new Error(op);
  }
});
