// These tests run every command of docs/cli.md, in its order, with the config and the workflow that the page
// shows.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { inScope } from "../../pawl/test/support/scope.js";
import { Dev, Project } from "./support/project.js";

const page = readFileSync(new URL("../../../docs/cli.md", import.meta.url), "utf8");

function blocks(language: string): string[] {
  const fenced = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "gms");
  return Array.from(page.matchAll(fenced), ([, code = ""]) => code);
}

/** Returns a free port, because others may run the same test on this machine. */
async function freePort(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return String(port);
}

test("the commands of the page work, one after the other", () =>
  inScope(async (scope) => {
    const files = blocks("ts").map((code) => [/^\/\/ (\S+)\n/.exec(code)?.[1] ?? "", code]);
    expect(files.map(([name]) => name)).toEqual(["pawl.config.ts", "src/order.ts"]);
    const project = await Project.make(scope, Object.fromEntries(files));

    const port = await freePort();
    const outputs = new Map<string, string>();
    for (const shown of blocks("sh").flatMap((block) => block.trim().split("\n"))) {
      const line = shown.replace("3210", port);
      if (line.startsWith("pawl dev")) {
        const dev = new Dev(project.start(line.split(" ").slice(1)));
        await dev.url();
        continue;
      }
      const { code, output } = await project.shell(line);
      expect(code, `${line}\n${output}`).toBe(0);
      outputs.set(line, output);
    }
    expect(outputs.get("pawl list order")).toContain(
      '{"payment":"paid 42","approval":{"by":"Ada"}}',
    );
    expect(outputs.get("pawl replay --file history.json")).toContain("follows   order order-1");
    expect(outputs.size).toBeGreaterThan(20);
  }));

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
