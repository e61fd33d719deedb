/** An end that many streams wait for. */
export class Ending {
  readonly #ends = new Set<() => void>();
  #isOver = false;

  /** Calls back when the end comes, or at once if it has come. Returns a function that forgets the callback. */
  await(end: () => void): () => void {
    if (this.#isOver) end();
    else this.#ends.add(end);
    return () => void this.#ends.delete(end);
  }

  end(): void {
    this.#isOver = true;
    for (const end of this.#ends) end();
    this.#ends.clear();
  }
}

/**
 * Returns the response such that an event stream also ends, cleanly, when the server does. Otherwise it would go on for
 * as long as its instance. Other responses end by themselves, and are returned as they are.
 */
export function endable(response: Response, ending: Ending): Response {
  const type = response.headers.get("content-type") ?? "";
  if (response.body === null || !type.startsWith("text/event-stream")) return response;
  const reader = response.body.getReader();
  let isOver = false;
  let forget = (): void => {};
  const body = new ReadableStream<Uint8Array>({
    start(stream) {
      forget = ending.await(() => {
        isOver = true;
        stream.close();
        reader.cancel().catch(() => {});
      });
    },
    async pull(stream) {
      // A stream that breaks just ends: its client asks again from where it was.
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (isOver) return;
      if (!done && value !== undefined) return stream.enqueue(value);
      forget();
      stream.close();
    },
    cancel(reason) {
      forget();
      return reader.cancel(reason);
    },
  });
  return new Response(body, response);
}
