import { unlessAborted, type Signal } from "../model/abort.js";
import { lenientUtf8, type ByteStream, type WebResponse } from "../model/web.js";

type ServerSentEvent = {
  readonly event: string;
  readonly data: string;
  readonly id: string;
};

/**
 * Reads the messages of an event stream, as the HTML standard says. It ends when the stream does, and throws when the
 * signal fires. `arrived` is called whenever something arrives, be it only a comment.
 */
export async function* serverSentEvents(
  response: WebResponse,
  signal: Signal,
  arrived: () => void,
): AsyncGenerator<ServerSentEvent> {
  if (response.body === null) return;
  const reader = (response.body as ByteStream).getReader();
  const decoder = lenientUtf8();
  let rest = "";
  let id = "";
  let event = "";
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await unlessAborted(reader.read(), signal);
      arrived();
      if (done) return; // a message that no empty line has closed is dropped
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield { event: event || "message", data: data.join("\n"), id };
          event = "";
          data = [];
          continue;
        }
        const [, field, text = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
        if (field === "data") data.push(text);
        else if (field === "event") event = text;
        else if (field === "id" && !text.includes("\0")) id = text;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
