import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { inScope } from "../../pawl/test/support/scope.js";
import { orderCode, Project } from "./support/project.js";

test("replay tells whether changed code still follows recorded histories", () =>
  inScope(async (scope) => {
    const project = await Project.make(scope);
    await project.run(["migrate"]);
    for (const id of ["a", "b"]) {
      await project.run(["start", "order", "--id", id, "--params", '{"amount":1}']);
    }
    while ((await project.json<{ nextWakeInMs: number }>(["tick"])).nextWakeInMs < 10_000);

    const same = await project.run(["replay", "order"]);
    expect(same.code).toBe(0);
    expect(same.stdout).toBe("follows   order b  2 steps\nfollows   order a  2 steps\n");
    expect(same.stderr).toBe("2 replayed, 0 diverging\n");
    const saved = await project.run(["replay", "order", "a", "--save", "history.json"]);
    expect(saved.code).toBe(0);
    const history = await readFile(path.join(project.folder, "history.json"), "utf8");

    // Replay does not call the bodies: this one would say so.
    await project.write(
      "src/order.ts",
      orderCode.replaceAll('"charge the card"', '"charge twice"').replace("attempt === 1", "true"),
    );
    const message =
      'step 1 of 2 is recorded as do "charge the card", ' +
      'and the code calls do "charge twice" instead, which is not recorded';
    for (const how of [
      ["order", "a"],
      ["--file", "history.json"],
      ["--file", "-"],
    ]) {
      const changed = await project.run(["replay", ...how], { input: history });
      expect(changed, how.join(" ")).toMatchObject({
        code: 1,
        stdout: `diverges  order a  ${message}\n`,
      });
    }
    const answer = await project.run(["replay", "order", "--all", "--json"]);
    expect(answer.code).toBe(1);
    expect(JSON.parse(answer.stdout)).toMatchObject({
      replays: [
        { id: "b", outcome: "diverges", message, recorded: { name: "charge the card" } },
        { id: "a", outcome: "diverges", requested: { name: "charge twice", position: 1 } },
      ],
    });

    const nobody = await project.run(["replay", "order", "nobody"]);
    expect([nobody.code, nobody.stdout]).toEqual([3, ""]);
    const other = JSON.stringify({ ...(JSON.parse(history) as object), workflow: "gone" });
    expect((await project.run(["replay", "--file", "-"], { input: other })).code).toBe(3);
    await project.write("src/order.ts", orderCode);
    const bad = ["[]", "{}", '{"format":1,"workflow":"order","id":"a","steps":[null]}'];
    for (const text of bad) {
      const { code, stderr } = await project.run(["replay", "--file", "-"], { input: text });
      expect(code, stderr).toBe(2);
      expect(stderr).toContain("no exported history");
    }
    const missing = await project.run(["replay", "--file", "nope.json"]);
    expect(missing.code).toBe(2);
    expect(missing.stderr).toContain("there is no such file");
    expect(missing.stderr).toContain("--save history.json");
    const unwritable = await project.run(["replay", "order", "a", "--save", "no/such/folder/x"]);
    expect(unwritable.code).toBe(1);
    expect(unwritable.stderr).toContain("NOT_SAVED");
  }));
