#!/usr/bin/env node
// A file of its own: it is there, and may be executed, before anything is built.
await import("../dist/main.js");
