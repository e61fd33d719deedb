import { mysqlFamily } from "../fixtures.js";
import { conforms, ifAsked } from "./conforms.js";

// This server comes with REPEATABLE READ.
ifAsked("mariadb", (url) => {
  conforms("MariaDB", mysqlFamily(url));
  const readCommitted = mysqlFamily(url, { isolation: "READ COMMITTED" });
  conforms("MariaDB at READ COMMITTED", readCommitted, ["transactions", "races"]);
});
