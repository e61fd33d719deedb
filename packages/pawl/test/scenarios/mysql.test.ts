import { ifAsked } from "../conformance/conforms.js";
import { mysqlFamily } from "../fixtures.js";
import { scenarios } from "./scenarios.js";

ifAsked("mysql", (url) => scenarios("MySQL", mysqlFamily(url)));
