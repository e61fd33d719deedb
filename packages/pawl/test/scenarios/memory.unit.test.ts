import { sqliteMemory } from "../fixtures.js";
import { scenarios } from "./scenarios.js";

scenarios("SQLite in memory", sqliteMemory);
