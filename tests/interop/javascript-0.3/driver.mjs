// Does with @a2a-js/sdk 0.3 what the scenes ask for.

import { randomUUID } from 'node:crypto';
import { ClientFactory, DefaultAgentCardResolver } from '@a2a-js/sdk/client';

const { serve } = await import(process.env.ASKED);

const card = await new DefaultAgentCardResolver().resolve(process.env.GATEWAY);
const client = await new ClientFactory().createFromAgentCard(card);

const options = ({ token, last }) => ({
  serviceParameters: {
    Authorization: `Bearer ${token}`,
    ...(last === undefined ? {} : { 'Last-Event-ID': String(last) }),
  },
});

function params(asked) {
  const parts = [];
  if (asked.spec !== undefined) parts.push({ kind: 'data', data: asked.spec });
  if (asked.text !== undefined) parts.push({ kind: 'text', text: asked.text });
  const message = { kind: 'message', messageId: asked.messageId ?? randomUUID(), role: 'user', parts };
  if (asked.taskId !== undefined) message.taskId = asked.taskId;
  return { message, configuration: { blocking: asked.wait ?? false } };
}

async function told(events, tell) {
  for await (const event of events) tell(event);
  return 'closed';
}

await serve(async (asked, tell) => {
  const { op, id } = asked;
  switch (op) {
    case 'card':
      return card;
    case 'extended':
      return client.getAgentCard(options(asked));
    case 'send':
      return client.sendMessage(params(asked), options(asked));
    case 'stream':
      return told(client.sendMessageStream(params(asked), options(asked)), tell);
    case 'subscribe':
      return told(client.resubscribeTask({ id }, options(asked)), tell);
    case 'get':
      return client.getTask({ id }, options(asked));
    case 'cancel':
      return client.cancelTask({ id }, options(asked));
    case 'push_set': {
      const { configId, url, secret } = asked;
      return client.setTaskPushNotificationConfig(
        { taskId: id, pushNotificationConfig: { id: configId, url, token: secret } },
        options(asked),
      );
    }
    case 'push_get':
      return client.getTaskPushNotificationConfig({ id, pushNotificationConfigId: asked.configId }, options(asked));
    case 'push_list':
      return client.listTaskPushNotificationConfig({ id }, options(asked));
    case 'push_delete':
      return client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId: asked.configId }, options(asked));
    // 0.3 has no way to list tasks.
    default:
      return 'absent';
  }
});
