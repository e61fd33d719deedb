import { ifAsked } from "../conformance/conforms.js";
import { postgres } from "../fixtures.js";
import { scenarios } from "./scenarios.js";

ifAsked("postgres", (url) => scenarios("PostgreSQL", postgres(url)));
