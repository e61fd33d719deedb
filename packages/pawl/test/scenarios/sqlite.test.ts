import { ifAsked } from "../conformance/conforms.js";
import { sqliteFile } from "../fixtures.js";
import { scenarios } from "./scenarios.js";

ifAsked("sqlite", () => scenarios("SQLite file", sqliteFile));
