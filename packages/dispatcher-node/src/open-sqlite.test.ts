import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sqliteStore } from "pawl/sqlite";
import { openSqlite } from "./open-sqlite.js";

describe("openSqlite", () => {
  let folder: string;
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "pawl-open-"))));
  afterEach(() => rmSync(folder, { recursive: true }));

  const pragma = (handle: ReturnType<typeof openSqlite>, name: string): unknown =>
    Object.values(handle.prepare(`PRAGMA ${name}`).all()[0] as object)[0];

  it("opens a file in WAL with a sync at every commit", () => {
    const handle = openSqlite(join(folder, "pawl.db"));
    expect(pragma(handle, "journal_mode")).toBe("wal");
    expect(pragma(handle, "synchronous")).toBe(2);
    handle.close();
  });

  it("syncs less only when told to", () => {
    const handle = openSqlite(join(folder, "pawl.db"), { synchronous: "normal" });
    expect(pragma(handle, "synchronous")).toBe(1);
    handle.close();
  });

  it("returns a handle that the store accepts, and keeps the data", async () => {
    const path = join(folder, "pawl.db");
    const instance = { iid: "i1", workflow: "w", id: "a", queue: "default", params: null };
    const first = openSqlite(path);
    const store = sqliteStore(first);
    await store.migrate();
    await store.create([instance]);
    await store.close();
    first.close();
    const second = openSqlite(path);
    const again = sqliteStore(second);
    expect(await again.get({ workflow: "w", id: "a" })).toMatchObject({ status: "queued" });
    await again.close();
    second.close();
  });
});
