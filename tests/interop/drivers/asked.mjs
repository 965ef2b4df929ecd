// Reads what the scenes ask for, a JSON object a line, and writes answers and events.

import { createInterface } from 'node:readline';

const say = (value) => process.stdout.write(JSON.stringify(value) + '\n');

/** The code of the JSON-RPC error behind an error of either SDK. */
function code(error) {
  for (let one = error; one; one = one.cause) {
    const found = one.envelopeCode ?? one.errorResponse?.error?.code;
    if (found !== undefined) return found;
  }
  return null;
}

export async function serve(run) {
  const answer = async (asked) => {
    const { n } = asked;
    try {
      const result = await run(asked, (event) => say({ n, event }));
      say({ n, result: result ?? null });
    } catch (error) {
      say({ n, error: { code: code(error), message: String(error) } });
    }
  };
  for await (const line of createInterface({ input: process.stdin })) {
    answer(JSON.parse(line));
  }
  // Nobody asks any more; what still runs is of no interest.
  process.exit(0);
}
