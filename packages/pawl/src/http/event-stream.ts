import { membersOf, type Signal } from "../model/abort.js";
import type { Scheduler } from "../model/seams.js";
import { StoreClosedError } from "../store/errors.js";
import { emptyAnswer, securityHeaders } from "./answers.js";
import type { StreamMessage } from "./tracker.js";
import type { Watch } from "./watchers.js";
import { newByteStream, newResponse, utf8, type WebResponse } from "../model/web.js";

/** Proxies close connections that are silent for a minute, and some of them after half a minute. */
const HEARTBEAT_MS = 15_000;
/** How long a browser waits before it comes back. */
const RECONNECT_MS = 1_000;
const opening = `retry: ${RECONNECT_MS}\n\n`;

const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  ...securityHeaders,
  "cache-control": "no-store, no-transform",
  // Without this, nginx would hold messages back.
  "x-accel-buffering": "no",
} as const;

/** Answers a watch as server-sent events, until it ends or the client has gone. */
export function eventStream(
  watch: Watch,
  scheduler: Scheduler,
  signal: Signal | undefined,
): WebResponse {
  const first = watch.take();
  if (first.length === 0 && watch.isEnded) {
    // A browser that comes back after the end is told by "no content" not to come again.
    if (watch.tracker.isOver) return emptyAnswer();
    // The instance goes on: it is this process that ends.
    throw new StoreClosedError();
  }
  const abort = signal === undefined ? null : membersOf(signal);
  const leave = (): void => watch.end();
  abort?.addEventListener("abort", leave);
  if (abort?.aborted === true) leave();
  let pending = opening + textOf(first);

  const body = newByteStream({
    async pull(controller) {
      if (pending === "") {
        const came = await arrival(watch, scheduler);
        pending = textOf(watch.take()) || (came || watch.isEnded ? "" : ":\n\n");
      }
      if (pending !== "") controller.enqueue(utf8(pending));
      pending = "";
      if (!watch.isEnded) return;
      const rest = textOf(watch.take());
      if (rest !== "") controller.enqueue(utf8(rest));
      abort?.removeEventListener("abort", leave);
      controller.close();
    },
    cancel() {
      abort?.removeEventListener("abort", leave);
      leave();
    },
  });
  return newResponse(body, 200, streamHeaders);
}

/**
 * Answers an `EventSource` while the store is away. It comes back after a stream that ended, with the cursor that it
 * has, but never after a 503.
 */
export function comeAgain(): WebResponse {
  return newResponse(opening, 200, streamHeaders);
}

/** Resolves with true when a message has arrived, or with false when it is time for a sign of life. */
function arrival(watch: Watch, scheduler: Scheduler): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (came: boolean): void => {
      cancelTimer();
      resolve(came);
    };
    const cancelTimer = scheduler.after(HEARTBEAT_MS, () => settle(false));
    watch.onArrival(() => settle(true));
  });
}

function textOf(messages: readonly StreamMessage[]): string {
  return messages
    .map(({ id, event, data }) => `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
    .join("");
}
