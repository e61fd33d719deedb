// Every command of docs/cli.md, in its order, with the config and the workflow that the page shows.
import { execFile, type ExecFileException } from "node:child_process";
import { readFileSync } from "node:fs";
import { chmod } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { inScope } from "../../pawl/test/support/scope.js";
import { bin, Dev, Project } from "./support/project.js";

const page = readFileSync(new URL("../../../docs/cli.md", import.meta.url), "utf8");

function blocks(language: string): string[] {
  const fenced = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "gms");
  return Array.from(page.matchAll(fenced), ([, code = ""]) => code);
}

function inShell(line: string, folder: string): Promise<{ code: number; output: string }> {
  const env = { ...process.env, NODE_OPTIONS: "", PATH: `${folder}/bin:${process.env["PATH"]}` };
  return new Promise((resolve) => {
    execFile(
      "sh",
      ["-c", line],
      { cwd: folder, env },
      (error: ExecFileException | null, out, err) =>
        resolve({ code: error === null ? 0 : Number(error.code), output: out + err }),
    );
  });
}

test(
  "the commands of the page work, one after the other",
  () =>
    inScope(async (scope) => {
      const files = blocks("ts").map((code) => [/^\/\/ (\S+)\n/.exec(code)?.[1] ?? "", code]);
      expect(files.map(([name]) => name)).toEqual(["pawl.config.ts", "src/order.ts"]);
      const project = await Project.make(scope, {
        ...Object.fromEntries(files),
        "bin/pawl": `#!/bin/sh\nexec "${process.execPath}" "${bin}" "$@"\n`,
      });
      await chmod(path.join(project.folder, "bin/pawl"), 0o755);

      const outputs = new Map<string, string>();
      for (const line of blocks("sh").flatMap((block) => block.trim().split("\n"))) {
        if (line.startsWith("pawl dev")) {
          const dev = new Dev(project.start(line.split(" ").slice(1)));
          await dev.url();
          continue;
        }
        const { code, output } = await inShell(line, project.folder);
        expect(code, `${line}\n${output}`).toBe(0);
        outputs.set(line, output);
      }
      expect(outputs.get("pawl list order")).toContain(
        '{"payment":"paid 42","approval":{"by":"Ada"}}',
      );
      expect(outputs.get("pawl replay --file history.json")).toContain("follows   order order-1");
      expect(outputs.size).toBeGreaterThan(20);
    }),
  240_000,
);

test("the page names every command", async () => {
  await inScope(async (scope) => {
    const project = await Project.make(scope);
    const { stdout, code } = await project.run(["--help"]);
    expect(code).toBe(0);
    const commands = Array.from(stdout.matchAll(/^ {2}([a-z]+) /gm), ([, name]) => name ?? "");
    expect(commands).toContain("replay");
    for (const name of commands.filter((each) => !["help", "pawl"].includes(each))) {
      expect(page, name).toMatch(new RegExp(`\\b${name}\\b`));
      const help = await project.run([name, "--help"]);
      expect(help.code, name).toBe(0);
      expect(help.stdout, name).toContain(`Usage: pawl ${name}`);
      if (name !== "completion") expect(help.stdout, name).toContain("--json");
    }
  });
});
