// Changes to many things at once. The service works on them for some seconds and says where to go on; a tab that is
// closed in between leaves whole steps behind.
import { post } from "./api.js";

/// Sends `body` until all is done. `onStep` hears the sums so far.
export async function throughAll(path, body, onStep, query) {
  const sum = { done: 0, skipped: 0, pages: 0 };
  let after;
  do {
    const step = await post(path, after ? { ...body, after } : body, query);
    for (const name of Object.keys(sum)) sum[name] += step[name] || 0;
    after = step.next;
    if (onStep) onStep({ ...sum });
  } while (after);
  return sum;
}
