import { sqliteFile, sqliteMemory } from "../fixtures.js";
import { conforms, ifAsked } from "./conforms.js";

ifAsked("sqlite", () => {
  conforms("SQLite file", sqliteFile);
  conforms("SQLite in memory", sqliteMemory);
});
