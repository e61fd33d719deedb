import { postgres } from "../fixtures.js";
import { conforms, ifAsked, meetings } from "./conforms.js";

ifAsked("postgres", (url) => {
  conforms("PostgreSQL", postgres(url));
  for (const isolation of ["REPEATABLE READ", "SERIALIZABLE"] as const) {
    conforms(`PostgreSQL at ${isolation}`, postgres(url, { isolation }), meetings);
  }
});
