import type { DbTime } from "../../store/records.js";
import { int, type Sql, type Verb } from "../sql.js";
import type { Row, Script } from "../statement.js";

export function nowVerb(sql: Sql): Verb<[], DbTime> {
  const read = sql.prepare("now", "SELECT :now AS now");
  return {
    transaction: false,
    *script(): Script<DbTime> {
      const [row] = yield read.with();
      return int(row as Row, "now");
    },
  };
}
