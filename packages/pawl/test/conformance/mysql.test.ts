import { mysqlFamily } from "../fixtures.js";
import { conforms, ifAsked } from "./conforms.js";

// This server comes with REPEATABLE READ.
ifAsked("mysql", (url) => {
  conforms("MySQL", mysqlFamily(url));
  const readCommitted = mysqlFamily(url, { isolation: "READ COMMITTED" });
  conforms("MySQL at READ COMMITTED", readCommitted, ["transactions", "races"]);
});
