import { mysqlFamily } from "../fixtures.js";
import { conforms, ifAsked } from "./conforms.js";

// REPEATABLE READ is what this server comes with.
ifAsked("mysql", (url) => {
  conforms("MySQL", mysqlFamily(url));
  const readCommitted = mysqlFamily(url, { isolation: "READ COMMITTED" });
  conforms("MySQL at READ COMMITTED", readCommitted, ["transactions", "races"]);
});
