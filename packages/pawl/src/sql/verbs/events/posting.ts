import type { Target } from "../../../model/target.js";
import type { NewEvent, SendEventAnswer } from "../../../store/store.js";
import { int, text, type Sql, type Verb } from "../../sql.js";
import type { Script } from "../../statement.js";
import { hookBit, hookedColumn, poster, postId } from "../hooks/posting.js";
import { readInstanceSql, refuser } from "./refusing.js";

type PostEvent = Verb<
  [target: Target, event: NewEvent, inboxId: string, hooked: boolean],
  SendEventAnswer
>;

/** Sends an event inside a user's transaction: reads without a lock, and only inserts. */
export function postEventVerb(sql: Sql): PostEvent {
  const refuse = refuser(sql);
  const instance = sql.prepare(
    "event.post.instance",
    readInstanceSql(sql, `, :now AS now, ${hookedColumn(sql)}`),
  );
  const post = sql.prepare(
    "event.post",
    `INSERT INTO ${sql.table("inbox")} (id, iid, run_no, event_id, kind, type, payload)
     VALUES (:inbox_id, :iid, :run_no, :event_id, 'event', :type, :payload)`,
  );
  const tell = poster(sql, "event.post");
  return {
    transaction: true,
    *script(target, event, inboxId, hooked): Script<SendEventAnswer> {
      const [found] = yield instance.with({ workflow: target.workflow, id: target.id });
      if (found === undefined || text(found, "status") !== "live") {
        return yield* refuse(found, event);
      }
      yield post.with({
        inbox_id: inboxId,
        iid: text(found, "iid"),
        run_no: int(found, "run_no"),
        event_id: event.eventId,
        type: event.type,
        payload: event.payload,
      });
      // A tick has to move the event in, whatever the run is doing.
      if (hooked || (int(found, "hooked") & hookBit.onWorkflowEnqueued) !== 0) {
        const told = {
          id: postId.once("event", inboxId, text(found, "iid")),
          workflow: target.workflow,
          instanceId: target.id,
          runNumber: int(found, "run_no"),
        };
        yield tell("onWorkflowEnqueued", [{ ...told, reason: "event" }], int(found, "now"));
      }
      return { kind: "accepted", woken: false, owner: null, place: null, claimed: null };
    },
  };
}
